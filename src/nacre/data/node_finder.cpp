#include "nacre/data/node_finder.h"

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/warnings.h"
#include "nacre/data/formats/lines.h"
#include "nacre/data/text.h"

namespace nacre {

NodeFinder::NodeFinder(const Dataset& data) : data_(data) {
  for (size_t i = 0; i < data.node_names.size(); ++i) names_.emplace(data.node_names[i], static_cast<int64_t>(i));
  for (int64_t i = 0; i < data.original_ids.size(); ++i) ids_.emplace(data.original_ids[i], i);
}

int64_t NodeFinder::find(const std::string& name) const {
  if (by_name()) {
    const auto found = names_.find(name);
    return found == names_.end() ? -1 : found->second;
  }
  int64_t id = 0;
  if (!parse_whole(name, id)) return -1;
  if (!data_.original_ids.empty()) {
    const auto found = ids_.find(id);
    return found == ids_.end() ? -1 : found->second;
  }
  return id >= 0 && id < data_.num_nodes() ? id : -1;
}

int64_t NodeFinder::find_at(const std::string& name, const std::string& file, int64_t line) {
  const int64_t node = find(name);
  if (node >= 0) return node;
  if (!by_name()) {
    throw_at_line(
        file, line,
        in_quotes(name) + " is not a node of the graph, which has " + human_count(data_.num_nodes()) + " nodes",
        "give the number of nodes with --num-nodes if some have no edges");
  }
  if (unknown_++ == 0) first_unknown_ = in_quotes(name);
  return -1;
}

void NodeFinder::note_unknown(const std::string& what, const std::string& file, int64_t lines, Dataset& data) const {
  if (unknown_ == 0) return;
  if (unknown_ == lines)
    throw UserError(file, "names no node of the graph; its first name, " + first_unknown_ + ", is not in the graph");
  data.notes.push_back(kWarningNote + human_count(unknown_) + " " + what + " of nodes that no edge names, such as " +
                       first_unknown_ + ", are left out");
}

}  // namespace nacre
