// Finds nodes by what the source of the graph calls them: by name, by original id, or by number.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "nacre/data/dataset.h"

namespace nacre {

class NodeFinder {
 public:
  // `data` must outlive this object.
  explicit NodeFinder(const Dataset& data);

  bool by_name() const { return !data_.node_names.empty(); }
  // Returns the number of the node, or -1 if there is none.
  int64_t find(const std::string& name) const;
  // Returns the number of the node that line `line` of `file` names. Throws UserError for a number
  // that is not a node. A name that no edge mentions is counted as unknown and gives -1.
  int64_t find_at(const std::string& name, const std::string& file, int64_t line);
  // Adds a note to `data` that says which names were not found; `what` says what the file holds,
  // for example "labels". Throws UserError if none of the `lines` names was found.
  void note_unknown(const std::string& what, const std::string& file, int64_t lines, Dataset& data) const;

 private:
  const Dataset& data_;
  std::unordered_map<std::string, int64_t> names_;
  std::unordered_map<int64_t, int64_t> ids_;
  int64_t unknown_ = 0;
  std::string first_unknown_;
};

}  // namespace nacre
