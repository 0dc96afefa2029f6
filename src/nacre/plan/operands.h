// The operands of hand-written kernels, by name.
//
// Kernel::args holds the operands of a kernel as a list, for code that treats all operands alike.
// The order of that list is defined here and nowhere else: it is the order of the members of the
// struct that names the kind of the kernel. Kernels that are made from a node as it is take the
// inputs of that node, so their members follow dfg/op.h. An absent operand is -1.
//
// Kinds without a struct: row programs have no operands in this list (theirs are
// RowProgram::operands); `copy` and `reference` have the inputs of their node.
#pragma once

#include <array>
#include <bit>
#include <span>

#include "nacre/plan/plan.h"

namespace nacre {

struct SpmmOperands {
  static constexpr std::array kinds = {KernelKind::spmm};
  NodeRef x = -1;
  NodeRef weight = -1;  // one number for each edge and head; if absent, all are 1
  // The rows at the end of the edges where the sum adds up. If this operand is given, the kernel
  // also computes their dot products with the gathered rows, for each edge and head
  // (Kernel::second).
  NodeRef own = -1;
};

struct ProductOperands {
  static constexpr std::array kinds = {KernelKind::matmul, KernelKind::typed_rows};
  NodeRef x = -1;
  NodeRef weight = -1;
};

struct WeightGradOperands {
  static constexpr std::array kinds = {KernelKind::weight_grad, KernelKind::typed_rows_grad};
  NodeRef x = -1;
  NodeRef gradient = -1;
};

struct TypedReduceOperands {
  static constexpr std::array kinds = {KernelKind::typed_reduce};
  NodeRef x = -1;  // rows of vertices, or sums over the edges of pairs
  NodeRef weight = -1;
  NodeRef scale = -1;  // one number for each edge; if absent, all are 1
};

struct TypedWeightGradOperands {
  static constexpr std::array kinds = {KernelKind::typed_weight_grad};
  NodeRef x = -1;
  NodeRef gradient = -1;
  NodeRef scale = -1;  // one number for each edge; if absent, all are 1
};

struct SoftmaxGradOperands {
  static constexpr std::array kinds = {KernelKind::softmax_grad};
  NodeRef y = -1;  // the softmax; the program of the kernel computes its gradient
};

struct LstmOperands {
  static constexpr std::array kinds = {KernelKind::lstm};
  NodeRef z = -1;
  NodeRef weight = -1;
};

struct LstmGradOperands {
  static constexpr std::array kinds = {KernelKind::lstm_grad};
  NodeRef gradient = -1;
  NodeRef z = -1;
  NodeRef weight = -1;
};

struct LstmGatesGradOperands {
  static constexpr std::array kinds = {KernelKind::lstm_gates_grad};
  NodeRef gradient = -1;
  NodeRef gates = -1;
  NodeRef weight = -1;
};

struct LossOperands {
  static constexpr std::array kinds = {KernelKind::loss};
  NodeRef x = -1;       // log-probabilities (nll) or logits (bce)
  NodeRef target = -1;  // labels (nll) or targets (bce)
  NodeRef weight = -1;
  // Gradient of the loss itself; absent unless the kernel computes a gradient.
  NodeRef gradient = -1;
};

struct ColumnMomentsOperands {
  static constexpr std::array kinds = {KernelKind::moments};
  NodeRef x = -1;
};

struct StandardizeGradOperands {
  static constexpr std::array kinds = {KernelKind::moments};
  NodeRef gradient = -1;
  NodeRef x = -1;
  NodeRef moments = -1;
};

// Copies the operands of `kernel` to `list` and fills the rest of `list` with -1. Throws
// InternalError unless `kinds` has the kind of the kernel and the kernel has at most as many
// operands as `list`.
void list_operands(const Kernel& kernel, std::span<const KernelKind> kinds, std::span<NodeRef> list);

// Returns the operands of a kernel whose kind is one of Operands::kinds.
template <class Operands>
Operands operands(const Kernel& kernel) {
  std::array<NodeRef, sizeof(Operands) / sizeof(NodeRef)> list;
  list_operands(kernel, Operands::kinds, list);
  return std::bit_cast<Operands>(list);
}

// Gives `kernel`, whose kind is one of Operands::kinds, its operands.
template <class Operands>
void set_operands(Kernel& kernel, const Operands& operands) {
  auto list = std::bit_cast<std::array<NodeRef, sizeof(Operands) / sizeof(NodeRef)>>(operands);
  kernel.args.assign(list.begin(), list.end());
  list_operands(kernel, Operands::kinds, list);
}

// Returns the recurrent weight of a kernel that runs an LSTM, forwards or backwards (is_sequence).
NodeRef sequence_weight(const Kernel& kernel);

}  // namespace nacre
