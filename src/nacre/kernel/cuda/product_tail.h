// Writes tails that run on the result of a product on tensor cores while it is in registers. Four
// threads share a row, as the hardware distributes it, and each holds pairs of neighbouring
// columns.
#pragma once

#include <string>

#include "nacre/kernel/cuda/emit.h"

namespace nacre::cuda {

class ProductTail {
 public:
  // Prepares the text of a tail, in which MicroOp::root is the result of the product. `tail` must
  // outlive this object.
  explicit ProductTail(const RowProgram& tail);

  // Returns whether a tail can run in this way on a result of `columns` columns.
  static bool fits(const RowProgram& tail, int64_t columns);
  int64_t shared_floats(int threads) const;
  // Returns the statements for the head of the kernel.
  std::string setup() const { return text_.setup(); }
  // Returns the statements that run the tail on the rows of a tile, which are in the array `sums`.
  // `row` is the text that computes the position `i64 pos0` of the row with number ${AT} in the
  // tile, or executes `continue` if there is no such row. The tail uses shared memory from float
  // number `shared` on.
  std::string body(const std::string& row, int64_t shared) const;
  // Returns statements that fetch into the cache the rows that the tail of a tile will read, while
  // the products run.
  std::string prefetch(const std::string& row) const;

 private:
  const RowProgram& tail_;
  ProgramText text_;
};

}  // namespace nacre::cuda
