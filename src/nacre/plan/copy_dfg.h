// Copies a DFG node by node, so that an edit can replace nodes on the way, and finds facts about
// nodes. Rewrites of DFGs are written with these functions.
#pragma once

#include <utility>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/dfg/node_vector.h"

namespace nacre {

// Returns a copy of `dfg` that `edit` may change. `edit(out, i, node, moved)` gets node i of `dfg`
// with its inputs already renumbered; `moved[j]` is where node j < i of `dfg` went. The edit
// returns the reference in `out` that stands for node i. Nodes that nobody needs any more are
// dropped at the end.
template <class Edit>
Dfg copy_dfg(const Dfg& dfg, Edit edit) {
  Dfg out(dfg.name());
  NodeVector<NodeRef> moved(dfg, -1);
  for (NodeRef i = 0; i < dfg.size(); ++i) {
    Node node = dfg[i];
    for (NodeRef& in : node.inputs) in = moved[in];
    moved[i] = edit(out, i, std::move(node), moved);
  }
  for (const auto& [name, node] : dfg.outputs()) out.set_output(name, moved[node]);
  for (const auto& [name, node] : dfg.updates()) out.set_update(name, moved[node]);
  return prune(out);
}

inline NodeVector<int> count_consumers(const Dfg& dfg) {
  NodeVector<int> count(dfg, 0);
  for (const Node& node : dfg.nodes()) {
    for (const NodeRef in : node.inputs) ++count[in];
  }
  for (const auto& [name, node] : dfg.outputs()) ++count[node];
  for (const auto& [name, node] : dfg.updates()) ++count[node];
  return count;
}

// Returns for each node whether it depends on no parameter and no random number.
inline NodeVector<char> constants(const Dfg& dfg) {
  NodeVector<char> constant;
  for (const Node& node : dfg.nodes()) {
    bool fixed = node.op != Op::param && node.op != Op::dropout;
    for (const NodeRef in : node.inputs) fixed = fixed && constant[in] != 0;
    constant.push_back(fixed ? 1 : 0);
  }
  return constant;
}

}  // namespace nacre
