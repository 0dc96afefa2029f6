// Kernel programs: what a fused kernel does, as a short list of micro-ops over tiles of rows. The
// same program is run by every back end: the CPU interprets it tile by tile with SIMD micro-kernels
// whose registers stay in cache.
//
// A register holds, for each row of the tile, `width` floats. Operands are pointers bound at run
// time, in the order of `operands`. Row r of the tile has: a position (its row number in the
// domain: vertex id, or edge number in in-CSR order) and, in edge domains, a source, a destination
// and a type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

enum class MicroOp : uint8_t {
  load,       // out = operand[position]               (a value of the domain's own space)
  load_src,   // out = operand[src]
  load_dst,   // out = operand[dst]
  load_type,  // out = operand[type]
  load_row0,  // out = operand[0] for every row        (a parameter)
  root,       // out = the row just computed by the kernel this program follows (post programs only)
  // out = a ∘ b; a (b) has width out.width / a_repeat (b_repeat): each element stands for `repeat`
  // ones
  add,
  sub,
  mul,
  scale,  // out = alpha · a
  relu,
  leaky_relu,
  elu,
  sigmoid,
  tanh,
  relu_grad,  // a = g, b = y, as in dfg/op.h
  leaky_relu_grad,
  elu_grad,
  sigmoid_grad,
  tanh_grad,
  inv,
  inv_sqrt,
  dropout,  // element number = position · width + column; alpha = share dropped, salt
  expand,   // out = a with every element repeated a_repeat times
  row_sum,  // out = sums of consecutive groups of a_width / out.width elements
  dot,      // out = row_sum(a · b) without storing the product
  concat,   // out = per group of the last dim: a's `a_part` elements, then b's `b_part`
  slice,    // out = elements [begin, begin + b_part) of each group of a_part elements
  // the transpose of slice: groups of a_part elements land at `begin` of groups of b_part, 0
  // elsewhere
  pad,
  // out = a where operand (i32 argmax rows by dst) equals the row's position, else 0
  take_max,
  row_normalize,       // alpha = epsilon
  row_normalize_grad,  // a = g, b = x
  log_softmax,
  log_softmax_grad,  // a = g, b = y
  standardize,       // a = x; operand = moments p[2,F]; alpha = epsilon
  gemm,              // out = a · operand, one matrix [K,N]: a has width K, out width N
  gemm_t,            // out = a · operandᵀ: a has width N, out width K
  // the same with the matrix of each row's type: operand holds one [K,N] per type
  typed_gemm,
  typed_gemm_t,
  store,  // operand[position] = a
};

struct Micro {
  MicroOp op = MicroOp::load;
  int out = -1;  // register written (-1 for store)
  int a = -1;    // registers read
  int b = -1;
  int operand = -1;  // index into RowProgram::operands
  int a_repeat = 1;
  int b_repeat = 1;
  int a_part = 0;  // concat, slice, pad: sizes along the last dim
  int b_part = 0;
  int begin = 0;
  float alpha = 0;
  uint64_t salt = 0;
};

struct RowProgram {
  Space domain;
  std::vector<Micro> code;        // registers are written once, before they are read
  std::vector<int64_t> widths;    // of each register
  std::vector<NodeRef> operands;  // the DFG value behind each pointer
  // per operand: stored as bf16 (GPU only); operands past its end are not
  std::vector<char> narrow;
  bool empty() const { return code.empty(); }
  bool is_narrow(int operand) const {
    return static_cast<size_t>(operand) < narrow.size() && narrow[static_cast<size_t>(operand)] != 0;
  }
};

inline bool is_product(MicroOp op) { return op >= MicroOp::gemm && op <= MicroOp::typed_gemm_t; }
inline bool is_typed_product(MicroOp op) { return op == MicroOp::typed_gemm || op == MicroOp::typed_gemm_t; }
inline bool is_transposed_product(MicroOp op) { return op == MicroOp::gemm_t || op == MicroOp::typed_gemm_t; }
// Whether the program multiplies by matrices.
bool has_products(const RowProgram& program);

std::string program_text(const RowProgram& program);

}  // namespace nacre
