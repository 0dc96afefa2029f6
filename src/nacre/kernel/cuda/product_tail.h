// Tails that run on the result of a product on tensor cores while it is in registers: four threads share a row, as the
// hardware deals it out, each holding pairs of neighbouring columns.
#pragma once

#include <string>

#include "nacre/kernel/cuda/emit.h"

namespace nacre::cuda {

class ProductTail {
 public:
  // MicroOp::root of the tail is the product. The program must outlive this.
  explicit ProductTail(const RowProgram& tail);

  // Whether a tail can run so on a result of `columns` columns.
  static bool fits(const RowProgram& tail, int64_t columns);
  int64_t shared_floats(int threads) const;
  // Once, at the head of the kernel.
  std::string setup() const { return text_.setup(); }
  // Statements over the rows of a tile, whose sums are `sums`. `row` is what makes the number ${AT} of a row in the
  // tile into its position `i64 pos0`, or says `continue`. Shared memory of the tail begins `shared` floats in.
  std::string body(const std::string& row, int64_t shared) const;
  // The rows of a tile that the tail will read, on their way while the products run. A tail that reads them across rows
  // of memory finds them all the same.
  std::string prefetch(const std::string& row) const;

 private:
  const RowProgram& tail_;
  ProgramText text_;
};

}  // namespace nacre::cuda
