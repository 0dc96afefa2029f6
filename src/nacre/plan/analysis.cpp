#include "nacre/plan/analysis.h"

#include <array>
#include <bit>
#include <map>
#include <string>

namespace nacre {

Analysis::Analysis(const Dfg& dfg, const Blocks& blocks, bool hoist) : dfg_(dfg), blocks_(blocks) {
  find_whole_blocks(hoist);
  consumers_.assign(dfg, {});
  result_.assign(dfg, 0);
  constant_.assign(dfg, 0);
  for (int i = 0; i < dfg.size(); ++i) {
    const Node& node = dfg[i];
    bool constant = hoist && node.op != Op::param && node.op != Op::dropout;
    for (const NodeRef in : node.inputs) {
      auto& list = consumers_[in];
      if (list.empty() || list.back() != i) list.push_back(i);
      constant = constant && constant_[in] != 0;
    }
    constant_[i] = constant ? 1 : 0;
  }
  for (const auto& [name, node] : dfg.outputs()) result_[node] = 1;
  for (const auto& [name, node] : dfg.updates()) result_[node] = 1;
  number_values();
}

// Sets the classes of blocks and of spaces of vertices. `lasting` says that blocks stay the same
// from step to step. If they change, a single block may be square by chance, so it is not taken for
// a whole graph.
void Analysis::find_whole_blocks(bool lasting) {
  if (blocks_.links() != nullptr) {
    // A rank's blocks have the rank's part of the graph in all layers but two: the whole graph,
    // whose sources and destinations are the same vertices, and the reversed block.
    const RankViews views = blocks_.views();
    vertex_class_.assign(static_cast<size_t>(blocks_.num_layers()) + 1, 0);
    block_class_.assign(static_cast<size_t>(blocks_.num_layers()), 0);
    if (views.whole >= 0)
      vertex_class_[views.whole] = vertex_class_[views.whole + 1] = block_class_[views.whole] = views.whole;
    if (views.reversed >= 0) block_class_[views.reversed] = views.reversed;
    return;
  }
  const auto shared = [&](int l, int m) {
    const GraphArrays& a = blocks_.layer(l).arrays();
    const GraphArrays& b = blocks_.layer(m).arrays();
    return a.num_src == a.num_dst && b.num_src == b.num_dst && a.row_ptr.data() == b.row_ptr.data() &&
           a.col_idx.data() == b.col_idx.data() && a.edge_type.data() == b.edge_type.data();
  };
  const int layers = blocks_.num_layers();
  vertex_class_.push_back(0);
  for (int l = 0; l < layers; ++l) {
    int first = 0;
    while (first < l && !shared(l, first)) ++first;
    bool whole = lasting && layers == 1 && shared(l, l);
    for (int m = 0; m < layers; ++m) whole |= m != l && shared(l, m);
    block_class_.push_back(first);
    vertex_class_.push_back(whole ? vertex_class_.back() : l + 1);
  }
  // Each half of a whole graph's edges is a block of its own, but its ends are the vertices of the
  // whole graph.
  const CoverLayers cover = blocks_.cover_layers();
  if (!cover.exist() || !lasting) return;
  while (static_cast<int>(block_class_.size()) < blocks_.end_layer())
    block_class_.push_back(static_cast<int>(block_class_.size()));
  vertex_class_.resize(block_class_.size() + 1, 0);
}

// Returns the first space with the same rows; the space itself if no block or space of vertices has
// its layer.
Space Analysis::canonical(Space space) const {
  const auto layer = static_cast<size_t>(space.layer);
  // The rows of a halo space are the sources of a block, so the space has the class of that block.
  if (space.kind == SpaceKind::halo && layer < block_class_.size()) space.layer = block_class_[layer];
  if (space.kind == SpaceKind::vertex && layer < vertex_class_.size()) space.layer = vertex_class_[layer];
  if (space.is_typed() && layer < block_class_.size()) space.layer = block_class_[layer];
  return space;
}

// Gives equal numbers to equal values. The key of a value is a text of its node, in which layers
// that share a graph have one name and inputs are named by their numbers.
void Analysis::number_values() {
  std::map<std::string, int> known;
  for (NodeRef i = 0; i < dfg_.size(); ++i) {
    const Node& node = dfg_[i];
    ValueType type = node.type;
    std::string name = node.name;
    type.space = canonical(type.space);
    if (type.space.kind != SpaceKind::param) {
      // Leaves of one layer are named NAME.<layer> and bound to the same values.
      const std::string layer = std::to_string(node.type.space.layer);
      if (name.ends_with("." + layer)) name = name.substr(0, name.size() - layer.size()) + "#";
    }
    const std::array<std::string, 6> parts = {std::string(op_info(node.op).name),
                                              type_text(type),
                                              name,
                                              std::string(attr_name(node.attr)),
                                              std::to_string(std::bit_cast<uint64_t>(node.alpha)),
                                              std::to_string(node.salt)};
    std::string key;
    for (const std::string& part : parts) key += part + "/";
    if (node.op == Op::degree) {
      // The key names the block whose edges are counted, because the same vertices may have other
      // edges in the next block.
      const auto block = static_cast<size_t>(node.type.space.layer - (node.attr == Attr::dst ? 1 : 0));
      key += "block " + std::to_string(block < block_class_.size() ? block_class_[block] : -1);
    }
    // The first number of an index along types is its layer, which the node's space names already.
    const bool names_layer = node.op == Op::index && node.attr == Attr::type;
    for (size_t k = names_layer ? 1 : 0; k < node.ints.size(); ++k) key += "," + std::to_string(node.ints[k]);
    for (const NodeRef in : node.inputs) key += "(" + std::to_string(value_number(in)) + ")";
    number_.push_back(known.try_emplace(key, i).first->second);
  }
}

bool Analysis::same_rows(Space a, Space b) const { return canonical(a) == canonical(b); }

bool Analysis::matrix_on_edges(NodeRef i) const {
  const Node& node = dfg_[i];
  return node.type.space.kind == SpaceKind::edge && (node.op == Op::matmul || node.op == Op::matmul_t ||
                                                     node.op == Op::typed_matmul || node.op == Op::typed_matmul_t);
}

bool Analysis::row_local(NodeRef i) const {
  const Node& node = dfg_[i];
  if (op_info(node.op).elementwise) return true;
  switch (node.op) {
    // Programs cannot load rows of pairs: kernels that know pairs gather them, or a plain kernel
    // does. They cannot load rows of edges of another block either, because the same edge has
    // another number there.
    case Op::index:
      if (node.attr == Attr::self && node.type.space.kind == SpaceKind::edge) return false;
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
    case Op::index_add:  // along self, if both spaces have the same rows (a full graph)
      return node.attr == Attr::self && same_rows(node.type.space, dfg_[node.inputs[0]].type.space);
    default:
      return false;
  }
}

}  // namespace nacre
