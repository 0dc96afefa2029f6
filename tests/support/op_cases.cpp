#include "support/op_cases.h"

namespace nacre::test {

NodeRef Net::linear(NodeRef x, int64_t out) { return op(Op::matmul, {x, param(p({dfg[x].type.row_size(), out}))}); }

void Net::finish(NodeRef y) {
  if (dfg[y].type != ValueType{}) {
    const NodeRef weighted = op(Op::mul, {y, input(dfg[y].type)});
    y = op(Op::column_sum, {ints(Op::row_sum, weighted, {0})});
  }
  dfg.set_output("loss", y);
}

NodeRef Net::leaf(Op which, ValueType type) {
  return dfg.add({.op = which, .type = std::move(type), .name = "leaf" + std::to_string(leaves_++)});
}

Dfg case_dfg(const Build& build, bool differentiated) {
  Net net;
  net.finish(build(net));
  if (differentiated) differentiate(net.dfg);
  return net.dfg;
}

namespace {

void index_cases(const OpSizes& s, std::vector<OpCase>& out) {
  const auto one = [&](Op op, Attr attr, const char* name, const ValueType& type) {
    out.push_back({{op}, name, [=](Net& n) { return n.op(op, {n.param(type)}, attr); }});
  };
  one(Op::index, Attr::src, "index_src", v(0, {s.features}));
  one(Op::index, Attr::dst, "index_dst", v(1, {s.heads, s.depth}));
  one(Op::index, Attr::self, "index_self", v(0, {s.features}));
  out.push_back({{Op::index}, "index_type", [s](Net& n) {
                   const NodeRef x = n.param(t({s.features}));
                   return n.dfg.add({.op = Op::index, .inputs = {x}, .attr = Attr::type, .ints = {0}});
                 }});
  one(Op::index_add, Attr::src, "index_add_src", e(0, {s.other}));
  one(Op::index_add, Attr::dst, "index_add_dst", e(0, {s.heads, s.depth}));
  one(Op::index_add, Attr::type, "index_add_type", e(0, {s.other}));
  one(Op::index_add, Attr::self, "index_add_self", v(1, {s.features}));
  // These cases have one rank, so the halo has no rows of its own.
  one(Op::exchange, Attr::none, "exchange", v(0, {s.features}));
  one(Op::exchange_add, Attr::none, "exchange_add", {Space::halo(0), {s.other}});
  out.push_back({{Op::exchange}, "index_src_of_halo", [s](Net& n) {
                   return n.op(Op::index, {n.op(Op::exchange, {n.param(v(0, {s.features}))})}, Attr::src);
                 }});
  // These cases have one rank, so to_columns and to_rows give this rank all columns.
  out.push_back({{Op::to_columns}, "to_columns", [s](Net& n) {
                   return n.ints(Op::to_columns, n.param(v(0, {s.features})), {0, 0, s.features});
                 }});
  out.push_back({{Op::to_rows}, "to_rows", [s](Net& n) {
                   return n.ints(Op::to_rows, n.param(v(0, {s.other})), {0, 0, s.other, s.other});
                 }});
  one(Op::index_mean, Attr::dst, "index_mean", e(0, {s.features}));
  one(Op::index_max, Attr::dst, "index_max", e(0, {s.features}));
  one(Op::edge_softmax, Attr::dst, "edge_softmax", e(0, {s.heads}));
  one(Op::edge_softmax, Attr::dst, "edge_softmax_of_scalars", e(0));
  // Duplicate edges have equal values in this case; whichever of them is the maximum, the gradient
  // reaches the same source.
  out.push_back({{Op::index_max}, "index_max_of_sources", [s](Net& n) {
                   return n.op(Op::index_max, {n.op(Op::index, {n.param(v(0, {s.other}))}, Attr::src)}, Attr::dst);
                 }});
  out.push_back({{Op::lstm}, "lstm", [s](Net& n) {
                   const NodeRef z = n.param(v(0, {4 * s.hidden}));
                   return n.op(Op::lstm, {z, n.param(p({s.hidden, 4 * s.hidden}))}, Attr::dst);
                 }});
  out.push_back({{Op::lstm}, "lstm_fixed_gates", [](Net& n) {
                   const NodeRef z = n.input(v(0, {4}));
                   return n.op(Op::lstm, {z, n.param(p({1, 4}))}, Attr::dst);
                 }});
  out.push_back({{Op::lstm}, "lstm_fixed_weight", [](Net& n) {
                   const NodeRef z = n.param(v(0, {8}));
                   return n.op(Op::lstm, {z, n.input(p({2, 8}))}, Attr::dst);
                 }});
}

// Adds cases of operations that lead to pairs of a vertex and a type or from them, of sums over
// pairs, and of products on pairs.
void pair_cases(const OpSizes& sizes, std::vector<OpCase>& out) {
  const int64_t features = sizes.features;
  const int64_t other = sizes.other;
  const auto index = [&](const char* name, const ValueType& from, Attr attr, const std::vector<int64_t>& ints) {
    out.push_back({{Op::index}, name, [=](Net& n) {
                     return n.dfg.add({.op = Op::index, .inputs = {n.param(from)}, .attr = attr, .ints = ints});
                   }});
  };
  index("index_src_to_pairs", v(0, {features}), Attr::src, {1});
  index("index_dst_to_pairs", v(1, {other}), Attr::dst, {1});
  index("index_type_to_src_pairs", t({other}), Attr::type, {0, 1});
  index("index_type_to_dst_pairs", t({other}), Attr::type, {0, 2});
  index("index_pair_src", s(0, {other}), Attr::pair_src, {});
  index("index_pair_dst", d(0, {features}), Attr::pair_dst, {});
  const auto sum = [&](const char* name, const ValueType& from, Attr attr) {
    out.push_back({{Op::index_add}, name, [=](Net& n) { return n.op(Op::index_add, {n.param(from)}, attr); }});
  };
  sum("index_add_pair_src", e(0, {features}), Attr::pair_src);
  sum("index_add_pair_dst", e(0, {sizes.heads, sizes.depth}), Attr::pair_dst);
  sum("index_add_of_src_pairs", s(0, {other}), Attr::src);
  sum("index_add_of_dst_pairs", d(0, {features}), Attr::dst);
  sum("index_add_type_of_src_pairs", s(0, {other}), Attr::type);
  sum("index_add_type_of_dst_pairs", d(0, {other}), Attr::type);
  for (const bool src : {true, false}) {
    const auto pairs = [src](Dims dims) { return src ? s(0, std::move(dims)) : d(0, std::move(dims)); };
    const std::string end = src ? "_on_src_pairs" : "_on_dst_pairs";
    const auto two = [&](Op op, const ValueType& a, const ValueType& b) {
      out.push_back({{op}, std::string(op_info(op).name) + end, [=](Net& n) {
                       const NodeRef x = n.param(a);
                       return n.op(op, {x, n.param(b)});
                     }});
    };
    two(Op::typed_matmul, pairs({features}), t({features, other}));
    two(Op::typed_matmul_t, pairs({other}), t({features, other}));
    two(Op::typed_weight_grad, pairs({features}), pairs({other}));
    two(Op::matmul, pairs({features}), p({features, other}));
    two(Op::mul, pairs({features}), pairs({}));
    out.push_back({{Op::tanh}, "tanh" + end, [=](Net& n) { return n.op(Op::tanh, {n.param(pairs({features}))}); }});
    out.push_back({{Op::column_sum}, "column_sum" + end, [=](Net& n) {
                     return n.op(Op::column_sum, {n.op(Op::sigmoid, {n.param(pairs({other}))})});
                   }});
  }
  // These cases compute a typed product at the pairs of the sources, or at those of the
  // destinations.
  for (const bool first : {true, false}) {
    out.push_back({{Op::typed_matmul}, first ? "products_of_pairs_summed" : "sums_of_pairs_multiplied", [=](Net& n) {
                     const NodeRef x = n.param(v(0, {features}));
                     const NodeRef w = n.param(t({features, other}));
                     const NodeRef factor = n.param(e(0));
                     if (first) {
                       const NodeRef rows = n.dfg.add({.op = Op::index, .inputs = {x}, .attr = Attr::src, .ints = {1}});
                       const NodeRef products = n.op(Op::typed_matmul, {rows, w});
                       const NodeRef edges = n.op(Op::index, {products}, Attr::pair_src);
                       return n.op(Op::index_add, {n.op(Op::mul, {edges, factor})}, Attr::dst);
                     }
                     const NodeRef edges = n.op(Op::mul, {n.op(Op::index, {x}, Attr::src), factor});
                     const NodeRef sums = n.op(Op::index_add, {edges}, Attr::pair_dst);
                     return n.op(Op::index_add, {n.op(Op::typed_matmul, {sums, w})}, Attr::dst);
                   }});
  }
  out.push_back({{Op::lstm}, "lstm_of_edges", [sizes](Net& n) {
                   const NodeRef z = n.param(e(0, {4 * sizes.hidden}));
                   return n.op(Op::lstm, {z, n.param(p({sizes.hidden, 4 * sizes.hidden}))}, Attr::dst);
                 }});
}

void binary_cases(const OpSizes& s, std::vector<OpCase>& out) {
  const auto two = [&](Op op, const std::string& name, const ValueType& a, const ValueType& b) {
    out.push_back({{op}, name, [=](Net& n) {
                     const NodeRef x = n.param(a);
                     return n.op(op, {x, n.param(b)});
                   }});
  };
  two(Op::matmul, "matmul", v(0, {s.features}), p({s.features, s.other}));
  two(Op::matmul, "matmul_of_edges", e(0, {s.features}), p({s.features, s.other}));
  two(Op::matmul, "matmul_one_row", p({s.features}), p({s.features, s.other}));
  two(Op::matmul_t, "matmul_t", v(0, {s.other}), p({s.features, s.other}));
  two(Op::weight_grad, "weight_grad", v(0, {s.features}), v(0, {s.other}));
  two(Op::weight_grad, "weight_grad_of_types", t({s.features}), t({s.other}));
  two(Op::typed_matmul, "typed_matmul", e(0, {s.features}), t({s.features, s.other}));
  two(Op::typed_matmul_t, "typed_matmul_t", e(0, {s.other}), t({s.features, s.other}));
  two(Op::typed_weight_grad, "typed_weight_grad", e(0, {s.features}), e(0, {s.other}));
  two(Op::concat, "concat", v(0, {s.heads, 1}), v(0, {s.heads, s.depth}));
  for (const Op op : {Op::add, Op::sub, Op::mul}) {
    const std::string name(op_info(op).name);
    two(op, name, v(0, {s.features}), v(0, {s.features}));
    two(op, name + "_bias", v(0, {s.features}), p({s.features}));
    two(op, name + "_scalar_first", p(), e(0, {s.other}));
    two(op, name + "_prefix", e(0, {s.heads}), e(0, {s.heads, s.depth}));
    two(op, name + "_prefix_of_p", v(0, {s.heads, s.depth}), p({s.heads}));
    two(op, name + "_wider_p", v(1, {s.heads}), p({s.heads, s.depth}));
    two(op, name + "_p_only", p({s.other}), p());
    two(op, name + "_types", t({s.other}), t());
    out.push_back({{op}, name + "_with_itself", [op, s](Net& n) {
                     const NodeRef x = n.param(v(0, {s.other}));
                     return n.op(op, {x, x});
                   }});
  }
}

void unary_cases(const OpSizes& s, std::vector<OpCase>& out) {
  const auto one = [&](Op op, double alpha) {
    const std::string name(op_info(op).name);
    out.push_back({{op}, name, [=](Net& n) { return n.op(op, {n.param(v(0, {s.features}))}, alpha); }});
  };
  one(Op::scale, -1.75);
  for (const ActivationInfo& row : activations()) one(row.op, row.has_alpha() ? 0.2 + row.alpha : 0);
  one(Op::inv, 0);
  one(Op::inv_sqrt, 0);
  one(Op::column_sum, 0);
  one(Op::row_normalize, 0.1);
  one(Op::log_softmax, 0);
  one(Op::l2, 0);
  out.push_back({{Op::column_sum}, "column_sum_of_edges", [s](Net& n) {
                   return n.op(Op::column_sum, {n.op(Op::tanh, {n.param(e(0, {s.features}))})});
                 }});
  out.push_back({{Op::dropout}, "dropout", [s](Net& n) {
                   return n.dfg.add(
                       {.op = Op::dropout, .inputs = {n.param(e(0, {s.features}))}, .alpha = 0.4, .salt = 3});
                 }});
  out.push_back({{Op::row_normalize}, "row_normalize_two_dims", [s](Net& n) {
                   return n.op(Op::row_normalize, {n.param(v(0, {s.heads, s.depth}))}, 0.1);
                 }});
  out.push_back({{Op::column_moments, Op::standardize}, "standardize", [s](Net& n) {
                   const NodeRef x = n.param(v(0, {s.features}));
                   return n.op(Op::standardize, {x, n.op(Op::column_moments, {x})}, 0.1);
                 }});
  out.push_back({{Op::l2}, "l2_of_parameter", [s](Net& n) {
                   return n.op(Op::l2, {n.param(p({s.other, s.features}))});
                 }});
}

void shape_cases(const OpSizes& s, std::vector<OpCase>& out) {
  const auto with_ints = [&](Op op, const char* name, const ValueType& type, const std::vector<int64_t>& ints) {
    out.push_back({{op}, name, [=](Net& n) { return n.ints(op, n.param(type), ints); }});
  };
  const auto with_type = [&](Op op, const char* name, const ValueType& from, const ValueType& type) {
    out.push_back({{op}, name, [=](Net& n) { return n.to(op, n.param(from), type); }});
  };
  with_ints(Op::row_sum, "row_sum_all", v(0, {s.heads, s.depth}), {0});
  with_ints(Op::row_sum, "row_sum_last", v(0, {s.heads, s.depth}), {1});
  with_ints(Op::row_sum, "row_sum_nothing", v(0, {s.other}), {1});
  with_ints(Op::row_sum, "row_sum_of_edges", e(0, {s.heads, s.depth}), {1});
  with_ints(Op::slice, "slice", v(0, {s.heads, s.depth}), {1, s.depth - 1});
  with_ints(Op::pad, "pad", v(0, {s.heads, s.depth}), {1, s.depth + 2});
  with_type(Op::expand, "expand_rows", p({s.other}), v(0, {s.other}));
  with_type(Op::expand, "expand_dims", v(0, {s.heads}), v(0, {s.heads, s.depth}));
  with_type(Op::expand, "expand_both", p(), e(0, {s.other}));
  with_type(Op::expand, "expand_parameter", p({s.heads}), p({s.heads, s.depth}));
  with_type(Op::reshape, "reshape", v(0, {s.heads, s.depth}), v(0, {s.depth, s.heads}));
  with_type(Op::reshape, "reshape_edges", e(0, {s.heads, s.depth}), e(0, {s.heads * s.depth}));
}

// Adds cases of operations on spaces with a given number of rows: operations that join such spaces,
// and all operations that work in any space.
void counted_cases(const OpSizes& sizes, std::vector<OpCase>& out) {
  const int64_t features = sizes.features;
  const int64_t other = sizes.other;
  const auto join = [](Net& n, std::vector<NodeRef> parts, int64_t rows) {
    return n.dfg.add({.op = Op::join_rows, .inputs = std::move(parts), .type = r(rows)});
  };
  out.push_back({{Op::join_rows}, "join_rows", [=](Net& n) {
                   const NodeRef a = n.param(r(3, {features}));
                   const NodeRef b = n.param(r(0, {features}));
                   return join(n, {a, b, n.param(r(2, {features})), a}, 8);
                 }});
  out.push_back({{Op::join_rows}, "join_rows_of_one", [=](Net& n) {
                   return join(n, {n.op(Op::tanh, {n.param(r(1, {sizes.heads, sizes.depth}))})}, 1);
                 }});
  // These cases have several kinds of vertices: projected features of different widths, with and
  // without a bias, and learned rows.
  out.push_back(
      {{Op::join_rows}, "join_rows_of_products", [=](Net& n) {
         const NodeRef first = n.op(Op::add, {n.linear(n.input(r(300, {other})), features), n.param(p({features}))});
         const NodeRef second = n.linear(n.input(r(70, {features})), features);
         const NodeRef all = join(n, {first, n.param(r(5, {features})), second}, 375);
         return n.linear(n.op(Op::relu, {all}), other);
       }});
}

}  // namespace

OpCase kinds_case(const OpSizes& sizes) {
  const int64_t features = sizes.features, other = sizes.other;
  return {{Op::join_rows}, "join_rows_of_kinds", [=](Net& n) {
            const NodeRef first = n.op(Op::add, {n.linear(n.input(k(0, {other})), features), n.param(p({features}))});
            const NodeRef second = n.linear(n.input(k(1, {features})), features);
            const NodeRef third = n.param(k(2, {features}));
            const NodeRef all = n.dfg.add({.op = Op::join_rows, .inputs = {first, second, third}, .type = v(0)});
            return n.linear(n.op(Op::relu, {all}), other);
          }};
}

Blocks blocks_of_kinds(std::vector<Graph> layers, bool without_second) {
  std::vector<std::vector<NodeId>> rows(3);
  for (NodeId v = 0; v < static_cast<NodeId>(layers[0].num_src()); ++v)
    rows[without_second ? v % 2 * 2 : v % 3].push_back(v);
  return Blocks(std::move(layers), std::make_shared<const KindRows>(rows.begin(), rows.end()));
}

namespace {

NodeRef classify(Net& n, NodeRef scores) {
  const ValueType row = {n.dfg[scores].type.space, {}};
  const NodeRef label = n.input(as(DType::i32, row));
  return n.op(Op::nll, {n.op(Op::log_softmax, {scores}), label, n.input(row)});
}

void loss_cases(const OpSizes& s, std::vector<OpCase>& out) {
  out.push_back({{Op::nll}, "nll", [s](Net& n) {
                   const NodeRef lp = n.param(v(1, {s.features}));
                   const NodeRef label = n.input(as(DType::i32, v(1)));
                   return n.op(Op::nll, {lp, label, n.input(v(1))});
                 }});
  out.push_back({{Op::nll}, "nll_of_edges", [s](Net& n) { return classify(n, n.param(e(0, {s.features + 1}))); }});
  out.push_back({{Op::bce}, "bce", [s](Net& n) {
                   const NodeRef x = n.param(v(1, {s.features}));
                   const NodeRef target = n.input(as(DType::u8, v(1, {s.features})));
                   return n.op(Op::bce, {x, target, n.input(v(1))});
                 }});
  out.push_back({{Op::nll}, "nll_smoothed", [s](Net& n) {
                   const NodeRef lp = n.param(v(1, {s.features}));
                   const NodeRef label = n.input(as(DType::i32, v(1)));
                   return n.op(Op::nll, {lp, label, n.input(v(1))}, 0.2);
                 }});
  out.push_back({{Op::bce}, "bce_weights_of_pairs", [s](Net& n) {
                   const NodeRef x = n.param(v(1, {s.features}));
                   const NodeRef target = n.input(as(DType::u8, v(1, {s.features})));
                   return n.op(Op::bce, {x, target, n.input(v(1, {s.features}))}, 0.1);
                 }});
  out.push_back({{Op::bce}, "bce_smoothed", [s](Net& n) {
                   const NodeRef x = n.param(v(1, {s.features}));
                   const NodeRef target = n.input(as(DType::u8, v(1, {s.features})));
                   return n.op(Op::bce, {x, target, n.input(v(1))}, 0.2);
                 }});
  // In this case, the gradient that comes into a loss is not 1.
  out.push_back({{Op::nll, Op::bce, Op::l2}, "losses_weighted", [s](Net& n) {
                   const NodeRef x = n.param(v(1, {s.features}));
                   const NodeRef target = n.input(as(DType::u8, v(1, {s.features})));
                   const NodeRef b = n.op(Op::bce, {x, target, n.input(v(1))});
                   const NodeRef decay = n.op(Op::scale, {n.op(Op::l2, {x})}, 0.3);
                   return n.op(Op::add, {n.op(Op::mul, {b, classify(n, x)}), decay});
                 }});
}

// ---- The functions below build layers.

// Returns a GCN layer: a weighted sum of neighbours, scaled by both degrees.
NodeRef gcn_layer(Net& n, NodeRef x, int layer) {
  const NodeRef out_degree = n.dfg.add({.op = Op::degree, .type = v(layer), .attr = Attr::src});
  const NodeRef in_degree = n.dfg.add({.op = Op::degree, .type = v(layer + 1), .attr = Attr::dst});
  const NodeRef h = n.op(Op::mul, {n.linear(x, 3), n.op(Op::inv_sqrt, {out_degree})});
  const NodeRef weight = n.dfg.add({.op = Op::input, .type = e(layer), .name = "edge_weight." + std::to_string(layer)});
  const NodeRef message = n.op(Op::mul, {n.op(Op::index, {h}, Attr::src), weight});
  const NodeRef sum = n.op(Op::index_add, {message}, Attr::dst);
  return n.op(Op::add, {n.op(Op::mul, {sum, n.op(Op::inv_sqrt, {in_degree})}), n.param(p({3}))});
}

// Returns a GAT layer with two heads of width 2.
NodeRef gat_layer(Net& n, NodeRef x, int layer) {
  const NodeRef h = n.to(Op::reshape, n.linear(x, 4), v(layer, {2, 2}));
  const auto score = [&](NodeRef at) { return n.ints(Op::row_sum, n.op(Op::mul, {at, n.param(p({2, 2}))}), {1}); };
  const NodeRef from = n.op(Op::index, {score(h)}, Attr::src);
  const NodeRef here = n.op(Op::index, {score(n.op(Op::index, {h}, Attr::self))}, Attr::dst);
  const NodeRef raw = n.op(Op::leaky_relu, {n.op(Op::add, {from, here})}, 0.2);
  const NodeRef attention = n.op(Op::edge_softmax, {raw}, Attr::dst);
  const NodeRef message = n.op(Op::mul, {n.op(Op::index, {h}, Attr::src), attention});
  return n.to(Op::reshape, n.op(Op::index_add, {message}, Attr::dst), v(layer + 1, {4}));
}

NodeRef rgcn_layer(Net& n, NodeRef x, int layer) {
  const NodeRef w = n.param(t({n.dfg[x].type.row_size(), 3}));
  const NodeRef norm = n.op(Op::inv, {n.dfg.add({.op = Op::typed_degree, .type = e(layer)})});
  const NodeRef message = n.op(Op::mul, {n.op(Op::typed_matmul, {n.op(Op::index, {x}, Attr::src), w}), norm});
  const NodeRef self = n.linear(n.op(Op::index, {x}, Attr::self), 3);
  return n.op(Op::add, {n.op(Op::index_add, {message}, Attr::dst), self});
}

// Returns a SAGE layer, which reads the own row beside the mean, the maximum and the LSTM of the
// neighbours.
NodeRef sage_layer(Net& n, NodeRef x, int /*layer*/) {
  const NodeRef messages = n.op(Op::index, {x}, Attr::src);
  const NodeRef mean = n.op(Op::index_mean, {messages}, Attr::dst);
  const NodeRef top = n.op(Op::index_max, {messages}, Attr::dst);
  const NodeRef last = n.op(Op::lstm, {n.linear(x, 8), n.param(p({2, 8}))}, Attr::dst);
  const NodeRef self = n.op(Op::index, {x}, Attr::self);
  const NodeRef all = n.op(Op::concat, {n.op(Op::concat, {self, mean}), n.op(Op::concat, {top, last})});
  const NodeRef y = n.linear(all, 3);
  return n.op(Op::standardize, {y, n.op(Op::column_moments, {y})}, 0.1);
}

}  // namespace

std::vector<OpCase> op_cases(const OpSizes& sizes) {
  std::vector<OpCase> cases;
  index_cases(sizes, cases);
  pair_cases(sizes, cases);
  binary_cases(sizes, cases);
  unary_cases(sizes, cases);
  shape_cases(sizes, cases);
  counted_cases(sizes, cases);
  loss_cases(sizes, cases);
  return cases;
}

std::vector<OpCase> layer_cases() {
  using Layer = NodeRef (*)(Net&, NodeRef, int);
  std::vector<OpCase> cases;
  const auto keep = [&](const char* name, Layer layer) {
    cases.push_back({{}, name, [layer](Net& n) {
                       const NodeRef hidden = n.op(Op::elu, {layer(n, n.input(v(0, {3})), 0)}, 1.0);
                       const NodeRef dropped =
                           n.dfg.add({.op = Op::dropout, .inputs = {hidden}, .alpha = 0.25, .salt = 1});
                       return classify(n, layer(n, dropped, 1));
                     }});
  };
  keep("two_layers_gcn", gcn_layer);
  keep("two_layers_gat", gat_layer);
  keep("two_layers_rgcn", rgcn_layer);
  keep("two_layers_sage", sage_layer);
  return cases;
}

}  // namespace nacre::test
