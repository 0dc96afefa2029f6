#include "nacre/dfg/op.h"

#include <array>
#include <limits>
#include <string>

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr auto kLeaf = OpClass::leaf;
constexpr auto kIndexing = OpClass::indexing;
constexpr auto kCommunication = OpClass::communication;
constexpr auto kNeural = OpClass::neural;

// The operations in the order of enum Op.
constexpr std::array<OpInfo, static_cast<size_t>(Op::count_)> kOps = {{
    {"input", kLeaf, 0, false},
    {"param", kLeaf, 0, false},
    {"degree", kLeaf, 0, false},
    {"typed_degree", kLeaf, 0, false},
    {"constant", kLeaf, 0, false},
    {"index", kIndexing, 1, false},
    {"index_add", kIndexing, 1, false},
    {"index_mean", kIndexing, 1, false},
    {"index_max", kIndexing, 1, false},
    {"index_argmax", kIndexing, 1, false},
    {"index_take_max", kIndexing, 2, false},
    {"edge_softmax", kIndexing, 1, false},
    {"edge_softmax_grad", kIndexing, 2, false},
    {"lstm", kIndexing, 2, false},
    {"lstm_grad_z", kIndexing, 3, false},
    {"lstm_grad_w", kIndexing, 3, false},
    {"lstm_gates", kIndexing, 2, false},
    {"lstm_gates_grad", kIndexing, 3, false},
    {"lstm_states", kIndexing, 1, false},
    {"exchange", kCommunication, 1, false},
    {"exchange_add", kCommunication, 1, false},
    {"all_reduce", kCommunication, 1, false},
    {"to_columns", kCommunication, 1, false},
    {"to_rows", kCommunication, 1, false},
    {"matmul", kNeural, 2, false},
    {"matmul_t", kNeural, 2, false},
    {"weight_grad", kNeural, 2, false},
    {"typed_matmul", kNeural, 2, false},
    {"typed_matmul_t", kNeural, 2, false},
    {"typed_weight_grad", kNeural, 2, false},
    {"add", kNeural, 2, true},
    {"sub", kNeural, 2, true},
    {"mul", kNeural, 2, true},
    {"scale", kNeural, 1, true},
#define NACRE_OP(name, ...) {#name, kNeural, 1, true},
#define NACRE_GRADIENT_OP(name, ...) {#name "_grad", kNeural, 2, true},
    NACRE_ACTIVATIONS(NACRE_OP) NACRE_ACTIVATIONS(NACRE_GRADIENT_OP)
#undef NACRE_OP
#undef NACRE_GRADIENT_OP
        {"inv", kNeural, 1, true},
    {"inv_sqrt", kNeural, 1, true},
    {"dropout", kNeural, 1, true},
    {"row_sum", kNeural, 1, false},
    {"expand", kNeural, 1, false},
    {"reshape", kNeural, 1, false},
    {"concat", kNeural, 2, false},
    {"slice", kNeural, 1, false},
    {"pad", kNeural, 1, false},
    {"column_sum", kNeural, 1, false},
    {"column_moments", kNeural, 1, false},
    {"standardize", kNeural, 2, false},
    {"standardize_grad", kNeural, 3, false},
    {"row_normalize", kNeural, 1, false},
    {"row_normalize_grad", kNeural, 2, false},
    {"join_rows", kNeural, kAnyInputs, false},
    {"slice_rows", kNeural, 1, false},
    {"log_softmax", kNeural, 1, false},
    {"log_softmax_grad", kNeural, 2, false},
    {"nll", kNeural, 3, false},
    {"nll_grad", kNeural, 4, false},
    {"bce", kNeural, 3, false},
    {"bce_grad", kNeural, 4, false},
    {"l2", kNeural, 1, false},
}};

constexpr double kNoAlpha = std::numeric_limits<double>::quiet_NaN();
constexpr bool output = true;
[[maybe_unused]] constexpr bool input = false;

constexpr std::array kActivations = {
#define NACRE_ROW(name, alpha, reads, value, gradient, cuda_value, cuda_gradient) \
  ActivationInfo{#name, Op::name, Op::name##_grad, alpha, reads, cuda_value, cuda_gradient},
    NACRE_ACTIVATIONS(NACRE_ROW)
#undef NACRE_ROW
};

constexpr std::array<std::string_view, 7> kAttrs = {"none", "src", "dst", "type", "self", "pair_src", "pair_dst"};

}  // namespace

const OpInfo& op_info(Op op) { return kOps[static_cast<size_t>(op)]; }

std::span<const ActivationInfo> activations() { return kActivations; }

const ActivationInfo* find_activation(Op op) {
  for (const ActivationInfo& row : kActivations) {
    if (row.op == op || row.gradient == op) return &row;
  }
  return nullptr;
}

Op parse_op(std::string_view name) {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (kOps[i].name == name) return static_cast<Op>(i);
  }
  throw UserError("dfg", "unknown operation '" + std::string(name) + "'");
}

std::string_view attr_name(Attr attr) { return kAttrs[static_cast<size_t>(attr)]; }

Attr parse_attr(std::string_view name) {
  for (size_t i = 0; i < kAttrs.size(); ++i) {
    if (kAttrs[i] == name) return static_cast<Attr>(i);
  }
  throw UserError("dfg", "unknown edge attribute '" + std::string(name) + "'",
                  "use src, dst, type, self, pair_src or pair_dst");
}

}  // namespace nacre
