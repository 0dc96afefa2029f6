#include "nacre/kernel/cuda/emit.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/kernel/cuda/source.h"
#include "nacre/kernel/cuda/text.h"

namespace nacre::cuda {
namespace {

bool is_load(MicroOp op) { return op >= MicroOp::load && op <= MicroOp::load_row0; }

std::string number(int64_t x) { return std::to_string(x); }

}  // namespace

int vector_limit(const RowProgram& program) {
  for (const Micro& m : program.code) {
    if (m.operand >= 0 && program.is_narrow(m.operand)) return 8;
  }
  return 4;
}

int vector_of(int64_t width, int most) {
  int v = most;
  while (width % v != 0) v /= 2;
  return v;
}

int held_of(int64_t width, int lanes, int most) {
  if (width == 1) return 1;
  const int v = vector_of(width, most);
  const int64_t per_round = static_cast<int64_t>(lanes) * v;
  return static_cast<int>((width + per_round - 1) / per_round) * v;
}

int lanes_for(int64_t width, int most) {
  int lanes = 1;
  while (lanes < 32 && static_cast<int64_t>(lanes) * vector_of(width, most) < width) lanes *= 2;
  return lanes;
}

ProgramText::ProgramText(const RowProgram& program, Options options) : program_(program), o_(std::move(options)) {
  find_shared();
}

// Returns the width of the values that a row_sum or dot adds up.
int64_t ProgramText::summed_width(const Micro& m) const { return width(m.a) * m.a_repeat; }

// Returns whether each group that is summed lies in whole vectors of neighbouring threads whose
// number is a power of two.
bool ProgramText::sums_by_shuffle(const Micro& m) const {
  const int64_t groups = width(m.out);
  const int64_t size = summed_width(m) / groups;
  const int v = vector(summed_width(m));
  const int64_t threads = size / v;
  return groups > 1 && size % v == 0 && threads <= o_.lanes && (threads & (threads - 1)) == 0;
}

// Returns the store that alone reads the sums of `m` if the threads that have the sums can store
// them; otherwise returns null. The function does not look for loads of what is stored, so it is
// only for programs that load and store in different memory (RowProgram::stores_apart).
const Micro* ProgramText::stored_at_once(const Micro& m) const {
  if (!program_.stores_apart || o_.lanes == 1 || !sums_by_shuffle(m)) return nullptr;
  const Micro* store = nullptr;
  for (const Micro& other : program_.code) {
    if (other.a != m.out && other.b != m.out) continue;
    if (other.op != MicroOp::store || store != nullptr) return nullptr;
    store = &other;
  }
  return store;
}

// Returns whether a thread reads elements of an operand of `m` that other threads hold: of the
// second operand if `second` is set, otherwise of the first.
bool ProgramText::reads_across(const Micro& m, bool second) const {
  const int r = second ? m.b : m.a;
  if (r < 0 || width(r) == 1) return false;
  const bool repeated = (second ? m.b_repeat : m.a_repeat) != 1;
  switch (m.op) {
    case MicroOp::add:
    case MicroOp::sub:
    case MicroOp::mul:
    case MicroOp::expand:
      return repeated;
    case MicroOp::row_sum:
    case MicroOp::dot:
      return repeated || (width(m.out) != 1 && !sums_by_shuffle(m));
    case MicroOp::concat:
    case MicroOp::slice:
    case MicroOp::pad:
      return true;
    default:
      return is_product(m.op);
  }
}

void ProgramText::find_shared() {
  shared_at_.assign(program_.widths.size(), -1);
  if (o_.lanes == 1) return;
  int used = 0;
  const auto share = [&](int r) {
    if (r < 0 || shared_at_[r] >= 0 || width(r) == 1 || load_of(r) != nullptr) return;
    shared_at_[r] = used;
    used += static_cast<int>(width(r)) * o_.batch;
  };
  for (const Micro& m : program_.code) {
    if (reads_across(m, false)) share(m.a);
    if (reads_across(m, true)) share(m.b);
    // The sums of several groups are collected in shared memory, where every thread can read them.
    const bool sum = m.op == MicroOp::row_sum || m.op == MicroOp::dot;
    if (sum && width(m.out) != 1 && stored_at_once(m) == nullptr) share(m.out);
  }
  shared_ = used;
}

bool ProgramText::uses(MicroOp op) const {
  return std::any_of(program_.code.begin(), program_.code.end(), [&](const Micro& m) { return m.op == op; });
}

bool ProgramText::uses_type() const {
  return uses(MicroOp::load_type) || uses(MicroOp::typed_gemm) || uses(MicroOp::typed_gemm_t);
}

std::string ProgramText::reg(int r, int u) const { return o_.name + number(r) + "_" + number(is_common(r) ? 0 : u); }

bool ProgramText::is_common(int r) const {
  return o_.common != MicroOp::store && std::any_of(program_.code.begin(), program_.code.end(), [&](const Micro& m) {
           return m.out == r && (m.op == o_.common || m.op == MicroOp::load_row0);
         });
}

std::string ProgramText::prologue() const {
  std::string text;
  for (const Micro& m : program_.code) {
    if (m.out >= 0 && is_common(m.out)) text += declare(m.out, 0) + micro(m, 0, false);
  }
  return text;
}

std::string ProgramText::operand(const Micro& m) const { return o_.operand + number(o_.first_operand + m.operand); }

int64_t ProgramText::stride(const Micro& m, int64_t w) const {
  const auto i = static_cast<size_t>(m.operand);
  return i < o_.strides.size() && o_.strides[i] > 0 ? o_.strides[i] : w;
}

// Returns the load that filled a register if the same row can be read again from memory; otherwise
// null.
const Micro* ProgramText::load_of(int r) const {
  for (const Micro& m : program_.code) {
    if (m.out != r) continue;
    if (!is_load(m.op)) return nullptr;
    for (const Micro& s : program_.code) {
      // If the program writes to the memory of the load, the row may have changed since.
      if (s.op == MicroOp::store && program_.operands[s.operand] == program_.operands[m.operand]) return nullptr;
    }
    // A store may update a value in place, and then overwrites rows that another operand loads by
    // position.
    if (m.op == MicroOp::load && uses(MicroOp::store) && !program_.stores_apart) return nullptr;
    return &m;
  }
  return nullptr;
}

std::string ProgramText::row_of(const Micro& load, int u) const {
  switch (load.op) {
    case MicroOp::load:
      return "(i64)pos" + number(u);
    case MicroOp::load_src:
      return "(i64)src" + number(u);
    case MicroOp::load_dst:
      return "(i64)dst" + number(u);
    case MicroOp::load_type:
      return "(i64)typ" + number(u);
    default:
      return "0";
  }
}

std::string ProgramText::own_element(int r, int u, const std::string& s) const {
  return scalar(r) ? reg(r, u) : reg(r, u) + "[" + s + "]";
}

// Returns the expression for element j of a register's row, whichever thread holds it.
std::string ProgramText::element(int r, int u, const std::string& j) const {
  if (scalar(r)) return reg(r, u);
  if (o_.lanes == 1) return reg(r, u) + "[" + j + "]";
  if (const Micro* load = load_of(r)) {
    const std::string value = "__ldg(" + operand(*load) + " + " + row_of(*load, u) + " * " +
                              number(stride(*load, width(r))) + " + (" + j + "))";
    return program_.is_narrow(load->operand) ? "widen(" + value + ")" : value;
  }
  const int at = shared_at_[r];
  NACRE_CHECK(at >= 0, "a register read across threads is not shared");
  return "sh[" + number(o_.shared_offset + at + u * width(r)) + " + (" + j + ")]";
}

std::string ProgramText::declare(int r, int u) const {
  if (scalar(r)) return "float " + reg(r, u) + ";\n";
  return "float " + reg(r, u) + "[" + number(held(width(r))) + "];\n";
}

// Returns a statement that sets each of the thread's elements of `out`. In the expression, ${s} is
// the number of the element in the thread.
std::string ProgramText::per_own_element(int out, int u, const std::string& expression) const {
  if (scalar(out)) return reg(out, u) + " = " + fill(expression, {{"s", "0"}}) + ";\n";
  return "#pragma unroll\nfor (int s = 0; s < " + number(held(width(out))) + "; ++s) " + reg(out, u) +
         "[s] = " + fill(expression, {{"s", "s"}}) + ";\n";
}

// Returns a statement that sets each of the thread's elements of `out`. In the expression, ${s} is
// the number of the element in the thread and ${j} its place in the row.
std::string ProgramText::per_element(int out, int u, const std::string& expression) const {
  if (scalar(out)) return reg(out, u) + " = " + fill(expression, {{"s", "0"}, {"j", "0"}}) + ";\n";
  const int v = vector(width(out));
  const bool exact = width(out) % (static_cast<int64_t>(o_.lanes) * v) == 0;
  const std::string value = fill(expression, {{"s", "s"}, {"j", "j"}});
  return fill(R"(#pragma unroll
for (int s = 0; s < ${S}; ++s) {
  const int j = (s / ${V} * ${L} + ${lane}) * ${V} + s % ${V};
  ${R}[s] = ${X};
}
)",
              {{"S", held(width(out))},
               {"V", v},
               {"L", o_.lanes},
               {"lane", o_.lanes == 1 ? "0" : "lane"},
               {"R", reg(out, u)},
               {"X", exact ? value : "j < " + number(width(out)) + " ? " + value + " : 0.0f"}});
}

// Returns the condition that vector c of a value of width w lies inside the row; an empty string if
// it always does.
std::string ProgramText::in_row(int64_t w) const {
  const int v = vector(w);
  if (w % (static_cast<int64_t>(o_.lanes) * v) == 0) return "";
  return "(c * " + number(o_.lanes) + " + lane) * " + number(v) + " < " + number(w);
}

std::string ProgramText::spill(int r, int u) const {
  if (shared_at_[r] < 0) return "";
  return fill(R"(__syncwarp(mask);
#pragma unroll
for (int c = 0; c < ${C}; ++c) {
  const int j = (c * ${L} + lane) * ${V};
  for (int v = 0; v < ${V}; ++v) if (j + v < ${W}) sh[${AT} + j + v] = ${R}[c * ${V} + v];
}
__syncwarp(mask);
)",
              {{"C", held(width(r)) / vector(width(r))},
               {"L", o_.lanes},
               {"V", vector(width(r))},
               {"W", width(r)},
               {"AT", o_.shared_offset + shared_at_[r] + u * width(r)},
               {"R", reg(r, u)}});
}

std::string ProgramText::load_text(const Micro& m, int u, bool masked) const {
  const int64_t w = width(m.out);
  const std::string guard = masked && m.op != MicroOp::load_row0 ? "ok" + number(u) : "";
  const std::string row = operand(m) + " + " + row_of(m, u) + " * " + number(stride(m, w));
  const std::string read = m.op == MicroOp::load ? "*(" : "__ldg(";
  if (w == 1) {
    const std::string value = read + row + ")";
    return reg(m.out, u) + " = " + (guard.empty() ? value : guard + " ? " + value + " : 0.0f") + ";\n";
  }
  std::string when = in_row(w);
  if (!guard.empty()) when = when.empty() ? guard : guard + " && " + when;
  const int v = vector(w);
  return fill(
      R"(#pragma unroll
for (int c = 0; c < ${C}; ++c) {
  ${IF}${HOW}<${V}>(${ROW} + (c * ${L} + ${lane}) * ${V}, ${R} + c * ${V});
${ELSE}}
)",
      {{"C", held(w) / v},
       {"IF", when.empty() ? "" : "if (" + when + ") "},
       {"HOW", m.op == MicroOp::load ? "load" : "gather"},
       {"V", v},
       {"ROW", row},
       {"L", o_.lanes},
       {"lane", o_.lanes == 1 ? "0" : "lane"},
       {"R", reg(m.out, u)},
       {"ELSE", when.empty() ? "" : fill("  else zero<${V}>(${R} + c * ${V});\n", {{"V", v}, {"R", reg(m.out, u)}})}});
}

std::string ProgramText::store_text(const Micro& m, int u, bool masked) const {
  const int64_t w = width(m.a);
  const std::string guard = masked ? "ok" + number(u) : "";
  const std::string row = operand(m) + " + (i64)" + o_.store_row + number(u) + " * " + number(w);
  if (w == 1) {
    std::string when = o_.lanes == 1 ? "" : "lane == 0";
    if (!guard.empty()) when = when.empty() ? guard : guard + " && " + when;
    return (when.empty() ? "" : "if (" + when + ") ") + "*(" + row + ") = " + reg(m.a, u) + ";\n";
  }
  std::string when = in_row(w);
  if (!guard.empty()) when = when.empty() ? guard : guard + " && " + when;
  const int v = vector(w);
  return fill(R"(#pragma unroll
for (int c = 0; c < ${C}; ++c) ${IF}store<${V}>(${ROW} + (c * ${L} + ${lane}) * ${V}, ${R} + c * ${V});
)",
              {{"C", held(w) / v},
               {"IF", when.empty() ? "" : "if (" + when + ") "},
               {"V", v},
               {"ROW", row},
               {"L", o_.lanes},
               {"lane", o_.lanes == 1 ? "0" : "lane"},
               {"R", reg(m.a, u)}});
}

int ProgramText::numbers_word() const {
  if (!program_.numbered) return -1;
  return program_.domain.on_vertices() ? kStepVertices : program_.domain.kind == SpaceKind::edge ? kStepEdges : -1;
}

std::string ProgramText::setup() const {
  std::string text;
  if (uses(MicroOp::dropout) && numbers_word() >= 0) {
    text += "const u32* const ids_" + o_.name + " = (const u32*)step[" + number(numbers_word()) + "];\n";
  }
  for (const Micro& m : program_.code) {
    if (m.op != MicroOp::dropout) continue;
    text += "const u64 key_" + o_.name + number(m.out) + " = mix_key(step[0], " + std::to_string(m.salt) + "ull);\n";
  }
  return text;
}

std::string ProgramText::body(bool masked) const {
  std::string text;
  for (const Micro& m : program_.code) {
    if (m.out >= 0 && is_common(m.out)) continue;
    for (int u = 0; u < o_.batch; ++u) {
      if (m.out >= 0) text += declare(m.out, u);
    }
    for (int u = 0; u < o_.batch; ++u) {
      text += micro(m, u, masked);
      if (m.out >= 0) text += spill(m.out, u);
    }
  }
  return text;
}

}  // namespace nacre::cuda
