// A matrix product in the tail of another product: x · w + x' · w' is computed without storing
// either product.
#pragma once

#include <optional>
#include <vector>

#include "nacre/kernel/program.h"

namespace nacre {

// The rows of x times w, or times the transpose of w if `transpose` is set.
struct RowFactor {
  NodeRef x = -1, w = -1;
  bool transpose = false;
};

// If the tail adds a product of stored rows to its root, removes that product from the tail and
// returns its factors; the caller must then add the product to the root. Returns nothing if the
// tail adds no product, or if it uses the root or the product in any other way.
std::optional<RowFactor> take_product(RowProgram& tail);

// The sum of the products x · w over all inputs, and the tail that follows.
struct SummedProducts {
  std::vector<RowFactor> inputs;
  RowProgram tail;  // here MicroOp::root stands for the sum
};

}  // namespace nacre
