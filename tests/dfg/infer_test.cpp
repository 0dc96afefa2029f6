// Tests what each family of operations accepts and refuses, and that a refusal names the operation
// and the types.
#include <gtest/gtest.h>

#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"
#include "support/op_cases.h"

namespace nacre::test {
namespace {

struct Rule {
  const char* name;
  Node node;  // the node without its inputs
  std::vector<ValueType> inputs;
  const char* result;  // text of the type, or the words of the refusal after '!'
};

class Infer : public testing::TestWithParam<Rule> {};

TEST_P(Infer, FollowsTheSpecification) {
  const Rule& rule = GetParam();
  Net net;
  Node node = rule.node;
  for (const ValueType& type : rule.inputs) node.inputs.push_back(net.input(type));
  const std::string want = rule.result;
  if (want[0] != '!') {
    EXPECT_EQ(type_text(infer_type(net.dfg, node)), want);
    return;
  }
  try {
    const ValueType type = infer_type(net.dfg, node);
    ADD_FAILURE() << "accepted as " << type_text(type);
  } catch (const UserError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.rfind(std::string(op_info(node.op).name) + ": ", 0), 0U) << what;
    EXPECT_NE(what.find(want.substr(1)), std::string::npos) << what;
    for (const ValueType& type : rule.inputs) EXPECT_NE(what.find(type_text(type)), std::string::npos) << what;
  }
}

Node op(Op which, Attr attr = Attr::none, std::vector<int64_t> ints = {}) {
  return {.op = which, .attr = attr, .ints = std::move(ints)};
}
Node typed(Op which, ValueType type, Attr attr = Attr::none) {
  return {.op = which, .type = std::move(type), .attr = attr, .name = "leaf"};
}

const ValueType kLabel = as(DType::i32, v(1));

const std::vector<Rule> kLeaves = {
    {"degree_in", typed(Op::degree, v(1), Attr::dst), {}, "v1[]"},
    {"degree_out", typed(Op::degree, v(0), Attr::src), {}, "v0[]"},
    {"degree_of_v0", typed(Op::degree, v(0), Attr::dst), {}, "!v0 is the destination of no edge"},
    {"degree_wide", typed(Op::degree, v(1, {2}), Attr::dst), {}, "!one number for each vertex"},
    {"degree_attr", typed(Op::degree, v(1), Attr::type), {}, "!attr must be src or dst"},
    {"typed_degree_on_v", typed(Op::typed_degree, v(1)), {}, "!one number for each edge"},
    {"param_i32", typed(Op::param, as(DType::i32, p())), {}, "!other leaves f32"},
    {"input_f64", typed(Op::input, as(DType::f64, p())), {}, "!inputs are f32, i32 or u8"},
    {"input_u8", typed(Op::input, as(DType::u8, v(0, {2}))), {}, "v0[2]:u8"},
    {"constant_zero_dim", typed(Op::constant, p({0})), {}, "!dims must be positive"},
};

const std::vector<Rule> kIndexing = {
    {"src", op(Op::index, Attr::src), {v(1, {2, 3})}, "e1[2,3]"},
    {"dst", op(Op::index, Attr::dst), {v(1, {2})}, "e0[2]"},
    {"self", op(Op::index, Attr::self), {v(0, {2})}, "v1[2]"},
    {"self_to_layer", op(Op::index, Attr::self, {4}), {v(0, {2})}, "v4[2]"},
    {"self_to_layers",
     op(Op::index, Attr::self, {4, 1}),
     {v(0, {2})},
     "!empty, which means the next layer, or hold the number of the result's layer"},
    {"type", op(Op::index, Attr::type, {1}), {t({2})}, "e1[2]"},
    {"dst_of_v0", op(Op::index, Attr::dst), {v(0, {2})}, "!the operand must be at destinations"},
    {"src_of_edges", op(Op::index, Attr::src), {e(0, {2})}, "!the operand must be at vertices"},
    {"no_attr", op(Op::index), {v(0, {2})}, "!attr must name an edge attribute"},
    {"type_without_layer", op(Op::index, Attr::type), {t({2})}, "!names a layer"},
    {"type_layer", op(Op::index, Attr::type, {-1}), {t({2})}, "!the layer is out of range"},
    {"of_labels", op(Op::index, Attr::src), {as(DType::i32, v(0))}, "!needs f32"},
    {"add_src", op(Op::index_add, Attr::src), {e(1, {2})}, "v1[2]"},
    {"add_dst", op(Op::index_add, Attr::dst), {e(1, {2})}, "v2[2]"},
    {"add_type", op(Op::index_add, Attr::type), {e(1, {2})}, "t[2]"},
    {"add_self", op(Op::index_add, Attr::self), {v(1, {2})}, "v0[2]"},
    {"add_self_v0", op(Op::index_add, Attr::self), {v(0, {2})}, "!the operand must be at destinations"},
    {"add_of_vertices", op(Op::index_add, Attr::dst), {v(0, {2})}, "!the operand must be on edges or pairs"},
    {"add_no_attr", op(Op::index_add), {e(0, {2})}, "!attr must name"},
    {"mean_src", op(Op::index_mean, Attr::src), {e(0, {2})}, "!attr must be dst"},
    {"max", op(Op::index_max, Attr::dst), {e(0, {2})}, "v1[2]"},
    {"argmax", op(Op::index_argmax, Attr::dst), {e(0, {2})}, "v1[2]:i32"},
    {"take_max", op(Op::index_take_max, Attr::dst), {v(1, {2}), as(DType::i32, v(1, {2}))}, "e0[2]"},
    {"take_max_f32",
     op(Op::index_take_max, Attr::dst),
     {v(1, {2}), v(1, {2})},
     "!the argmax must be i32, with the dims and the space of the gradient"},
    {"softmax", op(Op::edge_softmax, Attr::dst), {e(0, {4})}, "e0[4]"},
    {"softmax_of_vertices", op(Op::edge_softmax, Attr::dst), {v(0, {4})}, "!needs a value on edges"},
    {"softmax_grad", op(Op::edge_softmax_grad, Attr::dst), {e(0, {4}), e(0, {3})}, "!same type"},
    {"lstm", op(Op::lstm, Attr::dst), {v(0, {8}), p({2, 8})}, "v1[2]"},
    {"lstm_gates", op(Op::lstm, Attr::dst), {v(0, {7}), p({2, 8})}, "!gates must be v[4H]"},
    {"lstm_weight", op(Op::lstm, Attr::dst), {v(0, {8}), p({8, 2})}, "!p[H,4H]"},
    {"lstm_grad_z", op(Op::lstm_grad_z), {v(1, {2}), v(0, {8}), p({2, 8})}, "v0[8]"},
    {"lstm_grad_w", op(Op::lstm_grad_w), {v(1, {2}), v(0, {8}), p({2, 8})}, "p[2,8]"},
    {"lstm_grad_space", op(Op::lstm_grad_w), {v(0, {2}), v(0, {8}), p({2, 8})}, "!for each destination"},
};

const std::vector<Rule> kCommunication = {
    {"exchange", op(Op::exchange), {v(1, {2, 3})}, "h1[2,3]"},
    {"exchange_of_edges", op(Op::exchange), {e(0)}, "!at a rank's own vertices"},
    {"exchange_add_of_own", op(Op::exchange_add), {v(0)}, "!at vertices with their halo"},
    {"all_reduce_of_vertices", op(Op::all_reduce), {v(0)}, "!the operand must be a parameter"},
    {"to_columns", op(Op::to_columns, Attr::none, {4, 2, 3}), {v(1, {8})}, "v4[3]"},
    {"to_no_columns", op(Op::to_columns, Attr::none, {4, 8, 0}), {v(1, {8})}, "v4[1]"},
    {"to_columns_beyond", op(Op::to_columns, Attr::none, {4, 6, 3}), {v(1, {8})}, "!the columns go beyond the width"},
    {"to_columns_ints", op(Op::to_columns, Attr::none, {4, 2}), {v(1, {8})}, "!ints must be layer, begin, length"},
    {"to_columns_layer", op(Op::to_columns, Attr::none, {-1, 0, 8}), {v(1, {8})}, "!the layer is out of range"},
    {"to_columns_of_edges", op(Op::to_columns, Attr::none, {4, 0, 8}), {e(1, {8})}, "!the operand must be v[H]"},
    {"to_columns_of_heads", op(Op::to_columns, Attr::none, {4, 0, 8}), {v(1, {2, 4})}, "!the operand must be v[H]"},
    {"to_rows", op(Op::to_rows, Attr::none, {1, 2, 3, 8}), {v(4, {3})}, "v1[8]"},
    {"to_rows_of_none", op(Op::to_rows, Attr::none, {1, 0, 0, 8}), {v(4, {1})}, "v1[8]"},
    {"to_rows_of_others",
     op(Op::to_rows, Attr::none, {1, 2, 4, 8}),
     {v(4, {3})},
     "!must have as many columns as ints say"},
};

const std::vector<Rule> kPairs = {
    {"src", op(Op::index, Attr::src, {1}), {v(1, {2})}, "s1[2]"},
    {"dst", op(Op::index, Attr::dst, {1}), {v(2, {2})}, "d1[2]"},
    {"dst_of_v0", op(Op::index, Attr::dst, {1}), {v(0, {2})}, "!the operand must be at destinations"},
    {"src_ints", op(Op::index, Attr::src, {2}), {v(0, {2})}, "!empty, which means edges, or 1, which means pairs"},
    {"src_many_ints",
     op(Op::index, Attr::src, {1, 1}),
     {v(0, {2})},
     "!empty, which means edges, or 1, which means pairs"},
    {"src_of_pairs", op(Op::index, Attr::src, {1}), {s(0, {2})}, "!the operand must be at vertices"},
    {"type_src", op(Op::index, Attr::type, {1, 1}), {t({2, 3})}, "s1[2,3]"},
    {"type_dst", op(Op::index, Attr::type, {1, 2}), {t()}, "d1[]"},
    {"type_neither", op(Op::index, Attr::type, {1, 3}), {t()}, "!sources (1) or destinations (2)"},
    {"type_zero", op(Op::index, Attr::type, {1, 0}), {t()}, "!sources (1) or destinations (2)"},
    {"type_three_ints", op(Op::index, Attr::type, {1, 1, 1}), {t()}, "!names a layer"},
    {"type_layer", op(Op::index, Attr::type, {-1, 1}), {t()}, "!the layer is out of range"},
    {"pair_src", op(Op::index, Attr::pair_src), {s(1, {2})}, "e1[2]"},
    {"pair_dst", op(Op::index, Attr::pair_dst), {d(0, {2})}, "e0[2]"},
    {"pair_src_of_dst",
     op(Op::index, Attr::pair_src),
     {d(0, {2})},
     "!the operand must be on the pairs that attr names"},
    {"pair_dst_of_vertices",
     op(Op::index, Attr::pair_dst),
     {v(1, {2})},
     "!the operand must be on the pairs that attr names"},
    {"add_pair_src", op(Op::index_add, Attr::pair_src), {e(1, {2})}, "s1[2]"},
    {"add_pair_dst", op(Op::index_add, Attr::pair_dst), {e(1, {2})}, "d1[2]"},
    {"add_pair_src_of_pairs", op(Op::index_add, Attr::pair_src), {s(1, {2})}, "!the operand must be on edges"},
    {"add_src_of_pairs", op(Op::index_add, Attr::src), {s(1, {2})}, "v1[2]"},
    {"add_dst_of_pairs", op(Op::index_add, Attr::dst), {d(1, {2})}, "v2[2]"},
    {"add_src_of_dst_pairs", op(Op::index_add, Attr::src), {d(1, {2})}, "!the operand must be on edges or pairs"},
    {"add_dst_of_src_pairs", op(Op::index_add, Attr::dst), {s(1, {2})}, "!the operand must be on edges or pairs"},
    {"add_type_of_pairs", op(Op::index_add, Attr::type), {d(1, {2})}, "t[2]"},
    {"mean_of_pairs", op(Op::index_mean, Attr::dst), {d(0, {2})}, "!needs a value on edges"},
    {"softmax_of_pairs", op(Op::edge_softmax, Attr::dst), {d(0, {2})}, "!needs a value on edges"},
    {"typed_matmul", op(Op::typed_matmul), {s(1, {3}), t({3, 5})}, "s1[5]"},
    {"typed_matmul_t", op(Op::typed_matmul_t), {d(1, {5}), t({3, 5})}, "d1[3]"},
    {"typed_weight_grad", op(Op::typed_weight_grad), {s(1, {3}), s(1, {5})}, "t[3,5]"},
    {"typed_weight_grad_spaces", op(Op::typed_weight_grad), {s(1, {3}), d(1, {5})}, "!in the same space"},
    {"typed_weight_grad_layers", op(Op::typed_weight_grad), {s(1, {3}), s(0, {5})}, "!in the same space"},
    {"add", op(Op::add), {s(0, {3}), s(0, {3})}, "s0[3]"},
    {"add_ends", op(Op::add), {s(0, {3}), d(0, {3})}, "!different spaces"},
    {"add_edges", op(Op::add), {s(0, {3}), e(0, {3})}, "!different spaces"},
    {"lstm_edges", op(Op::lstm, Attr::dst), {e(0, {8}), p({2, 8})}, "v1[2]"},
    {"lstm_pairs", op(Op::lstm, Attr::dst), {s(0, {8}), p({2, 8})}, "!gates must be v[4H] or e[4H]"},
    {"lstm_grad_z_edges", op(Op::lstm_grad_z), {v(1, {2}), e(0, {8}), p({2, 8})}, "e0[8]"},
    {"lstm_grad_w_edges", op(Op::lstm_grad_w), {v(1, {2}), e(0, {8}), p({2, 8})}, "p[2,8]"},
};

const std::vector<Rule> kMatrices = {
    {"matmul", op(Op::matmul), {e(0, {3}), p({3, 5})}, "e0[5]"},
    {"matmul_inner", op(Op::matmul), {v(0, {3}), p({4, 5})}, "!the inner sizes of the product differ"},
    {"matmul_two_dims", op(Op::matmul), {v(0, {3, 1}), p({3, 5})}, "!one-dimensional"},
    {"matmul_weight", op(Op::matmul), {v(0, {3}), v(0, {3})}, "!p[K,N]"},
    {"matmul_t", op(Op::matmul_t), {v(0, {5}), p({3, 5})}, "v0[3]"},
    {"matmul_t_inner", op(Op::matmul_t), {v(0, {3}), p({3, 5})}, "!the inner sizes of the product differ"},
    {"weight_grad", op(Op::weight_grad), {v(0, {3}), v(0, {5})}, "p[3,5]"},
    {"weight_grad_spaces", op(Op::weight_grad), {v(0, {3}), v(1, {5})}, "!in the same space"},
    {"weight_grad_huge", op(Op::weight_grad), {v(0, {1 << 30}), v(0, {1 << 30})}, "!too many elements"},
    {"typed_matmul", op(Op::typed_matmul), {e(1, {3}), t({3, 5})}, "e1[5]"},
    {"typed_matmul_vertices", op(Op::typed_matmul), {v(1, {3}), t({3, 5})}, "!needs a value on edges"},
    {"typed_matmul_weight", op(Op::typed_matmul), {e(1, {3}), p({3, 5})}, "!t[K,N]"},
    {"typed_matmul_t", op(Op::typed_matmul_t), {e(1, {5}), t({3, 5})}, "e1[3]"},
    {"typed_weight_grad", op(Op::typed_weight_grad), {e(1, {3}), e(1, {5})}, "t[3,5]"},
};

const std::vector<Rule> kElementwise = {
    {"add", op(Op::add), {v(0, {3}), v(0, {3})}, "v0[3]"},
    {"add_p", op(Op::add), {p({3}), v(0, {3})}, "v0[3]"},
    {"add_prefix", op(Op::add), {e(0, {2}), e(0, {2, 3})}, "e0[2,3]"},
    {"add_scalar", op(Op::add), {e(0, {2, 3}), p()}, "e0[2,3]"},
    {"add_wide_p", op(Op::add), {v(0, {2}), p({2, 3})}, "v0[2,3]"},
    {"add_spaces", op(Op::add), {v(0, {3}), v(1, {3})}, "!different spaces"},
    {"add_suffix", op(Op::mul), {v(0, {3}), v(0, {2, 3})}, "!prefix"},
    {"add_int", op(Op::add), {kLabel, kLabel}, "!needs f32"},
    {"relu_grad", op(Op::relu_grad), {v(0, {3}), v(0, {2})}, "!same type"},
    {"relu_grad_p", op(Op::relu_grad), {v(0, {3}), p({3})}, "!same type"},
    {"dropout_share", {.op = Op::dropout, .alpha = 1.0}, {v(0, {3})}, "!share must be in [0, 1)"},
    {"dropout", {.op = Op::dropout, .alpha = 0.9}, {v(0, {3})}, "v0[3]"},
};

const std::vector<Rule> kShapes = {
    {"row_sum", op(Op::row_sum, Attr::none, {1}), {v(0, {2, 3})}, "v0[2]"},
    {"row_sum_rank", op(Op::row_sum, Attr::none, {3}), {v(0, {2, 3})}, "!rank out of range"},
    {"row_sum_negative", op(Op::row_sum, Attr::none, {-1}), {v(0, {2, 3})}, "!out of range"},
    {"row_sum_nothing", op(Op::row_sum), {v(0, {2, 3})}, "!rank out of range"},
    {"expand", typed(Op::expand, v(0, {2, 3})), {v(0, {2})}, "v0[2,3]"},
    {"expand_space", typed(Op::expand, e(0, {2})), {p({2})}, "e0[2]"},
    {"expand_between", typed(Op::expand, e(0, {2})), {v(0, {2})}, "!in the same space or in p"},
    {"expand_dims", typed(Op::expand, v(0, {3, 2})), {v(0, {2})}, "!prefix"},
    {"expand_negative", typed(Op::expand, v(0, {2, -3})), {v(0, {2})}, "!dims must be positive"},
    {"reshape", typed(Op::reshape, v(0, {6})), {v(0, {2, 3})}, "v0[6]"},
    {"reshape_size", typed(Op::reshape, v(0, {5})), {v(0, {2, 3})}, "!keeps the number of elements"},
    {"reshape_negative", typed(Op::reshape, v(0, {-2, -3})), {v(0, {2, 3})}, "!dims must be positive"},
    {"concat", op(Op::concat), {v(0, {2, 3}), v(0, {2, 1})}, "v0[2,4]"},
    {"concat_dims", op(Op::concat), {v(0, {2, 3}), v(0, {3, 3})}, "!all but the last dim"},
    {"concat_scalars", op(Op::concat), {v(0), v(0)}, "!all but the last dim"},
    {"concat_spaces", op(Op::concat), {v(0, {2}), p({2})}, "!all but the last dim"},
    {"slice", op(Op::slice, Attr::none, {1, 2}), {v(0, {2, 3})}, "v0[2,2]"},
    {"slice_end", op(Op::slice, Attr::none, {2, 2}), {v(0, {3})}, "!slice is out of range"},
    {"slice_empty", op(Op::slice, Attr::none, {1, 0}), {v(0, {3})}, "!slice is out of range"},
    {"slice_overflow", op(Op::slice, Attr::none, {INT64_MAX, INT64_MAX}), {v(0, {3})}, "!out of range"},
    {"pad", op(Op::pad, Attr::none, {1, 5}), {v(0, {2, 3})}, "v0[2,5]"},
    {"join_rows", typed(Op::join_rows, v(0)), {r(3, {2}), r(4, {2})}, "v0[2]"},
    {"join_rows_counted", typed(Op::join_rows, r(7)), {r(3, {2}), r(4, {2})}, "r7[2]"},
    {"join_rows_count", typed(Op::join_rows, r(8)), {r(3, {2}), r(4, {2})}, "!as many rows as it joins"},
    {"join_rows_on_edges", typed(Op::join_rows, e(0)), {r(3, {2})}, "!gives vertices"},
    {"join_rows_of_nothing", typed(Op::join_rows, v(0)), {}, "!one input or more"},
    {"join_rows_of_vertices", typed(Op::join_rows, v(0)), {r(3, {2}), v(0, {2})}, "!the operands must be counted rows"},
    {"join_rows_dims", typed(Op::join_rows, v(0)), {r(3, {2}), r(3, {3})}, "!of the same dims"},
    {"join_rows_overflow", typed(Op::join_rows, v(0)), {r(int64_t{1} << 40), r(1)}, "!the space has too many rows"},
    {"slice_rows", op(Op::slice_rows, Attr::none, {4, 2}), {v(1, {3})}, "r2[3]"},
    {"slice_rows_counted", op(Op::slice_rows, Attr::none, {4, 0}), {r(4, {3})}, "r0[3]"},
    {"slice_rows_end", op(Op::slice_rows, Attr::none, {3, 2}), {r(4, {3})}, "!rows are out of range"},
    {"slice_rows_negative", op(Op::slice_rows, Attr::none, {-1, 2}), {r(4)}, "!needs the first row"},
    {"slice_rows_of_edges", op(Op::slice_rows, Attr::none, {0, 2}), {e(0)}, "!the operand must be at vertices"},
    {"slice_rows_overflow", op(Op::slice_rows, Attr::none, {INT64_MAX, INT64_MAX}), {r(4)}, "!needs the first row"},
    {"join_kinds", typed(Op::join_rows, v(0)), {k(0, {2}), k(1, {2})}, "v0[2]"},
    {"join_kinds_order", typed(Op::join_rows, v(0)), {k(1, {2}), k(0, {2})}, "!rows of kinds 0, 1, …"},
    {"join_kinds_dims", typed(Op::join_rows, v(0)), {k(0, {2}), k(1, {3})}, "!of the same dims"},
    {"join_kinds_later", typed(Op::join_rows, v(1)), {k(0, {2})}, "!the result must be at the vertices of v0"},
    {"slice_kind", op(Op::slice_rows, Attr::none, {3}), {v(0, {2})}, "k3[2]"},
    {"slice_kind_later", op(Op::slice_rows, Attr::none, {3}), {v(1, {2})}, "!at the vertices of v0"},
    {"slice_kind_negative", op(Op::slice_rows, Attr::none, {-1}), {v(0, {2})}, "!the number of a kind"},
    {"matmul_counted", op(Op::matmul), {r(4, {3}), p({3, 5})}, "r4[5]"},
    {"add_counts_differ", op(Op::add), {r(4, {3}), r(5, {3})}, "!"},
    {"pad_small", op(Op::pad, Attr::none, {3, 5}), {v(0, {3})}, "!padding is out of range"},
};

const std::vector<Rule> kAcrossRows = {
    {"column_sum", op(Op::column_sum), {e(0, {2, 3})}, "p[2,3]"},
    {"column_sum_of_labels", op(Op::column_sum), {kLabel}, "!needs f32"},
    {"moments", op(Op::column_moments), {v(0, {3})}, "p[2,3]"},
    {"moments_two_dims", op(Op::column_moments), {v(0, {3, 2})}, "!one-dimensional"},
    {"standardize", op(Op::standardize), {v(0, {3}), p({2, 3})}, "v0[3]"},
    {"standardize_moments", op(Op::standardize), {v(0, {3}), p({3})}, "!moments must be p[2,F]"},
    {"standardize_grad", op(Op::standardize_grad), {v(0, {3}), v(0, {3}), p({2, 3})}, "v0[3]"},
    {"standardize_grad_x", op(Op::standardize_grad), {v(1, {3}), v(0, {3}), p({2, 3})}, "!same type"},
    {"log_softmax", op(Op::log_softmax), {v(0, {3})}, "v0[3]"},
    {"log_softmax_scalar", op(Op::log_softmax), {v(0)}, "!one-dimensional"},
    {"nll", op(Op::nll), {v(1, {3}), kLabel, v(1)}, "p[]"},
    {"nll_label", op(Op::nll), {v(1, {3}), v(1), v(1)}, "!labels must be i32"},
    {"nll_space", op(Op::nll), {v(0, {3}), kLabel, v(0)}, "!labels must be i32 scalars in the space"},
    {"nll_weight", op(Op::nll), {v(1, {3}), kLabel, p()}, "!weights must be f32 scalars"},
    {"nll_grad", op(Op::nll_grad), {v(1, {3}), kLabel, v(1), p()}, "v1[3]"},
    {"nll_grad_g", op(Op::nll_grad), {v(1, {3}), kLabel, v(1), p({2})}, "!gradient must be p[]"},
    {"bce", op(Op::bce), {v(1, {3}), as(DType::u8, v(1, {3})), v(1)}, "p[]"},
    {"bce_weights_of_pairs", op(Op::bce), {v(1, {3}), as(DType::u8, v(1, {3})), v(1, {3})}, "p[]"},
    {"bce_weights", op(Op::bce), {v(1, {3}), as(DType::u8, v(1, {3})), v(1, {2})}, "!weights must be"},
    {"bce_target", op(Op::bce), {v(1, {3}), as(DType::u8, v(1, {2})), v(1)}, "!targets must be u8"},
    {"l2", op(Op::l2), {e(0, {3})}, "p[]"},
};

std::string rule_name(const testing::TestParamInfo<Rule>& c) { return c.param.name; }
INSTANTIATE_TEST_SUITE_P(Leaves, Infer, testing::ValuesIn(kLeaves), rule_name);
INSTANTIATE_TEST_SUITE_P(Indexing, Infer, testing::ValuesIn(kIndexing), rule_name);
INSTANTIATE_TEST_SUITE_P(Communication, Infer, testing::ValuesIn(kCommunication), rule_name);
INSTANTIATE_TEST_SUITE_P(Pairs, Infer, testing::ValuesIn(kPairs), rule_name);
INSTANTIATE_TEST_SUITE_P(Matrices, Infer, testing::ValuesIn(kMatrices), rule_name);
INSTANTIATE_TEST_SUITE_P(Elementwise, Infer, testing::ValuesIn(kElementwise), rule_name);
INSTANTIATE_TEST_SUITE_P(Shapes, Infer, testing::ValuesIn(kShapes), rule_name);
INSTANTIATE_TEST_SUITE_P(AcrossRows, Infer, testing::ValuesIn(kAcrossRows), rule_name);

TEST(OpTable, NamesAreUniqueAndReadBack) {
  for (int i = 0; i < static_cast<int>(Op::count_); ++i) {
    const Op which = static_cast<Op>(i);
    EXPECT_FALSE(op_info(which).name.empty());
    EXPECT_EQ(parse_op(op_info(which).name), which);
  }
  for (const Attr attr : {Attr::none, Attr::src, Attr::dst, Attr::type, Attr::self, Attr::pair_src, Attr::pair_dst}) {
    EXPECT_EQ(parse_attr(attr_name(attr)), attr);
  }
  EXPECT_THROW(parse_op("count_"), UserError);
  EXPECT_THROW(parse_attr(""), UserError);
}

TEST(DfgBasics, LeavesNeedNamesOfTheirOwn) {
  Dfg dfg;
  dfg.add({.op = Op::input, .type = v(0), .name = "x"});
  EXPECT_THROW(dfg.add({.op = Op::param, .type = p(), .name = "x"}), UserError);
  EXPECT_THROW(dfg.add({.op = Op::param, .type = p(), .name = ""}), UserError);
  for (const char* name : {"a b", "a#b", "a\nb", "\t"}) {
    EXPECT_THROW(dfg.add({.op = Op::param, .type = p(), .name = name}), UserError) << name;
  }
  EXPECT_EQ(dfg.find_leaf("x"), 0);
  EXPECT_EQ(dfg.find_leaf("y"), -1);
}

TEST(DfgBasics, OutputsAndUpdates) {
  Dfg dfg;
  const NodeRef x = dfg.add({.op = Op::input, .type = v(0), .name = "x"});
  const NodeRef state = dfg.add({.op = Op::param, .type = p({2}), .name = "state", .state = true});
  dfg.set_output("a", x);
  dfg.set_output("b", x);
  dfg.set_output("a", state);
  ASSERT_EQ(dfg.outputs().size(), 2U);
  EXPECT_EQ(dfg.outputs()[0].first, "a");
  EXPECT_EQ(dfg.output("a"), state);
  EXPECT_EQ(dfg.find_output("c"), -1);
  EXPECT_THROW(dfg.output("c"), InternalError);
  EXPECT_THROW(dfg.set_output("d", 7), InternalError);
  EXPECT_THROW(dfg.set_update("x", x), InternalError) << "not a state";
  EXPECT_THROW(dfg.set_update("state", x), InternalError) << "another type";
  EXPECT_THROW(dfg.set_update("state", 7), InternalError);
  EXPECT_EQ(dfg.num_layers(), 0);
}

}  // namespace
}  // namespace nacre::test
