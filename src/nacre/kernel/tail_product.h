// A second product in the tail of a first one: x · w + x' · w' without a value in between.
#pragma once

#include <optional>
#include <vector>

#include "nacre/kernel/program.h"

namespace nacre {

// Rows of x times w, or (`transpose`) times its transpose.
struct RowFactor {
  NodeRef x = -1, w = -1;
  bool transpose = false;
};

// Takes a product that a tail adds to its root out of the tail: the root is larger by it then.
// Nothing where there is none, or where the tail uses either otherwise.
std::optional<RowFactor> take_product(RowProgram& tail);

// Σ x · w over the inputs, and the tail that follows.
struct SummedProducts {
  std::vector<RowFactor> inputs;
  RowProgram tail;  // its MicroOp::root is the sum
};

}  // namespace nacre
