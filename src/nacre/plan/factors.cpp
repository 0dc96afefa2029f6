#include "nacre/plan/factors.h"

#include "nacre/plan/copy_dfg.h"
#include "nacre/plan/rewrite.h"

namespace nacre {
namespace {

bool on_vertices(const Node& node) { return node.type.space.kind == SpaceKind::vertex; }

// A product of gathered rows and gathered scalars of both ends.
struct Message {
  NodeRef rows = -1;              // the rows that are gathered
  std::vector<NodeRef> src, dst;  // scalars at the vertices
};

class SumFactorer {
 public:
  explicit SumFactorer(const Dfg& dfg) : dfg_(dfg), constant_(constants(dfg)) {}

  Dfg run() const {
    return copy_dfg(dfg_, [&](Dfg& out, NodeRef i, Node node, const NodeVector<NodeRef>& moved) {
      Message m;
      if (!is_sum(i) || !read(dfg_[i].inputs[0], m) || !worth_it(i, m)) return out.add(std::move(node));
      const Attr end = dfg_[m.rows].attr;
      const auto& inner = end == Attr::src ? m.src : m.dst;
      const auto& outer = end == Attr::src ? m.dst : m.src;
      const NodeRef x = scaled(out, moved[dfg_[m.rows].inputs[0]], inner, moved);
      const NodeRef messages = out.add({.op = Op::index, .inputs = {x}, .attr = end});
      return scaled(out, out.add({.op = node.op, .inputs = {messages}, .attr = node.attr}), outer, moved);
    });
  }

 private:
  bool is_sum(NodeRef i) const {
    const Node& node = dfg_[i];
    return (node.op == Op::index_add || node.op == Op::index_mean) && on_vertices(node) &&
           (node.attr == Attr::src || node.attr == Attr::dst) &&
           dfg_[node.inputs[0]].type.space.kind == SpaceKind::edge;
  }

  bool read(NodeRef i, Message& m) const {
    const Node& node = dfg_[i];
    if (node.op == Op::mul) return read(node.inputs[0], m) && read(node.inputs[1], m);
    if (node.op != Op::index || (node.attr != Attr::src && node.attr != Attr::dst)) return false;
    const NodeRef x = node.inputs[0];
    if (!on_vertices(dfg_[x])) return false;
    if (node.type.dims.empty()) {
      (node.attr == Attr::src ? m.src : m.dst).push_back(x);
      return constant_[x] != 0;
    }
    if (m.rows >= 0 || node.type.dims.size() != 1) return false;
    m.rows = i;
    return true;
  }

  bool worth_it(NodeRef sum, const Message& m) const {
    return m.rows >= 0 && dfg_[m.rows].attr != dfg_[sum].attr && !m.src.empty() && !m.dst.empty() &&
           constant_[m.rows] == 0;
  }

  static NodeRef scaled(Dfg& out, NodeRef x, const std::vector<NodeRef>& factors, const NodeVector<NodeRef>& moved) {
    NodeRef product = moved[factors[0]];
    for (size_t f = 1; f < factors.size(); ++f)
      product = out.add({.op = Op::mul, .inputs = {product, moved[factors[f]]}});
    return out.add({.op = Op::mul, .inputs = {x, product}});
  }

  const Dfg& dfg_;
  NodeVector<char> constant_;
};

bool is_product(const Node& node) { return node.op == Op::matmul || node.op == Op::matmul_t; }
bool is_sum_of_edges(const Node& node) {
  return (node.op == Op::index_add || node.op == Op::index_mean) && on_vertices(node) && node.attr != Attr::self;
}
bool is_row_scalar(const Node& node) { return on_vertices(node) && node.type.dims.empty(); }

// Returns whether node i is s·(r·W), where r is a sum over edges that nobody else reads.
bool scales_product_of_sum(const Dfg& dfg, NodeRef i, const NodeVector<int>& consumers) {
  const Node& node = dfg[i];
  if (node.op != Op::mul || !is_row_scalar(dfg[node.inputs[1]])) return false;
  const Node& product = dfg[node.inputs[0]];
  return is_product(product) && is_sum_of_edges(dfg[product.inputs[0]]) && consumers[node.inputs[0]] == 1;
}

// Returns x if node i is s·x, a row of a vertex times a scalar of that vertex, where x changes and
// is not a sum over edges. Returns -1 if it is not.
NodeRef scaled_row(const Dfg& dfg, NodeRef i, const NodeVector<char>& constant) {
  const Node& node = dfg[i];
  if (node.op != Op::mul || !on_vertices(node) || node.type.dims.size() != 1) return -1;
  const NodeRef x = node.inputs[0], s = node.inputs[1];
  const bool scalar = is_row_scalar(dfg[s]) && on_vertices(dfg[x]) && dfg[x].type.dims == node.type.dims;
  return scalar && !is_sum_of_edges(dfg[x]) && constant[x] == 0 ? x : -1;
}

}  // namespace

Dfg factor_sums(const Dfg& dfg) { return merge_equal_nodes(SumFactorer(dfg).run()); }

Dfg delay_row_factors(const Dfg& dfg) {
  const NodeVector<char> constant = constants(dfg);
  const NodeVector<int> consumers = count_consumers(dfg);
  return merge_equal_nodes(copy_dfg(dfg, [&](Dfg& out, NodeRef i, Node node, const NodeVector<NodeRef>& moved) {
    if (scales_product_of_sum(dfg, i, consumers)) {
      Node product = out[node.inputs[0]];
      product.inputs[0] = out.add({.op = Op::mul, .inputs = {product.inputs[0], node.inputs[1]}});
      return out.add(std::move(product));
    }
    const bool product = is_product(dfg[i]);
    const NodeRef x = product || dfg[i].op == Op::weight_grad ? scaled_row(dfg, dfg[i].inputs[0], constant) : -1;
    if (x < 0) return out.add(std::move(node));
    const NodeRef s = moved[dfg[dfg[i].inputs[0]].inputs[1]];
    node.inputs[0] = moved[x];
    if (product) return out.add({.op = Op::mul, .inputs = {out.add(std::move(node)), s}});
    node.inputs[1] = out.add({.op = Op::mul, .inputs = {node.inputs[1], s}});
    return out.add(std::move(node));
  }));
}

}  // namespace nacre
