// Copies a DFG node by node, letting an edit replace nodes on the way: the frame of every rewrite.
#pragma once

#include <utility>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

// `edit(out, i, node, moved)`: node i of `dfg` with its inputs already renumbered; `moved[j]` is where node j < i of
// `dfg` went. Returns the reference in `out` that stands for node i. Nodes nobody needs any more are dropped at the
// end.
template <class Edit>
Dfg copy_dfg(const Dfg& dfg, Edit edit) {
  Dfg out(dfg.name());
  std::vector<NodeRef> moved(static_cast<size_t>(dfg.size()), -1);
  for (NodeRef i = 0; i < dfg.size(); ++i) {
    Node node = dfg[i];
    for (NodeRef& in : node.inputs) in = moved[static_cast<size_t>(in)];
    moved[static_cast<size_t>(i)] = edit(out, i, std::move(node), moved);
  }
  for (const auto& [name, node] : dfg.outputs()) out.set_output(name, moved[static_cast<size_t>(node)]);
  for (const auto& [name, node] : dfg.updates()) out.set_update(name, moved[static_cast<size_t>(node)]);
  return prune(out);
}

inline std::vector<int> count_consumers(const Dfg& dfg) {
  std::vector<int> count(static_cast<size_t>(dfg.size()), 0);
  for (const Node& node : dfg.nodes()) {
    for (const NodeRef in : node.inputs) ++count[static_cast<size_t>(in)];
  }
  for (const auto& [name, node] : dfg.outputs()) ++count[static_cast<size_t>(node)];
  for (const auto& [name, node] : dfg.updates()) ++count[static_cast<size_t>(node)];
  return count;
}

}  // namespace nacre
