// Compares the reference operations with values worked out by hand, on one block with an empty
// destination, a duplicate edge, a self loop and a type without edges. Every operation has an
// entry, in double (through the interpreter) and in float.
#include "nacre/kernel/ref/ref_op.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "nacre/base/error.h"
#include "nacre/dfg/random.h"
#include "nacre/kernel/ref/interpreter.h"

namespace nacre {
namespace {

constexpr StepContext kStep{.seed = 5, .step = 3};

// Returns sources 0 … 3 and destinations 0 … 2 with the edges 1→0, 2→0, 2→2, 2→2, 3→2 of types 0,
// 1, 1, 1, 0.
Blocks small_block() {
  GraphArrays arrays;
  arrays.num_src = 4;
  arrays.num_dst = 3;
  arrays.row_ptr = std::vector<int64_t>{0, 2, 2, 5};
  arrays.col_idx = std::vector<NodeId>{1, 2, 2, 2, 3};
  arrays.edge_type = std::vector<uint16_t>{0, 1, 1, 1, 0};
  arrays.num_edge_types = 3;
  return Blocks({Graph(arrays, "small block")});
}

using Values = std::vector<double>;

struct Operand {
  ValueType type;
  Values values;
};

struct OpCase {
  std::string name;
  Node node;
  std::vector<Operand> operands;
  std::string type;
  Values expected;
};

ValueType v0(Dims dims = {}) { return {Space::vertex(0), std::move(dims)}; }
ValueType v1(Dims dims = {}) { return {Space::vertex(1), std::move(dims)}; }
ValueType e0(Dims dims = {}) { return {Space::edge(0), std::move(dims)}; }
ValueType s0(Dims dims = {}) { return {Space::pair_src(0), std::move(dims)}; }
ValueType d0(Dims dims = {}) { return {Space::pair_dst(0), std::move(dims)}; }
ValueType ty(Dims dims = {}) { return {Space::type(), std::move(dims)}; }
ValueType pa(Dims dims = {}) { return {Space::param(), std::move(dims)}; }
ValueType rows(int64_t count, Dims dims = {}) { return {Space::rows(count), std::move(dims)}; }
ValueType as(DType dtype, ValueType type) {
  type.dtype = dtype;
  return type;
}

Values ramp(int n, double first = 1) {
  Values values;
  for (int i = 0; i < n; ++i) values.push_back(first + i);
  return values;
}

Node op(Op which, Attr attr = Attr::none) { return {.op = which, .attr = attr}; }
Node op(Op which, double alpha) { return {.op = which, .alpha = alpha}; }
Node to(Op which, ValueType type) { return {.op = which, .type = std::move(type)}; }
Node with_ints(Op which, std::vector<int64_t> ints) { return {.op = which, .ints = std::move(ints)}; }

void index_cases(std::vector<OpCase>& out) {
  const Values edges = {1, 2, 4, 8, 16};
  const Values rows = {-1, 5, -2, 6, 3, 1, 3, 0, 2, 1};
  const ValueType argmax = as(DType::i32, v1({2}));
  Node along_type = op(Op::index, Attr::type);
  along_type.ints = {0};
  out.insert(out.end(),
             {{"constant", {.op = Op::constant, .type = v1({2}), .alpha = 2.5}, {}, "v1[2]", Values(6, 2.5)},
              {"degree_dst", {.op = Op::degree, .type = v1(), .attr = Attr::dst}, {}, "v1[]", {2, 0, 3}},
              {"degree_src", {.op = Op::degree, .type = v0(), .attr = Attr::src}, {}, "v0[]", {0, 1, 3, 1}},
              {"typed_degree", to(Op::typed_degree, e0()), {}, "e0[]", {1, 1, 2, 2, 1}},
              {"index_src",
               op(Op::index, Attr::src),
               {{v0({2}), {0, 1, 10, 11, 20, 21, 30, 31}}},
               "e0[2]",
               {10, 11, 20, 21, 20, 21, 20, 21, 30, 31}},
              {"index_dst", op(Op::index, Attr::dst), {{v1(), {7, 8, 9}}}, "e0[]", {7, 7, 9, 9, 9}},
              {"index_type", along_type, {{ty(), {5, 6, 7}}}, "e0[]", {5, 6, 6, 6, 5}},
              {"index_self", op(Op::index, Attr::self), {{v0(), {1, 2, 3, 4}}}, "v1[]", {1, 2, 3}},
              {"index_add_src", op(Op::index_add, Attr::src), {{e0(), edges}}, "v0[]", {0, 1, 14, 16}},
              {"index_add_dst", op(Op::index_add, Attr::dst), {{e0(), edges}}, "v1[]", {3, 0, 28}},
              {"index_add_type", op(Op::index_add, Attr::type), {{e0(), edges}}, "t[]", {17, 14, 0}},
              {"index_add_self", op(Op::index_add, Attr::self), {{v1(), {1, 2, 3}}}, "v0[]", {1, 2, 3, 0}},
              {"index_mean", op(Op::index_mean, Attr::dst), {{e0(), {1, 2, 4, 8, 15}}}, "v1[]", {1.5, 0, 9}},
              {"index_max", op(Op::index_max, Attr::dst), {{e0({2}), rows}}, "v1[2]", {-1, 6, 0, 0, 3, 1}},
              {"index_argmax", op(Op::index_argmax, Attr::dst), {{e0({2}), rows}}, "v1[2]:i32", {0, 1, -1, -1, 2, 2}},
              {"index_take_max",
               op(Op::index_take_max, Attr::dst),
               {{v1({2}), {10, 20, 30, 40, 50, 60}}, {argmax, {0, 1, -1, -1, 2, 4}}},
               "e0[2]",
               {10, 0, 0, 20, 50, 0, 0, 0, 0, 60}},
              {"edge_softmax",
               op(Op::edge_softmax, Attr::dst),
               {{e0(), {0, std::log(3), 800, 800, 800 + std::log(2)}}},
               "e0[]",
               {0.25, 0.75, 0.25, 0.25, 0.5}},
              {"edge_softmax_grad",
               op(Op::edge_softmax_grad, Attr::dst),
               {{e0(), edges}, {e0(), {0.25, 0.75, 0.25, 0.25, 0.5}}},
               "e0[]",
               {-0.1875, 0.1875, -1.75, -0.75, 2.5}}});
}

// The source pairs by (type, vertex) are (0, 1), (0, 3), (1, 2); the destination pairs are (0, 0),
// (0, 2), (1, 0), (1, 2).
void pair_cases(std::vector<OpCase>& out) {
  const auto index = [](Attr attr, std::vector<int64_t> ints) {
    return Node{.op = Op::index, .attr = attr, .ints = std::move(ints)};
  };
  const Values edges = {1, 2, 4, 8, 16};
  const Operand x{s0({2}), {1, 1, 2, 0, 1, 3}};
  const Operand w{ty({2, 1}), {1, 2, 10, 20, 100, 200}};
  out.insert(out.end(),
             {{"index_src_to_pairs", index(Attr::src, {1}), {{v0(), ramp(4)}}, "s0[]", {2, 4, 3}},
              {"index_dst_to_pairs", index(Attr::dst, {1}), {{v1(), {7, 8, 9}}}, "d0[]", {7, 9, 7, 9}},
              {"index_type_to_src_pairs", index(Attr::type, {0, 1}), {{ty(), {5, 6, 7}}}, "s0[]", {5, 5, 6}},
              {"index_type_to_dst_pairs", index(Attr::type, {0, 2}), {{ty(), {5, 6, 7}}}, "d0[]", {5, 5, 6, 6}},
              {"index_pair_src", index(Attr::pair_src, {}), {{s0(), ramp(3)}}, "e0[]", {1, 3, 3, 3, 2}},
              {"index_pair_dst", index(Attr::pair_dst, {}), {{d0(), ramp(4)}}, "e0[]", {1, 3, 4, 4, 2}},
              {"index_add_pair_src", op(Op::index_add, Attr::pair_src), {{e0(), edges}}, "s0[]", {1, 16, 14}},
              {"index_add_pair_dst", op(Op::index_add, Attr::pair_dst), {{e0(), edges}}, "d0[]", {1, 16, 2, 12}},
              {"index_add_of_src_pairs", op(Op::index_add, Attr::src), {{s0(), ramp(3)}}, "v0[]", {0, 1, 3, 2}},
              {"index_add_of_dst_pairs", op(Op::index_add, Attr::dst), {{d0(), ramp(4)}}, "v1[]", {4, 0, 6}},
              {"index_add_type_of_src_pairs", op(Op::index_add, Attr::type), {{s0(), ramp(3)}}, "t[]", {3, 3, 0}},
              {"index_add_type_of_dst_pairs", op(Op::index_add, Attr::type), {{d0(), ramp(4)}}, "t[]", {3, 7, 0}},
              {"typed_matmul_on_pairs", op(Op::typed_matmul), {x, w}, "s0[1]", {3, 2, 70}},
              {"typed_matmul_t_on_pairs",
               op(Op::typed_matmul_t),
               {{d0({1}), ramp(4)}, w},
               "d0[2]",
               {1, 2, 2, 4, 30, 60, 40, 80}},
              {"typed_weight_grad_on_pairs",
               op(Op::typed_weight_grad),
               {x, {s0({1}), ramp(3)}},
               "t[2,1]",
               {5, 1, 3, 9, 0, 0}}});
}

// H = 1. All gates but g are ½ unless w moves them; g is ½, ¼ and 0.8 at sources 1, 2 and 3.
void lstm_cases(std::vector<OpCase>& out) {
  Values z(16, 0);
  z[1 * 4 + 2] = std::atanh(0.5);
  z[2 * 4 + 2] = std::atanh(0.25);
  z[3 * 4 + 2] = std::atanh(0.8);
  const Values still(4, 0);
  out.push_back({"lstm",
                 op(Op::lstm, Attr::dst),
                 {{v0({4}), z}, {pa({1, 4}), still}},
                 "v1[1]",
                 {0.5 * std::tanh(0.25), 0, 0.5 * std::tanh(0.49375)}});

  // w feeds h back into the input gate only: c ← c/2 + σ(h)·g.
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto next_c = [&](double c, double g) { return c / 2 + sigmoid(std::tanh(c) / 2) * g; };
  const double c0 = next_c(next_c(0, 0.5), 0.25);
  const double c2 = next_c(next_c(next_c(0, 0.25), 0.25), 0.8);
  out.push_back({"lstm_recurrent",
                 op(Op::lstm, Attr::dst),
                 {{v0({4}), z}, {pa({1, 4}), {1, 0, 0, 0}}},
                 "v1[1]",
                 {0.5 * std::tanh(c0), 0, 0.5 * std::tanh(c2)}});

  // These are the same gates, with one row per edge.
  Values at_edges;
  for (const size_t src : {1, 2, 2, 2, 3}) {
    for (size_t j = 0; j < 4; ++j) at_edges.push_back(z[4 * src + j]);
  }
  out.push_back({"lstm_of_edges",
                 op(Op::lstm, Attr::dst),
                 {{e0({4}), at_edges}, {pa({1, 4}), {1, 0, 0, 0}}},
                 "v1[1]",
                 {0.5 * std::tanh(c0), 0, 0.5 * std::tanh(c2)}});

  // Only the state of destination 0 has a gradient, and w = 0: c1 = c2 = ¼ and d = ∂h/∂c2.
  const double t = std::tanh(0.25);
  const double d = 0.5 * (1 - t * t);
  const Values step1 = {d / 2 * 0.5 * 0.25, 0, d / 2 * 0.5 * 0.75, 0};
  const Values step2 = {d * 0.25 * 0.25, d * 0.25 * 0.25, d * 0.5 * 0.9375, t * 0.25};
  Values dz(16, 0);
  Values dw;
  for (size_t j = 0; j < 4; ++j) {
    dz[4 + j] = step1[j];
    dz[8 + j] = step2[j];
    dw.push_back(0.5 * t * step2[j]);
  }
  const std::vector<Operand> operands = {{v1({1}), {1, 0, 0}}, {v0({4}), z}, {pa({1, 4}), still}};
  out.push_back({"lstm_grad_z", op(Op::lstm_grad_z), operands, "v0[4]", dz});
  out.push_back({"lstm_grad_w", op(Op::lstm_grad_w), operands, "p[1,4]", dw});
  Values dz_edges(20, 0);
  std::copy(step1.begin(), step1.end(), dz_edges.begin());
  std::copy(step2.begin(), step2.end(), dz_edges.begin() + 4);
  const std::vector<Operand> on_edges = {{v1({1}), {1, 0, 0}}, {e0({4}), at_edges}, {pa({1, 4}), still}};
  out.push_back({"lstm_grad_z_of_edges", op(Op::lstm_grad_z), on_edges, "e0[4]", dz_edges});

  // Edges 0 and 1 go to destination 0, the others to 2.
  Values gates;
  for (const double g : {0.5, 0.25, 0.25, 0.25, 0.8}) gates.insert(gates.end(), {0.5, 0.5, g, 0.5});
  out.push_back({"lstm_gates", op(Op::lstm_gates), {{v0({4}), z}, {pa({1, 4}), still}}, "e0[4]", gates});
  out.push_back({"lstm_gates_grad",
                 op(Op::lstm_gates_grad),
                 {{v1({1}), {1, 0, 0}}, {e0({4}), gates}, {pa({1, 4}), still}},
                 "e0[4]",
                 dz_edges});
  out.push_back({"lstm_states",
                 op(Op::lstm_states),
                 {{e0({4}), gates}},
                 "e0[1]",
                 {0, 0.5 * t, 0, 0.5 * std::tanh(0.125), 0.5 * std::tanh(0.1875)}});
  out.push_back({"lstm_grad_w_of_edges", op(Op::lstm_grad_w), on_edges, "p[1,4]", dw});
}

void matrix_cases(std::vector<OpCase>& out) {
  const Operand x{v1({2}), {1, 2, 0, -1, 3, 0.5}};
  const Operand w{pa({2, 3}), ramp(6)};
  const Operand typed_x{e0({2}), {1, 1, 1, 1, 0, 1, 2, 0, 3, 1}};
  const Operand typed_w{ty({2, 1}), {1, 2, 10, 20, 100, 200}};
  const Operand typed_g{e0({1}), ramp(5)};
  out.insert(
      out.end(),
      {{"matmul", op(Op::matmul), {x, w}, "v1[3]", {9, 12, 15, -4, -5, -6, 5, 8.5, 12}},
       {"matmul_one_row", op(Op::matmul), {{pa({2}), {1, 2}}, w}, "p[3]", {9, 12, 15}},
       {"matmul_t", op(Op::matmul_t), {{v1({3}), {1, 0, -1, 2, 1, 0, 0, 0, 1}}, w}, "v1[2]", {-2, -2, 4, 13, 3, 6}},
       {"weight_grad", op(Op::weight_grad), {x, {v1({1}), {1, 2, 4}}}, "p[2,1]", {13, 2}},
       {"typed_matmul", op(Op::typed_matmul), {typed_x, typed_w}, "e0[1]", {3, 30, 20, 20, 5}},
       {"typed_matmul_t", op(Op::typed_matmul_t), {typed_g, typed_w}, "e0[2]", {1, 2, 20, 40, 30, 60, 40, 80, 5, 10}},
       {"typed_weight_grad", op(Op::typed_weight_grad), {typed_x, typed_g}, "t[2,1]", {16, 6, 10, 5, 0, 0}}});
}

void elementwise_cases(std::vector<OpCase>& out) {
  const auto unary = [&](const char* name, Node node, Values x, Values y) {
    out.push_back({name, std::move(node), {{v1(), std::move(x)}}, "v1[]", std::move(y)});
  };
  const auto gradient = [&](const char* name, Node node, Values g, Values y, Values expected) {
    out.push_back({name, std::move(node), {{v1(), std::move(g)}, {v1(), std::move(y)}}, "v1[]", std::move(expected)});
  };
  const Values rows12 = ramp(12);
  out.insert(
      out.end(),
      {{"add_prefix_of_p",
        op(Op::add),
        {{v1({2, 2}), rows12}, {pa({2}), {10, 20}}},
        "v1[2,2]",
        {11, 12, 23, 24, 15, 16, 27, 28, 19, 20, 31, 32}},
       {"sub_scalar_first", op(Op::sub), {{pa(), {5}}, {v1(), {1, 2, 3}}}, "v1[]", {4, 3, 2}},
       {"mul_row_scalar", op(Op::mul), {{v1(), {1, 2, 3}}, {v1({2}), ramp(6)}}, "v1[2]", {1, 2, 6, 8, 15, 18}},
       {"mul_wider_p", op(Op::mul), {{pa({1, 2}), {2, 3}}, {v1({1}), {1, 2, 3}}}, "v1[1,2]", {2, 3, 4, 6, 6, 9}}});
  unary("scale", op(Op::scale, -2.0), {1, -2, 0.5}, {-2, 4, -1});
  unary("relu", op(Op::relu), {-1, 0, 2}, {0, 0, 2});
  unary("leaky_relu", op(Op::leaky_relu, 0.1), {-1, 0, 2}, {-0.1, 0, 2});
  unary("elu", op(Op::elu, 2.0), {-std::log(2), 0, 3}, {-1, 0, 3});
  unary("sigmoid", op(Op::sigmoid), {0, std::log(3), -std::log(3)}, {0.5, 0.75, 0.25});
  unary("sigmoid_far", op(Op::sigmoid), {-1000, 1000, 0}, {0, 1, 0.5});
  unary("tanh", op(Op::tanh), {0, std::atanh(0.5), -1000}, {0, 0.5, -1});
  gradient("relu_grad", op(Op::relu_grad), {3, 4, 5}, {0, 0, 2}, {0, 0, 5});
  gradient("leaky_relu_grad", op(Op::leaky_relu_grad, 0.1), {3, 4, 5}, {-0.1, 0, 2}, {0.3, 0.4, 5});
  gradient("elu_grad", op(Op::elu_grad, 2.0), {3, 4, 5}, {-1, 0, 3}, {3, 8, 5});
  gradient("sigmoid_grad", op(Op::sigmoid_grad), {4, 16, 16}, {0.5, 0.75, 0.25}, {1, 3, 3});
  gradient("tanh_grad", op(Op::tanh_grad), {1, 4, 8}, {0, 0.5, -0.5}, {1, 3, 6});
  unary("inv", op(Op::inv), {2, 0, -4}, {0.5, 0, -0.25});
  unary("inv_sqrt", op(Op::inv_sqrt), {4, 0, -1}, {0.5, 0, 0});

  Values kept;
  for (uint64_t i = 0; i < 15; ++i) {
    kept.push_back(dropout_keep(DropoutStream(kStep.seed, 9, kStep.step), i, dropout_threshold(0.75)) ? 4.0 : 0.0);
  }
  out.push_back({"dropout", {.op = Op::dropout, .alpha = 0.75, .salt = 9}, {{v1({5}), Values(15, 1)}}, "v1[5]", kept});
}

void shape_cases(std::vector<OpCase>& out) {
  out.insert(
      out.end(),
      {{"row_sum_1", with_ints(Op::row_sum, {1}), {{v1({2, 2}), ramp(12)}}, "v1[2]", {3, 7, 11, 15, 19, 23}},
       {"join_rows",
        to(Op::join_rows, v0()),
        {{rows(1, {2}), {7, 8}}, {rows(0, {2}), {}}, {rows(3, {2}), ramp(6)}},
        "v0[2]",
        {7, 8, 1, 2, 3, 4, 5, 6}},
       {"join_counted", to(Op::join_rows, rows(3)), {{rows(2), {4, 5}}, {rows(1), {6}}}, "r3[]", {4, 5, 6}},
       {"slice_rows", with_ints(Op::slice_rows, {1, 2}), {{v0({2}), ramp(8)}}, "r2[2]", {3, 4, 5, 6}},
       {"slice_counted", with_ints(Op::slice_rows, {2, 1}), {{rows(3), ramp(3)}}, "r1[]", {3}},
       {"row_sum_0", with_ints(Op::row_sum, {0}), {{v1({2, 2}), ramp(12)}}, "v1[]", {10, 26, 42}},
       {"expand_p", to(Op::expand, v1({2, 2})), {{pa({2}), {1, 2}}}, "v1[2,2]", {1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2}},
       {"expand_dims", to(Op::expand, v1({2})), {{v1(), {1, 2, 3}}}, "v1[2]", {1, 1, 2, 2, 3, 3}},
       {"reshape", to(Op::reshape, v1({2, 2})), {{v1({4}), ramp(12)}}, "v1[2,2]", ramp(12)},
       {"concat",
        op(Op::concat),
        {{v1({2, 1}), ramp(6)}, {v1({2, 2}), ramp(12, 10)}},
        "v1[2,3]",
        {1, 10, 11, 2, 12, 13, 3, 14, 15, 4, 16, 17, 5, 18, 19, 6, 20, 21}},
       {"slice", with_ints(Op::slice, {1, 1}), {{v1({2, 3}), ramp(18)}}, "v1[2,1]", {2, 5, 8, 11, 14, 17}},
       {"pad", with_ints(Op::pad, {1, 3}), {{v1({1}), {1, 2, 3}}}, "v1[3]", {0, 1, 0, 0, 2, 0, 0, 3, 0}},
       {"column_sum", op(Op::column_sum), {{v1({2}), ramp(6)}}, "p[2]", {9, 12}}});
}

void norm_cases(std::vector<OpCase>& out) {
  const double root3 = std::sqrt(3.0);
  out.insert(
      out.end(),
      {{"column_moments", op(Op::column_moments), {{v1({2}), {1, 10, 2, 10, 6, 10}}}, "p[2,2]", {3, 10, 14.0 / 3, 0}},
       {"standardize",
        op(Op::standardize, 0.25),
        {{v1({1}), {1, 2, 6}}, {pa({2, 1}), {3, 3.75}}},
        "v1[1]",
        {-1, -0.5, 1.5}},
       {"standardize_grad",
        op(Op::standardize_grad, 1.0 / 3),
        {{v1({1}), {1, 2, 6}}, {v1({1}), {-1, 0, 1}}, {pa({2, 1}), {0, 2.0 / 3}}},
        "v1[1]",
        {-1.0 / 3, -1, 4.0 / 3}},
       {"row_normalize",
        op(Op::row_normalize, 1.0 / 3),
        {{v1({3}), {-1, 0, 1, 2, 2, 2, 4, 5, 6}}},
        "v1[3]",
        {-1, 0, 1, 0, 0, 0, -1, 0, 1}},
       {"row_normalize_grad",
        op(Op::row_normalize_grad, 1.0 / 3),
        {{v1({3}), {1, 2, 6, 3, 0, 0, 0, 0, 0}}, {v1({3}), {-1, 0, 1, 2, 2, 2, 4, 5, 6}}},
        "v1[3]",
        {-1.0 / 3, -1, 4.0 / 3, 2 * root3, -root3, -root3, 0, 0, 0}}});
}

void loss_cases(std::vector<OpCase>& out) {
  const double l25 = std::log(0.25);
  const double l75 = std::log(0.75);
  const double l50 = std::log(0.5);
  const Operand lp{v1({2}), {-1, -2, -3, -4, -5, -6}};
  const Operand label{as(DType::i32, v1()), {1, -1, 0}};
  const Operand weight{v1(), {0.5, 10, 2}};
  const Operand logits{v1({2}), {0, 1000, std::log(3), -1000, 7, 7}};
  const Operand target{as(DType::u8, v1({2})), {1, 1, 0, 0, 1, 0}};
  const Operand bce_weight{v1(), {2, 1, 0}};
  out.insert(out.end(),
             {{"log_softmax",
               op(Op::log_softmax),
               {{v1({2}), {0, std::log(3), 1000, 1000, -1000, 1000}}},
               "v1[2]",
               {l25, l75, l50, l50, -2000, 0}},
              {"log_softmax_grad",
               op(Op::log_softmax_grad),
               {{v1({2}), {1, 3, 2, 0, 0, 1}}, {v1({2}), {l25, l75, l50, l50, l25, l75}}},
               "v1[2]",
               {0, 0, 1, -1, -0.25, 0.25}},
              {"nll", op(Op::nll), {lp, label, weight}, "p[]", {11}},
              {"nll_grad", op(Op::nll_grad), {lp, label, weight, {pa(), {3}}}, "v1[2]", {0, -1.5, 0, 0, -6, 0}},
              {"bce", op(Op::bce), {logits, target, bce_weight}, "p[]", {4 * std::log(2)}},
              {"bce_grad", op(Op::bce_grad), {logits, target, bce_weight, {pa(), {2}}}, "v1[2]", {-2, 0, 1.5, 0, 0, 0}},
              {"l2", op(Op::l2), {{v1({2}), ramp(6)}}, "p[]", {45.5}}});
}

// Without other ranks, communication copies.
void exchange_cases(std::vector<OpCase>& cases) {
  const ValueType halo{Space::halo(0), {}};
  cases.push_back({"exchange", {.op = Op::exchange}, {{v0(), {1, 2, 3, 4}}}, "h0[]", {1, 2, 3, 4}});
  cases.push_back({"exchange_add", {.op = Op::exchange_add}, {{halo, {1, 2, 3, 4}}}, "v0[]", {1, 2, 3, 4}});
  cases.push_back({"all_reduce", {.op = Op::all_reduce}, {{pa({2}), {5, 6}}}, "p[2]", {5, 6}});
  cases.push_back(
      {"to_columns", {.op = Op::to_columns, .ints = {0, 0, 1}}, {{v0({1}), {1, 2, 3, 4}}}, "v0[1]", {1, 2, 3, 4}});
  cases.push_back(
      {"to_rows", {.op = Op::to_rows, .ints = {0, 0, 1, 1}}, {{v0({1}), {1, 2, 3, 4}}}, "v0[1]", {1, 2, 3, 4}});
  cases.push_back(
      {"index_src_of_halo", {.op = Op::index, .attr = Attr::src}, {{halo, {1, 2, 3, 4}}}, "e0[]", {2, 3, 3, 3, 4}});
  cases.push_back({"index_add_to_halo",
                   {.op = Op::index_add, .attr = Attr::src, .ints = {1}},
                   {{e0(), {1, 2, 3, 4, 5}}},
                   "h0[]",
                   {0, 1, 9, 5}});
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  exchange_cases(cases);
  index_cases(cases);
  pair_cases(cases);
  lstm_cases(cases);
  matrix_cases(cases);
  elementwise_cases(cases);
  shape_cases(cases);
  norm_cases(cases);
  loss_cases(cases);
  return cases;
}

class RefOp : public testing::TestWithParam<OpCase> {};

// Runs the case with all its vertex, edge and pair spaces moved `up` layers.
void expect_values(const OpCase& c, const Blocks& blocks, int up) {
  const auto moved = [up](ValueType type) {
    if (type.space.on_vertices() || type.space.is_typed()) type.space.layer += up;
    return type;
  };
  Dfg dfg;
  ref::Bindings bindings;
  Node node = c.node;
  node.type = moved(node.type);
  const bool names_layer =
      (node.op == Op::index && node.attr == Attr::type) || node.op == Op::to_columns || node.op == Op::to_rows;
  if (names_layer) node.ints[0] += up;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    node.inputs.push_back(dfg.add({.op = Op::input, .type = moved(c.operands[i].type), .name = name}));
    bindings[name] = c.operands[i].values;
  }
  const NodeRef y = dfg.add(node);
  if (up == 0) {
    EXPECT_EQ(type_text(dfg[y].type), c.type);
  }
  ref::Interpreter interpreter(dfg, blocks);
  interpreter.run(bindings, kStep);
  const Values values = interpreter.value(y);
  ASSERT_EQ(values.size(), c.expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], c.expected[i], 1e-12) << "element " << i;
}

TEST_P(RefOp, GivesTheValueWorkedOutByHand) { expect_values(GetParam(), small_block(), 0); }

TEST_P(RefOp, FollowsTheBlockOfItsLayer) {
  GraphArrays before;
  before.num_src = 6;
  before.num_dst = 4;
  before.row_ptr = std::vector<int64_t>{0, 1, 3, 6, 7};
  before.col_idx = std::vector<NodeId>{0, 4, 5, 0, 1, 5, 2};
  before.edge_type = std::vector<uint16_t>{2, 0, 2, 1, 0, 0, 2};
  before.num_edge_types = 3;
  expect_values(GetParam(), Blocks({Graph(before, "block before"), small_block().layer(0)}), 1);
}

// Operands of the float run, converted to the element types they are declared with.
struct FloatOperand {
  std::vector<float> floats;
  std::vector<int32_t> ints;
  std::vector<uint8_t> bytes;

  FloatOperand(DType dtype, const Values& values) {
    for (const double v : values) {
      if (dtype == DType::f32) floats.push_back(static_cast<float>(v));
      if (dtype == DType::i32) ints.push_back(static_cast<int32_t>(v));
      if (dtype == DType::u8) bytes.push_back(static_cast<uint8_t>(v));
    }
  }
  void* data(DType dtype) {
    if (dtype == DType::i32) return ints.data();
    if (dtype == DType::u8) return bytes.data();
    return floats.data();
  }
};

TEST_P(RefOp, GivesTheSameInFloat) {
  const OpCase& c = GetParam();
  const Blocks blocks = small_block();
  Dfg dfg;
  Node node = c.node;
  std::vector<FloatOperand> storage;
  storage.reserve(c.operands.size());
  std::vector<ref::ConstView> views;
  for (const Operand& o : c.operands) {
    node.inputs.push_back(dfg.add({.op = Op::input, .type = o.type, .name = "x" + std::to_string(views.size())}));
    storage.emplace_back(o.type.dtype, o.values);
    views.push_back({storage.back().data(o.type.dtype), o.type, blocks.rows(o.type.space)});
  }
  const ValueType type = infer_type(dfg, node);
  FloatOperand result(type.dtype, Values(c.expected.size(), 77));
  ref::run<float>(node, blocks, kStep, views, {result.data(type.dtype), type, blocks.rows(type.space)});
  for (size_t i = 0; i < c.expected.size(); ++i) {
    const double value = type.dtype == DType::i32 ? result.ints[i] : result.floats[i];
    EXPECT_NEAR(value, c.expected[i], 4e-5 * std::max(1.0, std::abs(c.expected[i]))) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, RefOp, testing::ValuesIn(op_cases()), [](const auto& p) { return p.param.name; });

TEST(RefOpTable, HasEveryOperationThatComputes) {
  std::set<Op> seen = {Op::input, Op::param};  // these are bound, not computed
  for (const OpCase& c : op_cases()) seen.insert(c.node.op);
  for (int i = 0; i < static_cast<int>(Op::count_); ++i) {
    EXPECT_TRUE(seen.contains(static_cast<Op>(i))) << op_info(static_cast<Op>(i)).name << " has no hand-checked value";
  }
}

TEST(RefOp, UntypedEdgesAreOfTypeZero) {
  GraphArrays arrays;
  arrays.num_src = arrays.num_dst = 2;
  arrays.row_ptr = std::vector<int64_t>{0, 1, 2};
  arrays.col_idx = std::vector<NodeId>{1, 0};
  Dfg dfg;
  const NodeRef x = dfg.add({.op = Op::input, .type = ty(), .name = "x"});
  const NodeRef y = dfg.add({.op = Op::index, .inputs = {x}, .attr = Attr::type, .ints = {0}});
  ref::Interpreter interpreter(dfg, Blocks({Graph(arrays, "untyped")}));
  interpreter.run({{"x", {3}}}, {});
  EXPECT_EQ(interpreter.value(y), (Values{3, 3}));
}

// The number of vertices is known only when a graph is bound.
TEST(RefOp, RefusesRowsThatDoNotFitTheGraph) {
  for (const int64_t count : {3, 5}) {
    Dfg dfg;
    const NodeRef x = dfg.add({.op = Op::input, .type = rows(count), .name = "x"});
    dfg.add({.op = Op::join_rows, .inputs = {x}, .type = v0()});
    ref::Interpreter interpreter(dfg, small_block());
    EXPECT_THROW(interpreter.run({{"x", ramp(static_cast<int>(count))}}, kStep), InternalError);
  }
  Dfg dfg;
  const NodeRef x = dfg.add({.op = Op::input, .type = v0(), .name = "x"});
  dfg.add({.op = Op::slice_rows, .inputs = {x}, .ints = {2, 3}});
  ref::Interpreter interpreter(dfg, small_block());
  EXPECT_THROW(interpreter.run({{"x", ramp(4)}}, kStep), InternalError);
}

TEST(RefOp, MovesRowsOfKinds) {
  KindRows kinds = {std::vector<NodeId>{1, 3}, std::vector<NodeId>{}, std::vector<NodeId>{0, 2}};
  const Blocks blocks({small_block().layer(0)}, std::make_shared<const KindRows>(std::move(kinds)));
  Dfg dfg;
  std::vector<NodeRef> parts;
  for (const int64_t kind : {0, 1, 2})
    parts.push_back(
        dfg.add({.op = Op::input, .type = {Space::of_kind(kind), {2}}, .name = "x" + std::to_string(kind)}));
  const NodeRef all = dfg.add({.op = Op::join_rows, .inputs = parts, .type = v0()});
  const NodeRef last = dfg.add({.op = Op::slice_rows, .inputs = {all}, .ints = {2}});
  EXPECT_EQ(print_dfg(parse_dfg(print_dfg(dfg))), print_dfg(dfg));
  ref::Interpreter interpreter(dfg, blocks);
  interpreter.run({{"x0", {1, 2, 3, 4}}, {"x1", {}}, {"x2", {5, 6, 7, 8}}}, kStep);
  EXPECT_EQ(interpreter.value(all), (Values{5, 6, 1, 2, 7, 8, 3, 4}));
  EXPECT_EQ(interpreter.value(last), (Values{5, 6, 7, 8}));
  EXPECT_THROW(ref::Interpreter(dfg, small_block()).run({}, kStep), InternalError) << "blocks without kinds";
}

TEST(RefOp, RefusesLabelsThatAreNoClass) {
  Dfg dfg;
  const NodeRef lp = dfg.add({.op = Op::input, .type = v1({2}), .name = "lp"});
  const NodeRef label = dfg.add({.op = Op::input, .type = as(DType::i32, v1()), .name = "label"});
  const NodeRef weight = dfg.add({.op = Op::input, .type = v1(), .name = "weight"});
  dfg.add({.op = Op::nll, .inputs = {lp, label, weight}});
  ref::Interpreter interpreter(dfg, small_block());
  const ref::Bindings bindings = {{"lp", Values(6, 0)}, {"label", {0, 2, 1}}, {"weight", {1, 1, 1}}};
  EXPECT_THROW(interpreter.run(bindings, {}), InternalError);
}

TEST(Interpreter, RefusesMissingAndUnfitBindings) {
  Dfg dfg;
  dfg.add({.op = Op::input, .type = as(DType::i32, v1()), .name = "label"});
  ref::Interpreter interpreter(dfg, small_block());
  EXPECT_THROW(interpreter.run({}, {}), UserError);
  EXPECT_THROW(interpreter.run({{"label", {1, 2}}}, {}), UserError);
  EXPECT_THROW(interpreter.run({{"label", {1, 2, 0.5}}}, {}), UserError);
  EXPECT_THROW(interpreter.run({{"label", {1, 2, 1e10}}}, {}), UserError);
  EXPECT_THROW(interpreter.run({{"label", {1, 2, std::nan("")}}}, {}), UserError);
  EXPECT_NO_THROW(interpreter.run({{"label", {1, 2, -1}}}, {}));
}

TEST(Interpreter, RefusesBlocksThatDoNotFit) {
  Dfg dfg;
  const NodeRef x = dfg.add({.op = Op::input, .type = v1(), .name = "x"});
  dfg.add({.op = Op::index, .inputs = {x}, .attr = Attr::self});
  // The DFG has two layers, but there is one block.
  EXPECT_THROW(ref::Interpreter(dfg, small_block()), InternalError);
  const Graph graph = small_block().layer(0);
  // 3 destinations do not match 4 sources.
  EXPECT_THROW(ref::Interpreter(dfg, Blocks({graph, graph})), InternalError);
}

TEST(Interpreter, RunsAgainOnOtherValues) {
  Dfg dfg;
  const NodeRef x = dfg.add({.op = Op::input, .type = v1(), .name = "x"});
  const NodeRef y = dfg.add({.op = Op::l2, .inputs = {x}});
  ref::Interpreter interpreter(dfg, small_block());
  interpreter.run({{"x", {1, 1, 0}}}, {});
  EXPECT_EQ(interpreter.scalar(y), 1);
  interpreter.run({{"x", {2, 2, 2}}}, {});
  EXPECT_EQ(interpreter.scalar(y), 6);
  EXPECT_THROW(interpreter.scalar(x), InternalError);
}

}  // namespace
}  // namespace nacre
