#include "nacre/kernel/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "nacre/base/error.h"

namespace nacre {
namespace {

struct MicroInfo {
  MicroOp op;
  std::string_view name;
};

constexpr std::array kMicroInfo = {
    MicroInfo{MicroOp::load, "load"},
    MicroInfo{MicroOp::load_src, "load_src"},
    MicroInfo{MicroOp::load_dst, "load_dst"},
    MicroInfo{MicroOp::load_type, "load_type"},
    MicroInfo{MicroOp::load_row0, "load_row0"},
    MicroInfo{MicroOp::root, "root"},
    MicroInfo{MicroOp::add, "add"},
    MicroInfo{MicroOp::sub, "sub"},
    MicroInfo{MicroOp::mul, "mul"},
    MicroInfo{MicroOp::scale, "scale"},
#define NACRE_MICRO(name, ...) MicroInfo{MicroOp::name, #name},
#define NACRE_GRADIENT_MICRO(name, ...) MicroInfo{MicroOp::name##_grad, #name "_grad"},
    NACRE_ACTIVATIONS(NACRE_MICRO) NACRE_ACTIVATIONS(NACRE_GRADIENT_MICRO)
#undef NACRE_MICRO
#undef NACRE_GRADIENT_MICRO
        MicroInfo{MicroOp::inv, "inv"},
    MicroInfo{MicroOp::inv_sqrt, "inv_sqrt"},
    MicroInfo{MicroOp::dropout, "dropout"},
    MicroInfo{MicroOp::expand, "expand"},
    MicroInfo{MicroOp::row_sum, "row_sum"},
    MicroInfo{MicroOp::dot, "dot"},
    MicroInfo{MicroOp::concat, "concat"},
    MicroInfo{MicroOp::slice, "slice"},
    MicroInfo{MicroOp::pad, "pad"},
    MicroInfo{MicroOp::take_max, "take_max"},
    MicroInfo{MicroOp::row_normalize, "row_normalize"},
    MicroInfo{MicroOp::row_normalize_grad, "row_normalize_grad"},
    MicroInfo{MicroOp::log_softmax, "log_softmax"},
    MicroInfo{MicroOp::log_softmax_grad, "log_softmax_grad"},
    MicroInfo{MicroOp::standardize, "standardize"},
    MicroInfo{MicroOp::gemm, "gemm"},
    MicroInfo{MicroOp::gemm_t, "gemm_t"},
    MicroInfo{MicroOp::typed_gemm, "typed_gemm"},
    MicroInfo{MicroOp::typed_gemm_t, "typed_gemm_t"},
    MicroInfo{MicroOp::store, "store"},
};

std::string_view micro_name(MicroOp op) {
  const auto& info = kMicroInfo[static_cast<size_t>(op)];
  NACRE_CHECK(info.op == op, "the table of micro-ops is not in the order of the enumeration");
  return info.name;
}

bool has_alpha(MicroOp op) {
  switch (op) {
    case MicroOp::scale:
    case MicroOp::dropout:
    case MicroOp::row_normalize:
    case MicroOp::row_normalize_grad:
    case MicroOp::standardize:
      return true;
    default: {
      const ActivationInfo* row = find_activation(op);
      return row != nullptr && row->has_alpha();
    }
  }
}

std::string register_text(int index, int repeat) {
  return repeat == 1 ? fmt::format(" r{}", index) : fmt::format(" r{}*{}", index, repeat);
}

std::string micro_text(const RowProgram& program, const Micro& m) {
  std::string text = "  ";
  if (m.out >= 0) text += fmt::format("r{}[{}] = ", m.out, program.widths[m.out]);
  text += micro_name(m.op);
  if (m.operand >= 0) text += fmt::format(" %{}", program.operands[m.operand]);
  if (m.a >= 0) text += register_text(m.a, m.a_repeat);
  if (m.b >= 0) text += register_text(m.b, m.b_repeat);
  if (m.op == MicroOp::concat) text += fmt::format(" parts {}+{}", m.a_part, m.b_part);
  if (m.op == MicroOp::slice || m.op == MicroOp::pad) text += fmt::format(" begin {} part {}", m.begin, m.a_part);
  if (has_alpha(m.op)) text += fmt::format(" alpha {:g}", m.alpha);
  if (m.op == MicroOp::dropout) text += fmt::format(" salt {}", m.salt);
  return text + "\n";
}

}  // namespace

const ActivationInfo* find_activation(MicroOp op) {
  switch (op) {
#define NACRE_CASES(name, ...) \
  case MicroOp::name:          \
  case MicroOp::name##_grad:   \
    return find_activation(Op::name);
    NACRE_ACTIVATIONS(NACRE_CASES)
#undef NACRE_CASES
    default:
      return nullptr;
  }
}

MicroOp activation_micro(Op op) {
  switch (op) {
#define NACRE_CASES(name, ...) \
  case Op::name:               \
    return MicroOp::name;      \
  case Op::name##_grad:        \
    return MicroOp::name##_grad;
    NACRE_ACTIVATIONS(NACRE_CASES)
#undef NACRE_CASES
    default:
      throw InternalError(__FILE__, __LINE__, "there is no micro-op for " + std::string(op_info(op).name));
  }
}

bool has_products(const RowProgram& program) {
  return std::any_of(program.code.begin(), program.code.end(), [](const Micro& m) { return is_product(m.op); });
}

// Returns a text with one micro-op on each line, for example "r2[256] = mul r0 r1*64". An operand
// is written as %N, the DFG node behind the pointer; r1*64 is register 1 with every element
// repeated 64 times.
std::string program_text(const RowProgram& program) {
  std::string text = fmt::format("program over {}\n", space_text(program.domain));
  for (const Micro& m : program.code) text += micro_text(program, m);
  return text;
}

}  // namespace nacre
