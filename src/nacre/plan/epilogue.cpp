#include "nacre/plan/epilogue.h"

#include <algorithm>

namespace nacre {
namespace {

class Absorber {
 public:
  Absorber(const RowProgram& tail, bool add) : program_(tail), add_(add), dead_(tail.code.size(), 0) {}

  Epilogue run() {
    Epilogue e;
    const int root = find_root();
    if (root < 0) return e;
    value_ = program_.code[root].out;
    int last = root;
    while (true) {
      const int use = only_use(value_);
      if (use < 0) break;
      const Micro& m = program_.code[use];
      if (m.op == MicroOp::relu && !e.relu) {
        e.relu = true;
      } else if (m.op != MicroOp::add || e.relu || !take_term(m, e)) {
        break;
      }
      dead_[last] = 1;
      last = use;
      value_ = m.out;
    }
    if (e.empty()) return e;
    dead_[last] = 1;
    finish(e);
    return e;
  }

 private:
  int find_root() const {
    int found = -1;
    for (size_t i = 0; i < program_.code.size(); ++i) {
      if (program_.code[i].op != MicroOp::root) continue;
      if (found >= 0) return -1;
      found = static_cast<int>(i);
    }
    return found;
  }

  // Returns the place of the instruction that reads a register, or -1 if the register is read
  // several times or never.
  int only_use(int reg) const {
    int found = -1;
    for (size_t i = 0; i < program_.code.size(); ++i) {
      const Micro& m = program_.code[i];
      if (m.a != reg && m.b != reg) continue;
      if (found >= 0 || m.a == m.b) return -1;
      found = static_cast<int>(i);
    }
    return found;
  }

  // Lets the product do the addition `sum` if the other operand is a bias or a row of the same
  // width from memory. Returns whether the product does it.
  bool take_term(const Micro& sum, Epilogue& e) {
    const int other = sum.a == value_ ? sum.b : sum.a;
    if (sum.a_repeat != 1 || sum.b_repeat != 1) return false;
    for (size_t i = 0; i < program_.code.size(); ++i) {
      const Micro& m = program_.code[i];
      if (m.out != other) continue;
      const bool alone = only_use(other) >= 0;
      NodeRef* place = m.op == MicroOp::load && add_ ? &e.add : m.op == MicroOp::load_row0 ? &e.bias : nullptr;
      if (place == nullptr || *place >= 0) return false;
      *place = program_.operands[m.operand];
      if (alone) dead_[i] = 1;
      return true;
    }
    return false;
  }

  void finish(Epilogue& e) const {
    std::vector<Micro> left;
    for (size_t i = 0; i < program_.code.size(); ++i) {
      if (!dead_[i]) left.push_back(program_.code[i]);
    }
    if (left.size() == 1 && left[0].op == MicroOp::store && left[0].a == value_) {
      e.result = program_.operands[left[0].operand];
      return;
    }
    e.rest = program_;
    Micro root;
    root.op = MicroOp::root;
    root.out = value_;
    e.rest.code = {root};
    e.rest.code.insert(e.rest.code.end(), left.begin(), left.end());
  }

  const RowProgram& program_;
  bool add_;
  std::vector<char> dead_;
  int value_ = -1;  // the register that holds the result of the product so far
};

}  // namespace

// Returns a value that `rest` stores, as wide as the product's result, or -1. There is none if
// `rest` also loads values of this width, because the executor may put the stored value into the
// memory of a value that `rest` still reads row by row.
NodeRef find_landing(const RowProgram& rest) {
  int64_t width = 0;
  for (const Micro& m : rest.code) {
    if (m.op == MicroOp::root) width = rest.widths[m.out];
  }
  NodeRef found = -1;
  for (const Micro& m : rest.code) {
    if (m.op == MicroOp::load && rest.widths[m.out] == width) return -1;
    if (m.op == MicroOp::store && rest.widths[m.a] == width) found = rest.operands[m.operand];
  }
  return found;
}

Epilogue absorb_tail(const RowProgram& tail, bool root_stored, bool add) {
  Epilogue e;
  if (!root_stored && !tail.empty()) e = Absorber(tail, add).run();
  if (e.empty()) e.rest = tail;
  if (!root_stored && !e.rest.empty()) e.landing = find_landing(e.rest);
  return e;
}

}  // namespace nacre
