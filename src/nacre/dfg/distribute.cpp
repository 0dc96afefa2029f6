#include "nacre/dfg/distribute.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "nacre/base/error.h"
#include "nacre/dfg/node_vector.h"
#include "nacre/dfg/placed_aggregations.h"

namespace nacre {
namespace {

// The forms that a value of the given DFG takes in the DFG of a rank; -1 if nobody has asked for a
// form yet.
//   plain    vertices: the rows of the rank's own vertices. Edges and pairs: the rows of the rank's
//            block. Parameters: the value, equal on all ranks.
//   halo     vertices only: the rows of own and halo vertices, in h(l)
//   partial  what the rank has of a sum over the ranks. Vertices: rows in h(l); the value of a
//            vertex is the sum of the rows that ranks have for it. Parameters: the value is the sum
//            over the ranks.
struct Forms {
  NodeRef plain = -1;
  NodeRef halo = -1;
  NodeRef partial = -1;
};

constexpr std::array<std::string_view, 5> kHaloRows = {"narrow", "early", "late", "columns", "sums"};

bool is_dense(Op op) { return op == Op::matmul || op == Op::matmul_t; }

// Returns whether row i of the result depends on row i of the operands only, and on parameters.
bool is_row_wise(Op op) {
  if (op_info(op).elementwise || is_dense(op)) return true;
  switch (op) {
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
    case Op::nll_grad:
    case Op::bce_grad:
    case Op::typed_matmul:
    case Op::typed_matmul_t:
      return true;
    default:
      return false;
  }
}

// Says in which operands an operation is linear. If such an operand is a partial sum on each rank,
// the operation can be applied to the partial sums, and its results are added up.
enum class Linear : uint8_t {
  no,
  in_first,   // in the first operand; the others must be whole
  in_all,     // in all operands together; all of them must be partial sums
  in_either,  // in each operand by itself; the others must be whole
};

Linear linearity(Op op) {
  switch (op) {
    case Op::add:
    case Op::sub:
    case Op::concat:
      return Linear::in_all;
    case Op::mul:
      return Linear::in_either;
    case Op::scale:
    case Op::dropout:
    case Op::row_sum:
    case Op::expand:
    case Op::reshape:
    case Op::slice:
    case Op::pad:
    case Op::matmul:
    case Op::matmul_t:
    case Op::typed_matmul:
    case Op::typed_matmul_t:
    case Op::row_normalize_grad:
    case Op::log_softmax_grad:
      return Linear::in_first;
    default: {
      const ActivationInfo* row = find_activation(op);
      return row != nullptr && row->gradient == op ? Linear::in_first : Linear::no;
    }
  }
}

class Distributor {
 public:
  Distributor(const Dfg& dfg, const RankPlacement& placement, const RankViews& views)
      : in_(dfg), placement_(placement), out_(dfg.name()), forward_(needed_forward(dfg)) {
    forms_.assign(dfg, {});
    local_.assign(dfg, 0);
    has_partial_.assign(dfg, 0);
    placed_.assign(dfg, 0);
    unread_.assign(dfg, 0);
    for (NodeRef i = 0; i < in_.size(); ++i) {
      refuse(in_[i]);
      local_[i] = computes_halo(i) ? 1 : 0;
    }
    find_partial_sums();
    for (NodeRef i = 0; i < in_.size(); ++i) {
      if (!places_.contains(rows_for(i))) places_[rows_for(i)] = place_of(rows_for(i), dfg, views);
    }
    place_aggregations();
    find_partial_sums();
  }

  Dfg run() {
    // If both passes need a value, the forward pass makes it. So the choices at the sites of the
    // forward pass hold for this value.
    for (const bool backward : {false, true}) {
      backward_ = backward;
      const auto now = [&](NodeRef i) { return (forward_[i] == 0) == backward; };
      for (NodeRef i = 0; i < in_.size(); ++i) {
        // Values of vertices are not made here, but when another value asks for one of their forms.
        if (now(i) && !on_vertices(i) && !unread_[i]) make(i);
      }
      for (const auto& [name, node] : in_.outputs()) {
        if (now(node) && on_vertices(node)) plain(node);
      }
    }
    for (const auto& [name, node] : in_.outputs()) out_.set_output(name, plain(node));
    for (const auto& [name, node] : in_.updates()) {
      plain(in_.find_leaf(name));
      out_.set_update(name, plain(node));
    }
    return prune(out_);
  }

 private:
  const Node& node(NodeRef i) const { return in_[i]; }
  const std::vector<NodeRef>& inputs(NodeRef i) const { return in_[i].inputs; }
  Space space(NodeRef i) const { return in_[i].type.space; }
  bool on_vertices(NodeRef i) const { return space(i).kind == SpaceKind::vertex; }
  bool is_small(NodeRef i) const { return space(i).kind == SpaceKind::param || space(i).kind == SpaceKind::type; }
  bool is_leaf(NodeRef i) const { return op_info(node(i).op).op_class == OpClass::leaf; }
  int64_t width(NodeRef i) const { return in_[i].type.row_size(); }

  static void refuse(const Node& node) {
    NACRE_CHECK(op_info(node.op).op_class != OpClass::communication && node.type.space.kind != SpaceKind::halo,
                "the DFG is already distributed");
    NACRE_CHECK(node.op != Op::degree || node.attr == Attr::dst, "degrees of sources must be inputs");
    const bool learned = node.op == Op::param && node.type.space.kind == SpaceKind::vertex;
    if (node.type.space.kind == SpaceKind::rows || node.type.space.kind == SpaceKind::kind || learned) {
      throw UserError("several devices", "nodes of several kinds and learned features are not supported yet",
                      "train on one device, or give all nodes features");
    }
  }

  // ---- The places where aggregations are done.

  // Returns what travels for an aggregation: the choice at its site, which is the layer of its
  // edges and its pass.
  HaloRows rows_for(NodeRef i) const {
    const int layer = inputs(i).empty() ? space(i).layer : space(inputs(i)[0]).layer;
    return placement_.at({layer, forward_[i] == 0});
  }

  void find_partial_sums() {
    for (NodeRef i = 0; i < in_.size(); ++i) has_partial_[i] = comes_as_partial_sums(i) ? 1 : 0;
  }

  void place_aggregations() {
    readers_.assign(in_, {});
    for (NodeRef i = 0; i < in_.size(); ++i) {
      for (const NodeRef in : inputs(i)) readers_[in].push_back(i);
    }
    NodeVector<char> result(in_, 0);
    for (const auto& [name, i] : in_.outputs()) result[i] = 1;
    for (const auto& [name, i] : in_.updates()) result[i] = 1;
    for (NodeRef i = in_.size() - 1; i >= 0; --i) {
      placed_[i] = is_elsewhere(i, result) ? 1 : 0;
      // If only aggregations at other places read a value of edges, the value is not needed for the
      // rank's own edges.
      if (on_vertices(i) || is_small(i) || result[i]) continue;
      unread_[i] = std::all_of(readers_[i].begin(), readers_[i].end(),
                               [&](NodeRef r) { return placed_[r] != 0 || unread_[r] != 0; });
    }
  }

  // Returns whether an aggregation is done at another place than the owners of destinations.
  // Returns false if the ranks need nothing from each other for it: if they know the rows of their
  // halo, or if all readers take its partial sums.
  bool is_elsewhere(NodeRef i, const NodeVector<char>& result) const {
    const PlacedAggregations* place = places_.at(rows_for(i)).get();
    if (place == nullptr || !place->can_place(i)) return false;
    if (starts_partial_sums(i)) return !is_read_as_partial_sums(i, result);
    const std::vector<NodeRef> sources = gathered_along(in_, i, Attr::src);
    return std::any_of(sources.begin(), sources.end(), [&](NodeRef x) { return !local_[x]; });
  }

  bool is_read_as_partial_sums(NodeRef i, const NodeVector<char>& result) const {
    if (result[i]) return false;
    const auto others_known = [&](NodeRef reader) {
      return std::all_of(inputs(reader).begin(), inputs(reader).end(),
                         [&](NodeRef in) { return in == i || local_[in]; });
    };
    return std::all_of(readers_[i].begin(), readers_[i].end(), [&](NodeRef r) {
      if (node(r).op == Op::column_sum) return true;
      if (!others_known(r)) return false;
      return node(r).op == Op::weight_grad || (on_vertices(r) && has_partial_[r] && is_read_as_partial_sums(r, result));
    });
  }

  // Returns whether a rank can compute a vertex value for its halo from leaves alone.
  bool computes_halo(NodeRef i) const {
    if (!on_vertices(i)) return is_small(i);
    if (is_leaf(i)) return node(i).op == Op::input || node(i).op == Op::constant;
    const auto known = [&](NodeRef in) { return local_[in] != 0; };
    return is_row_wise(node(i).op) && std::all_of(inputs(i).begin(), inputs(i).end(), known);
  }

  // Returns whether the edges of each rank give a partial sum of the value. They do for sums over
  // the edges of a source, and for values that are linear in such sums.
  bool comes_as_partial_sums(NodeRef i) const {
    const Node& n = node(i);
    const bool at_source = on_vertices(i) || space(i).kind == SpaceKind::pair_src;
    if (!at_source) return false;
    if (starts_partial_sums(i)) return true;
    const auto is_partial = [&](NodeRef in) { return has_partial_[in] != 0; };
    switch (linearity(n.op)) {
      case Linear::no:
        return false;
      case Linear::in_first:
        return is_partial(n.inputs[0]) && std::none_of(n.inputs.begin() + 1, n.inputs.end(), is_partial);
      case Linear::in_all:
        return std::all_of(n.inputs.begin(), n.inputs.end(), is_partial);
      case Linear::in_either:
        return std::count_if(n.inputs.begin(), n.inputs.end(), is_partial) == 1;
    }
    return false;
  }
  bool starts_partial_sums(NodeRef i) const {
    const Node& n = node(i);
    if (placed_[i]) return false;
    if (n.op == Op::lstm_grad_z) return on_vertices(i);
    return n.op == Op::index_add && (n.attr == Attr::src || n.attr == Attr::pair_src);
  }

  // ---- the forms of a value

  NodeRef plain(NodeRef i) {
    Forms& f = forms_[i];
    if (f.plain >= 0) return f.plain;
    if (is_small(i)) return f.plain = out_.add({.op = Op::all_reduce, .inputs = {f.partial}});
    NACRE_CHECK(on_vertices(i), "a value on edges is needed before it is made");
    if (placed_[i]) return f.plain = places_.at(rows_for(i))->place(i, out_, [&](NodeRef in) { return plain(in); });
    const NodeRef made = starts_partial_sums(i) || (has_partial_[i] && adds_result(i)) ? add_up(i) : make_own(i);
    return forms_[i].plain = made;
  }

  NodeRef add_up(NodeRef i) { return out_.add({.op = Op::exchange_add, .inputs = {partial(i)}}); }

  NodeRef halo(NodeRef i) {
    if (forms_[i].halo >= 0) return forms_[i].halo;
    if (is_small(i)) return plain(i);
    NodeRef made = -1;
    if (is_leaf(i) && local_[i]) {
      Node leaf = node(i);
      leaf.type.space = Space::halo(space(i).layer);
      if (leaf.op == Op::input) leaf.name = halo_leaf(leaf.name);
      made = out_.add(std::move(leaf));
    } else if (local_[i] || (is_row_wise(node(i).op) && sends_operands(i))) {
      made = copy_to(Space::halo(space(i).layer), i, [&](NodeRef in) { return halo(in); });
    } else {
      made = out_.add({.op = Op::exchange, .inputs = {plain(i)}});
    }
    return forms_[i].halo = made;
  }

  // Returns the partial sum of a value. Where a linear operation computes it, the operands that are
  // no partial sums are needed as rows of own and halo vertices.
  NodeRef partial(NodeRef i) {
    if (forms_[i].partial >= 0) return forms_[i].partial;
    NACRE_CHECK(has_partial_[i], "this value is not the sum of what ranks have");
    NodeRef made = -1;
    if (starts_partial_sums(i)) {
      made = make_start(i);
    } else {
      made = copy_to(Space::halo(space(i).layer), i,
                     [&](NodeRef in) { return has_partial_[in] ? partial(in) : halo(in); });
    }
    return forms_[i].partial = made;
  }

  // Makes a sum over the edges of each source in h(l).
  NodeRef make_start(NodeRef i) {
    Node n = node(i);
    if (n.op == Op::index_add) {
      n.inputs = {block_value(n.inputs[0])};
      n.ints = {1};
    } else {  // lstm_grad_z(g, z, w)
      n.inputs = {plain(n.inputs[0]), halo(n.inputs[1]), plain(n.inputs[2])};
    }
    return out_.add(std::move(n));
  }

  // Makes a value of a rank's own vertices without communication.
  NodeRef make_own(NodeRef i) {
    const Node& n = node(i);
    if (n.op == Op::standardize_grad) return standardize_grad(i);
    return copy_to(space(i), i, [&](NodeRef in) { return operand(i, in); });
  }

  // Returns what a kernel on vertices or edges reads of its operand: sources with their halo,
  // destinations without.
  NodeRef operand(NodeRef reader, NodeRef in) {
    const Node& n = node(reader);
    if (!on_vertices(in)) return block_value(in);
    const bool sequence = (n.op == Op::lstm || n.op == Op::lstm_gates) && in == n.inputs[0];
    if (sequence || (n.op == Op::index && n.attr == Attr::src)) return halo(in);
    // Attr::self reads only the first rows, which are the rank's own vertices with the halo or
    // without. So a value that is computed for the halo anyway is read with its halo.
    return n.op == Op::index && n.attr == Attr::self && local_[in] ? halo(in) : plain(in);
  }

  // Returns the only form of a value that is not on vertices.
  NodeRef block_value(NodeRef i) { return is_small(i) || on_vertices(i) ? plain(i) : forms_[i].plain; }

  template <class Form>
  NodeRef copy_to(Space to, NodeRef i, Form form) {
    Node n = node(i);
    for (NodeRef& in : n.inputs) in = form(in);
    n.type.space = to;
    return out_.add(std::move(n));
  }

  // ---- which rows travel

  HaloRows rows(NodeRef i) const { return placement_.at({space(i).layer, backward_}); }

  // Returns how many columns would travel to give the halo its rows of a value.
  int64_t halo_columns(NodeRef i) const {
    if (is_small(i) || local_[i] || forms_[i].halo >= 0) return 0;
    if (!is_row_wise(node(i).op)) return width(i);
    const int64_t columns = operand_columns(i);
    return sends(i, columns) ? columns : width(i);
  }
  int64_t operand_columns(NodeRef i) const {
    int64_t sum = 0;
    for (const NodeRef in : inputs(i)) sum += halo_columns(in);
    return sum;
  }
  bool has_product(NodeRef i) const {
    if (!on_vertices(i) || local_[i] || !is_row_wise(node(i).op)) return false;
    return is_dense(node(i).op) ||
           std::any_of(inputs(i).begin(), inputs(i).end(), [&](NodeRef in) { return has_product(in); });
  }
  // Returns whether the operands of a row-wise operation travel instead of its result.
  bool sends_operands(NodeRef i) const { return sends(i, operand_columns(i)); }
  bool sends_results(NodeRef i) const { return rows(i) != HaloRows::early && rows(i) != HaloRows::narrow; }
  bool sends(NodeRef i, int64_t columns) const {
    if (columns == 0) return true;
    if (sends_results(i)) return false;
    return rows(i) == HaloRows::early ? has_product(i) : columns < width(i);
  }

  // Returns how many columns would travel to add up the partial sums of a value.
  int64_t added_columns(NodeRef i) const {
    if (forms_[i].plain >= 0 || is_small(i) || !has_partial_[i]) return 0;
    if (starts_partial_sums(i)) return width(i);
    const int64_t before = added_operands(i);
    return adds(i, before) ? width(i) : before;
  }
  int64_t added_operands(NodeRef i) const {
    int64_t sum = 0;
    for (const NodeRef in : inputs(i)) sum += added_columns(in);
    return sum;
  }
  // Returns whether the partial sums of the result of a linear operation are added up, not those of
  // its operands.
  bool adds_result(NodeRef i) const { return adds(i, added_operands(i)); }
  bool adds(NodeRef i, int64_t before) const {
    if (before == 0 || sends_results(i)) return false;
    int64_t extra = 0;  // columns of the other operands
    for (const NodeRef in : inputs(i)) extra += has_partial_[in] ? 0 : halo_columns(in);
    return rows(i) == HaloRows::early ? extra == 0 && is_dense(node(i).op) : width(i) + extra < before;
  }

  // ---- values that are not on vertices

  void make(NodeRef i) {
    if (is_small(i)) return make_small(i);
    forms_[i].plain = copy_to(space(i), i, [&](NodeRef in) { return operand(i, in); });
  }

  // Makes a parameter, or a value of parameters. If the value is a sum over rows, this rank makes
  // its partial sum of it.
  void make_small(NodeRef i) {
    const Node& n = node(i);
    if (n.op == Op::column_moments) {
      forms_[i].plain = column_moments(i);
      return;
    }
    const bool of_rows = std::any_of(n.inputs.begin(), n.inputs.end(), [&](NodeRef in) { return !is_small(in); });
    if (of_rows) {
      forms_[i].partial = sum_of_rows(i);
      return;
    }
    const auto only_partial = [&](NodeRef in) { return forms_[in].plain < 0; };
    const bool linear = n.op == Op::add || n.op == Op::sub || n.op == Op::scale;
    if (linear && std::all_of(n.inputs.begin(), n.inputs.end(), only_partial)) {
      forms_[i].partial = copy_to(space(i), i, [&](NodeRef in) { return forms_[in].partial; });
    } else {
      forms_[i].plain = copy_to(space(i), i, [&](NodeRef in) { return plain(in); });
    }
  }

  // Returns this rank's partial sum over rows. Over all ranks, every row must count once.
  NodeRef sum_of_rows(NodeRef i) {
    const Node& n = node(i);
    const NodeRef first = n.inputs[0];
    if (n.op == Op::lstm_grad_w) {  // (g, z, w)
      const NodeRef z = n.inputs[1];
      return copy_to(space(i), i, [&](NodeRef in) { return in == z && on_vertices(z) ? halo(z) : block_value(in); });
    }
    if (n.op == Op::weight_grad && on_vertices(first)) return weight_grad(i);
    if (n.op == Op::column_sum && on_vertices(first) && added_columns(first) > 0) {
      return copy_to(space(i), i, [&](NodeRef in) { return partial(in); });
    }
    if (space(first).kind == SpaceKind::pair_src) {
      const auto partial_operands =
          std::count_if(n.inputs.begin(), n.inputs.end(), [&](NodeRef in) { return has_partial_[in] != 0; });
      NACRE_CHECK(partial_operands == 1, "a sum over pairs of sources counts pairs of the halo more than once");
    }
    return copy_to(space(i), i, [&](NodeRef in) { return block_value(in); });
  }

  // Returns this rank's partial sum of Σ xᵀ·g over all vertices. If one operand is a partial sum on
  // each rank, the sum goes over own and halo rows if fewer columns travel then; otherwise it goes
  // over own rows.
  NodeRef weight_grad(NodeRef i) {
    const std::vector<NodeRef>& in = inputs(i);
    for (const bool second : {true, false}) {
      const NodeRef g = in[second ? 1 : 0];
      const NodeRef x = in[second ? 0 : 1];
      if (!has_partial_[g] || has_partial_[x]) continue;
      if (halo_columns(x) >= added_columns(g)) continue;
      return copy_to(space(i), i, [&](NodeRef n) { return n == g ? partial(g) : halo(x); });
    }
    return copy_to(space(i), i, [&](NodeRef n) { return plain(n); });
  }

  // ---- batch normalisation

  NodeRef add(Op op, std::vector<NodeRef> inputs, double alpha = 0) {
    return out_.add({.op = op, .inputs = std::move(inputs), .alpha = alpha});
  }
  NodeRef sum(NodeRef x) { return add(Op::all_reduce, {add(Op::column_sum, {x})}); }
  // Makes 1 / the number of vertices of all ranks.
  NodeRef inverse_rows(Space rows) {
    return add(Op::inv, {sum(out_.add({.op = Op::constant, .type = {rows, {}}, .alpha = 1}))});
  }

  NodeRef column_moments(NodeRef i) {
    const NodeRef x = plain(inputs(i)[0]);
    const NodeRef inverse = inverse_rows(out_[x].type.space);
    const NodeRef mean = add(Op::mul, {sum(x), inverse});
    const NodeRef centred = add(Op::sub, {x, mean});
    const NodeRef variance = add(Op::mul, {sum(add(Op::mul, {centred, centred})), inverse});
    Node moments{.op = Op::reshape, .inputs = {add(Op::concat, {mean, variance})}, .type = node(i).type};
    return out_.add(std::move(moments));
  }

  // With y the standardised x, the gradient is (g − mean(g) − y·mean(g·y)) / √(variance + alpha).
  NodeRef standardize_grad(NodeRef i) {
    const NodeRef g = plain(inputs(i)[0]);
    const NodeRef x = plain(inputs(i)[1]);
    const NodeRef moments = plain(inputs(i)[2]);
    const double alpha = node(i).alpha;
    const int64_t columns = width(i);
    const NodeRef inverse = inverse_rows(space(i));
    const NodeRef y = add(Op::standardize, {x, moments}, alpha);
    const NodeRef flat = out_.add({.op = Op::reshape, .inputs = {moments}, .type = {Space::param(), {2 * columns}}});
    const NodeRef variance = out_.add({.op = Op::slice, .inputs = {flat}, .ints = {columns, columns}});
    const NodeRef epsilon = out_.add({.op = Op::constant, .type = {Space::param(), {}}, .alpha = alpha});
    const NodeRef scale = add(Op::inv_sqrt, {add(Op::add, {variance, epsilon})});
    const NodeRef mean_g = add(Op::mul, {sum(g), inverse});
    const NodeRef mean_gy = add(Op::mul, {sum(add(Op::mul, {g, y})), inverse});
    const NodeRef without = add(Op::sub, {add(Op::sub, {g, mean_g}), add(Op::mul, {y, mean_gy})});
    return add(Op::mul, {without, scale});
  }

  const Dfg& in_;
  const RankPlacement& placement_;
  Dfg out_;
  const NodeVector<char> forward_;  // whether the forward pass needs a node
  // Whether the nodes of the backward pass are being made, rather than those of the forward pass.
  bool backward_ = false;
  NodeVector<Forms> forms_;
  NodeVector<char> local_;        // whether ranks can compute the value for their halo from leaves
  NodeVector<char> has_partial_;  // whether ranks have partial sums of the value
  // The next four members are for aggregations that are done at other places than the owners of
  // destinations: the place for each choice (null if there is none), the readers of each node,
  // whether a node is such an aggregation, and whether a value of edges is needed for these
  // aggregations only.
  std::map<HaloRows, std::unique_ptr<PlacedAggregations>> places_;
  NodeVector<std::vector<NodeRef>> readers_;
  NodeVector<char> placed_, unread_;
};

}  // namespace

std::vector<HaloRows> halo_choices(const RankViews& views) {
  std::vector<HaloRows> choices;
  for (const HaloRows rows : kAllHaloRows) {
    const bool lacks_layer =
        (rows == HaloRows::columns && views.whole < 0) || (rows == HaloRows::sums && views.reversed < 0);
    if (!lacks_layer) choices.push_back(rows);
  }
  return choices;
}

std::string halo_rows_name(HaloRows rows) { return std::string(kHaloRows[static_cast<size_t>(rows)]); }

HaloRows parse_halo_rows(const std::string& name) {
  const auto found = std::find(kHaloRows.begin(), kHaloRows.end(), name);
  if (found == kHaloRows.end()) {
    throw UserError("halo_rows", "unknown choice '" + name + "' of the rows that ranks send",
                    "choose late, early, narrow, columns or sums");
  }
  return static_cast<HaloRows>(found - kHaloRows.begin());
}

std::string halo_leaf(const std::string& input) { return "halo:" + input; }

std::string whole_leaf(const std::string& input) { return "whole:" + input; }

Dfg distribute(const Dfg& dfg, const RankPlacement& placement, const RankViews& views) {
  return Distributor(dfg, placement, views).run();
}

}  // namespace nacre
