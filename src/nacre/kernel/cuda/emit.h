// A row program as CUDA statements. `lanes` threads share a row: a value of width w > 1 lies over them in vectors of V
// elements (V = 4, 2 or 1, or 8 where operands are bf16, whatever divides w), vector c of a thread being number c·lanes
// + lane; a value of width 1 is the same in every thread. With one lane, a thread holds the whole row. Operations that
// need elements of other threads (repeats, concatenation, products) read them from memory where they were loaded,
// otherwise from shared memory.
//
// The statements use these names, which the surrounding kernel declares: lane, mask (the group's threads), sh (the
// group's shared floats), step (seed and step), p0 … (the operands), and for each row u of the batch pos<u>, src<u>,
// dst<u>, typ<u> and, where masked, ok<u>.
#pragma once

#include <string>
#include <vector>

#include "nacre/kernel/program.h"

namespace nacre::cuda {

// The longest vectors of a program's values: 16 bytes of the narrowest operand.
int vector_limit(const RowProgram& program);
// Vector length and elements a thread holds of a value.
int vector_of(int64_t width, int most);
int slots_of(int64_t width, int lanes, int most);
// Threads that share a row whose widest value has this width.
int lanes_for(int64_t width, int most);

class ProgramText {
 public:
  struct Options {
    int lanes = 32;
    int batch = 1;
    int vector = 4;                // at most
    std::string name = "r";        // of registers
    std::string operand = "p";     // of operands
    int first_operand = 0;         // number of the first one
    int shared_offset = 0;         // floats of `sh` used before
    std::string root;              // array (or scalar) behind MicroOp::root
    std::vector<int64_t> strides;  // floats between rows of each operand; missing or 0: the width read
    // The load whose row all rows of the kernel's loop have in common (load_src, load_dst): read once, before the loop,
    // as parameters are. MicroOp::store: there is no loop.
    MicroOp common = MicroOp::store;
    std::string store_row = "pos";  // stores go to row store_row<u>
  };
  ProgramText(const RowProgram& program, Options options);

  // Keys of random streams: once, at the head of the kernel.
  std::string setup() const;
  // What all rows have in common, before the loop; uses src0 or dst0.
  std::string prologue() const;
  // Computes every register for the rows of the batch; masked: rows with ok<u> false read nothing and store nothing.
  std::string body(bool masked) const;
  // Slot s of a register of row u.
  std::string slot(int reg, int u, const std::string& s) const;
  bool scalar(int reg) const { return width(reg) == 1; }
  int shared_floats() const { return shared_; }

  bool uses(MicroOp op) const;  // any load_src, load_dst, …
  bool uses_type() const;
  bool uses_step() const { return uses(MicroOp::dropout); }

 private:
  int64_t width(int reg) const { return program_.widths[static_cast<size_t>(reg)]; }
  int vector(int64_t w) const { return vector_of(w, o_.vector); }
  int slots(int64_t w) const { return slots_of(w, o_.lanes, o_.vector); }
  std::string reg(int r, int u) const;
  bool is_common(int r) const;
  std::string operand(const Micro& m) const;
  int64_t stride(const Micro& m, int64_t w) const;
  const Micro* load_of(int reg) const;
  std::string row_of(const Micro& load, int u) const;
  std::string element(int reg, int u, const std::string& j) const;
  std::string term(int reg, int repeat, int u, const char* s, const char* j) const;
  void find_shared();
  int64_t summed_width(const Micro& m) const;
  bool sums_by_shuffle(const Micro& m) const;
  bool reads_across(const Micro& m, bool second) const;
  std::string declare(int r, int u) const;
  std::string per_slot(int out, int u, const std::string& expression) const;
  std::string per_element(int out, int u, const std::string& expression) const;
  std::string in_row(int64_t w) const;
  std::string spill(int r, int u) const;
  std::string load_text(const Micro& m, int u, bool masked) const;
  std::string store_text(const Micro& m, int u, bool masked) const;
  std::string binary(const Micro& m, int u) const;
  std::string unary(const Micro& m, int u) const;
  std::string dropout_text(const Micro& m, int u) const;
  std::string sum_text(const Micro& m, int u) const;
  std::string shape_text(const Micro& m, int u) const;
  std::string row_text(const Micro& m, int u) const;
  std::string product_text(const Micro& m, int u) const;
  std::string micro(const Micro& m, int u, bool masked) const;

  const RowProgram& program_;
  Options o_;
  std::vector<int> shared_at_;  // per register: its place in `sh`, or -1
  int shared_ = 0;              // floats, all rows of the batch
};

}  // namespace nacre::cuda
