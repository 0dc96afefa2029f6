// Finds nodes by what the source of the graph calls them: their names, their own ids, or their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "nacre/data/dataset.h"

namespace nacre {

class NodeFinder {
 public:
  // `data` must outlive this.
  explicit NodeFinder(const Dataset& data);

  bool by_name() const { return !data_.node_names.empty(); }
  // -1: there is no such node.
  int64_t find(const std::string& name) const;
  // The same for line `line` of `file`. A number that is no node is refused (UserError); a name may be one that no edge
  // mentions: it is counted, and -1.
  int64_t find_at(const std::string& name, const std::string& file, int64_t line);
  // Says in a note of `data` which names were not found; `what` are "labels". Throws UserError where `lines` names were
  // looked for, and none was there.
  void note_unknown(const std::string& what, const std::string& file, int64_t lines, Dataset& data) const;

 private:
  const Dataset& data_;
  std::unordered_map<std::string, int64_t> names_;
  std::unordered_map<int64_t, int64_t> ids_;
  int64_t unknown_ = 0;
  std::string first_unknown_;
};

}  // namespace nacre
