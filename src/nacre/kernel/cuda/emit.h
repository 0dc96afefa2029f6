// Writes a row program as CUDA statements. A group of `lanes` threads shares a row. A value of
// width w > 1 is spread over the group in vectors of V elements: V is the largest of 4, 2 and 1
// (with bf16 operands also 8) that divides w. Vector c of a thread is vector number c · lanes +
// lane of the row. A value of width 1 is the same in every thread. With one lane, a thread holds
// the whole row. Operations that need elements of other threads (repeats, concatenation, products)
// read them again from the memory they were loaded from, or else from shared memory.
//
// The statements use names that the surrounding kernel declares: lane, mask (the threads of the
// group), sh (the shared floats of the group), step (seed and step number), p0, p1 … (the
// operands), and for each row u of the batch pos<u>, src<u>, dst<u>, typ<u> and, in masked code,
// ok<u>.
#pragma once

#include <string>
#include <vector>

#include "nacre/kernel/program.h"

namespace nacre::cuda {

// Returns the most elements of a vector: as many as 16 bytes of the narrowest operand hold.
int vector_limit(const RowProgram& program);
// Returns the number of elements in a vector of a value of this width.
int vector_of(int64_t width, int most);
// Returns how many elements of a value of this width one thread holds if `lanes` threads share a
// row.
int held_of(int64_t width, int lanes, int most);
// Returns how many threads share a row whose widest value has this width.
int lanes_for(int64_t width, int most);

class ProgramText {
 public:
  struct Options {
    int lanes = 32;
    int batch = 1;
    int vector = 4;             // most elements of a vector
    std::string name = "r";     // first letter of the names of registers
    std::string operand = "p";  // first letter of the names of operands
    int first_operand = 0;      // number in the name of the first operand
    int shared_offset = 0;      // floats of `sh` that the kernel itself uses
    std::string root;           // name of the array (or scalar) that MicroOp::root reads
    // Floats between the beginnings of the rows of each operand. For an operand that is not in the
    // list, or whose number is 0, rows are as long as the value that is read.
    std::vector<int64_t> strides;
    // The load (load_src or load_dst) whose row is the same in all turns of the kernel's loop. It
    // is read once, before the loop, as parameters are. MicroOp::store says that there is no loop.
    MicroOp common = MicroOp::store;
    std::string store_row = "pos";  // stores write row store_row<u>
  };
  ProgramText(const RowProgram& program, Options options);

  // Returns the statements that compute the keys of random streams, for the head of the kernel.
  std::string setup() const;
  // Returns the loads that all rows have in common, for the place before the loop. These loads use
  // src0 or dst0.
  std::string prologue() const;
  // Returns the statements that compute every register for the rows of the batch. If masked, rows
  // whose ok<u> is false read nothing and store nothing.
  std::string body(bool masked) const;
  // Returns the expression for element number s, of those that the thread holds, of the value of a
  // register in row u of the batch.
  std::string own_element(int reg, int u, const std::string& s) const;
  bool scalar(int reg) const { return width(reg) == 1; }
  int shared_floats() const { return shared_; }

  bool uses(MicroOp op) const;
  bool uses_type() const;
  bool uses_step() const { return uses(MicroOp::dropout); }

 private:
  int64_t width(int reg) const { return program_.widths[reg]; }
  int vector(int64_t w) const { return vector_of(w, o_.vector); }
  int held(int64_t w) const { return held_of(w, o_.lanes, o_.vector); }
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
  const Micro* stored_at_once(const Micro& m) const;
  bool reads_across(const Micro& m, bool second) const;
  std::string declare(int r, int u) const;
  std::string per_own_element(int out, int u, const std::string& expression) const;
  std::string per_element(int out, int u, const std::string& expression) const;
  std::string in_row(int64_t w) const;
  std::string spill(int r, int u) const;
  std::string load_text(const Micro& m, int u, bool masked) const;
  std::string store_text(const Micro& m, int u, bool masked) const;
  std::string binary(const Micro& m, int u) const;
  std::string unary(const Micro& m, int u) const;
  std::string dropout_text(const Micro& m, int u, bool masked) const;
  // Returns which word of `step` is the address of the numbers that the rows have in the whole
  // graph; -1 if the positions of the rows are these numbers.
  int numbers_word() const;
  std::string number_of_row(int u, bool masked) const;
  std::string sum_text(const Micro& m, int u, bool masked) const;
  std::string shape_text(const Micro& m, int u) const;
  std::string row_text(const Micro& m, int u) const;
  std::string product_text(const Micro& m, int u) const;
  std::string micro(const Micro& m, int u, bool masked) const;

  const RowProgram& program_;
  Options o_;
  std::vector<int> shared_at_;  // place of each register in `sh`, or -1
  int shared_ = 0;              // floats of `sh` that all rows of the batch use
};

}  // namespace nacre::cuda
