#include "nacre/kernel/tail_product.h"

#include <algorithm>

namespace nacre {
namespace {

int written_by(const RowProgram& program, int reg) {
  for (size_t i = 0; i < program.code.size(); ++i) {
    if (program.code[i].out == reg) return static_cast<int>(i);
  }
  return -1;
}

int uses(const RowProgram& program, int reg) {
  int count = 0;
  for (const Micro& m : program.code) count += (m.a == reg ? 1 : 0) + (m.b == reg ? 1 : 0);
  return count;
}

bool plain_sum(const Micro& m) { return m.op == MicroOp::add && m.a_repeat == 1 && m.b_repeat == 1; }

// Returns whether the register holds the root, or a sum that contains the root, and each of these
// values is read only by the next sum.
bool sum_from_root(const RowProgram& program, int reg) {
  const int at = written_by(program, reg);
  if (at < 0 || uses(program, reg) != 1) return false;
  const Micro& m = program.code[at];
  if (m.op == MicroOp::root) return true;
  return plain_sum(m) && (sum_from_root(program, m.a) || sum_from_root(program, m.b));
}

// Returns the only reader of a register if that reader is a plain sum; otherwise null.
const Micro* sum_of(const RowProgram& program, int reg) {
  if (uses(program, reg) != 1) return nullptr;
  const auto reader =
      std::find_if(program.code.begin(), program.code.end(), [&](const Micro& m) { return m.a == reg || m.b == reg; });
  return plain_sum(*reader) ? &*reader : nullptr;
}

int other_term(const Micro& sum, int reg) { return sum.a == reg ? sum.b : sum.a; }

// Returns whether the register is a term of a sum, possibly through further sums, that also
// contains the root.
bool added_to_root(const RowProgram& program, int reg) {
  const Micro* sum = sum_of(program, reg);
  return sum != nullptr && (sum_from_root(program, other_term(*sum, reg)) || added_to_root(program, sum->out));
}

}  // namespace

std::optional<RowFactor> take_product(RowProgram& tail) {
  for (size_t i = 0; i < tail.code.size(); ++i) {
    const Micro product = tail.code[i];
    if (product.op != MicroOp::gemm && product.op != MicroOp::gemm_t) continue;
    const int load = written_by(tail, product.a);
    if (load < 0 || tail.code[load].op != MicroOp::load || !added_to_root(tail, product.out)) continue;
    const Micro* sum = sum_of(tail, product.out);
    const int other = other_term(*sum, product.out);
    const RowFactor factor = {tail.operands[tail.code[load].operand], tail.operands[product.operand],
                              product.op == MicroOp::gemm_t};
    const int result = sum->out;
    std::vector<Micro> left;
    for (const Micro& m : tail.code) {
      if (m.out >= 0 && (m.out == result || m.out == product.out)) continue;
      if (m.out >= 0 && m.out == product.a && uses(tail, m.out) == 1) continue;
      left.push_back(m);
      if (m.a == result) left.back().a = other;
      if (m.b == result) left.back().b = other;
    }
    tail.code = std::move(left);
    return factor;
  }
  return {};
}

}  // namespace nacre
