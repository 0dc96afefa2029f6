// Row programs: what a fused kernel computes, written as a short list of micro-ops over tiles of
// rows. Every back end runs the same program. The CPU interprets it tile by tile with SIMD
// micro-kernels whose registers stay in cache; the GPU back end translates it to CUDA source.
//
// A register holds `width` floats for each row of the tile. Operands are pointers that are bound at
// run time, in the order of `operands`. Row r of a tile has a position, which is its row number in
// the program's space (a vertex id, or an edge number in in-CSR order). In edge spaces, a row also
// has a source, a destination and a type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

enum class MicroOp : uint8_t {
  load,       // out = operand[position], a value of the program's own space
  load_src,   // out = operand[src]
  load_dst,   // out = operand[dst]
  load_type,  // out = operand[type]
  load_row0,  // out = operand[0] for every row; used for parameters
  root,       // out = the row just computed by the kernel this program follows (post programs only)
  // add, sub, mul: out = a ∘ b. The width of a is out.width / a_repeat, and each element of a is
  // used a_repeat times in a row; the same holds for b and b_repeat.
  add,
  sub,
  mul,
  scale,  // out = alpha · a
// The functions of dfg/activations.h, applied to a, then their gradients, for which a is the
// gradient of the result and b is the result.
#define NACRE_MICRO(name, ...) name,
#define NACRE_GRADIENT_MICRO(name, ...) name##_grad,
  NACRE_ACTIVATIONS(NACRE_MICRO) NACRE_ACTIVATIONS(NACRE_GRADIENT_MICRO)
#undef NACRE_MICRO
#undef NACRE_GRADIENT_MICRO
      inv,
  inv_sqrt,
  // dropout: out = a, with dropped elements set to 0 and kept ones divided by 1 - alpha. alpha is
  // the share of elements that are dropped. The draws depend on salt and on the number of the
  // element, position · width + column.
  dropout,
  expand,   // out = a with every element repeated a_repeat times
  row_sum,  // out = sums of consecutive groups of a_width / out.width elements
  dot,      // out = row_sum(a · b) without storing the product
  concat,   // out = per group of the last dim: a's `a_part` elements, then b's `b_part`
  slice,    // out = elements [begin, begin + b_part) of each group of a_part elements
  // pad: the transpose of slice. Each group of a_part elements is placed at `begin` of a group of
  // b_part elements; the other elements are 0.
  pad,
  // take_max: out = a where operand (int32 argmax rows, one for each destination) equals the row's
  // position; 0 elsewhere.
  take_max,
  row_normalize,       // alpha = epsilon
  row_normalize_grad,  // a = gradient of the result, b = x
  log_softmax,
  log_softmax_grad,  // a = gradient of the result, b = the result
  standardize,       // a = x; operand = moments p[2,F]; alpha = epsilon
  gemm,              // out = a · operand, one matrix [K,N]: a has width K, out width N
  gemm_t,            // out = a · operandᵀ: a has width N, out width K
  // typed_gemm and typed_gemm_t are gemm and gemm_t with the matrix of each row's type; operand
  // holds one matrix [K,N] for each type.
  typed_gemm,
  typed_gemm_t,
  store,  // operand[position] = a
};

struct Micro {
  MicroOp op = MicroOp::load;
  int out = -1;  // register written (-1 for store)
  int a = -1;    // registers read (-1: not used)
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

// The largest number of registers of a program.
inline constexpr int kMaxRegisters = 128;

struct RowProgram {
  Space domain;
  std::vector<Micro> code;        // registers are written once, before they are read
  std::vector<int64_t> widths;    // width of each register
  std::vector<NodeRef> operands;  // the DFG value behind each pointer
  // For each operand: nonzero if it is stored as bf16 (GPU only). The operands beyond the end of
  // this list are stored as f32.
  std::vector<char> narrow;
  // Whether dropout draws by the numbers that the rows have in the whole graph, because several
  // ranks share the graph.
  bool numbered = false;
  // Whether the program loads nothing from memory that it stores to.
  bool stores_apart = false;
  bool empty() const { return code.empty(); }
  bool is_narrow(int operand) const { return static_cast<size_t>(operand) < narrow.size() && narrow[operand] != 0; }
};

inline bool is_product(MicroOp op) { return op >= MicroOp::gemm && op <= MicroOp::typed_gemm_t; }
inline bool is_typed_product(MicroOp op) { return op == MicroOp::typed_gemm || op == MicroOp::typed_gemm_t; }
inline bool is_transposed_product(MicroOp op) { return op == MicroOp::gemm_t || op == MicroOp::typed_gemm_t; }
// Returns whether the program multiplies by matrices.
bool has_products(const RowProgram& program);

// Returns the row of dfg/activations.h that defines `op` as a function or as a gradient; nullptr if
// there is none.
const ActivationInfo* find_activation(MicroOp op);
// Returns the micro-op of an operation that is a row of dfg/activations.h or the gradient of one.
MicroOp activation_micro(Op op);

std::string program_text(const RowProgram& program);

}  // namespace nacre
