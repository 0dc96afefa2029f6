#include "nacre/plan/analysis.h"

#include <array>
#include <bit>
#include <map>
#include <string>

namespace nacre {

Analysis::Analysis(const Dfg& dfg, const Blocks& blocks, bool hoist) : dfg_(dfg), blocks_(blocks), full_(true) {
  const auto n = static_cast<size_t>(dfg.size());
  for (int l = 0; l < blocks.num_layers(); ++l) {
    const GraphArrays& a = blocks.layer(l).arrays();
    const GraphArrays& first = blocks.layer(0).arrays();
    full_ &= a.num_src == a.num_dst && a.row_ptr.data() == first.row_ptr.data() &&
             a.col_idx.data() == first.col_idx.data() && a.edge_type.data() == first.edge_type.data();
  }
  consumers_.resize(n);
  result_.assign(n, 0);
  constant_.assign(n, 0);
  for (int i = 0; i < dfg.size(); ++i) {
    const Node& node = dfg[i];
    bool constant = hoist && node.op != Op::param && node.op != Op::dropout;
    for (const NodeRef in : node.inputs) {
      auto& list = consumers_[static_cast<size_t>(in)];
      if (list.empty() || list.back() != i) list.push_back(i);
      constant = constant && constant_[static_cast<size_t>(in)] != 0;
    }
    constant_[static_cast<size_t>(i)] = constant ? 1 : 0;
  }
  for (const auto& [name, node] : dfg.outputs()) result_[static_cast<size_t>(node)] = 1;
  for (const auto& [name, node] : dfg.updates()) result_[static_cast<size_t>(node)] = 1;
  number_values();
}

// Value numbering by a text of the node in which, in a full graph, layers are left out and inputs are their numbers.
void Analysis::number_values() {
  std::map<std::string, int> known;
  for (NodeRef i = 0; i < dfg_.size(); ++i) {
    const Node& node = dfg_[i];
    ValueType type = node.type;
    std::string name = node.name;
    if (full_ && type.space.kind != SpaceKind::param) {
      // Leaves of one layer are named NAME.<layer> and bound to the same values.
      const std::string layer = std::to_string(type.space.layer);
      if (name.ends_with("." + layer)) name.resize(name.size() - layer.size());
      type.space.layer = 0;
    }
    const std::array<std::string, 6> parts = {std::string(op_info(node.op).name),
                                              type_text(type),
                                              name,
                                              std::string(attr_name(node.attr)),
                                              std::to_string(std::bit_cast<uint64_t>(node.alpha)),
                                              std::to_string(node.salt)};
    std::string key;
    for (const std::string& part : parts) key += part + "/";
    const bool names_layer = node.op == Op::index && node.attr == Attr::type && full_;
    for (size_t k = names_layer ? 1 : 0; k < node.ints.size(); ++k) key += "," + std::to_string(node.ints[k]);
    for (const NodeRef in : node.inputs) key += "(" + std::to_string(value_number(in)) + ")";
    number_.push_back(known.try_emplace(key, i).first->second);
  }
}

bool Analysis::same_rows(Space a, Space b) const {
  return a == b || (full_ && a.kind == b.kind && (a.kind == SpaceKind::vertex || a.is_typed()));
}

bool Analysis::matrix_on_edges(NodeRef i) const {
  const Node& node = dfg_[i];
  return node.type.space.kind == SpaceKind::edge && (node.op == Op::matmul || node.op == Op::matmul_t ||
                                                     node.op == Op::typed_matmul || node.op == Op::typed_matmul_t);
}

bool Analysis::row_local(NodeRef i) const {
  const Node& node = dfg_[i];
  if (op_info(node.op).elementwise) return true;
  switch (node.op) {
    case Op::index:  // pairs have no loads of their own: they are gathered by kernels that know them, or plainly
      return !node.type.space.is_pair() && node.attr != Attr::pair_src && node.attr != Attr::pair_dst;
    case Op::index_take_max:
    case Op::row_sum:
    case Op::expand:
    case Op::reshape:
    case Op::concat:
    case Op::slice:
    case Op::pad:
    case Op::standardize:
    case Op::row_normalize:
    case Op::row_normalize_grad:
    case Op::log_softmax:
    case Op::log_softmax_grad:
      return true;
    case Op::index_add:  // of each destination's own row: the same rows in a full graph
      return node.attr == Attr::self && same_rows(node.type.space, dfg_[node.inputs[0]].type.space);
    default:
      return false;
  }
}

}  // namespace nacre
