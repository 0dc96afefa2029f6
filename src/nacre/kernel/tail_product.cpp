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

// The register is the root and what was added to it, and nobody reads it or what lies between but the next sum.
bool sum_from_root(const RowProgram& program, int reg) {
  const int at = written_by(program, reg);
  if (at < 0 || uses(program, reg) != 1) return false;
  const Micro& m = program.code[static_cast<size_t>(at)];
  if (m.op == MicroOp::root) return true;
  return plain_sum(m) && (sum_from_root(program, m.a) || sum_from_root(program, m.b));
}

}  // namespace

std::optional<RowFactor> take_product(RowProgram& tail) {
  for (size_t i = 0; i < tail.code.size(); ++i) {
    const Micro product = tail.code[i];
    if (product.op != MicroOp::gemm && product.op != MicroOp::gemm_t) continue;
    const int load = written_by(tail, product.a);
    if (load < 0 || tail.code[static_cast<size_t>(load)].op != MicroOp::load || uses(tail, product.out) != 1) continue;
    const auto sum = std::find_if(tail.code.begin(), tail.code.end(),
                                  [&](const Micro& m) { return m.a == product.out || m.b == product.out; });
    if (!plain_sum(*sum)) continue;
    const int other = sum->a == product.out ? sum->b : sum->a;
    if (!sum_from_root(tail, other)) continue;
    const RowFactor factor = {tail.operands[static_cast<size_t>(tail.code[static_cast<size_t>(load)].operand)],
                              tail.operands[static_cast<size_t>(product.operand)], product.op == MicroOp::gemm_t};
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
