// The part of a tail that a matrix product can do itself while its result is in registers: add
// another value, add a bias, apply relu.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

struct Epilogue {
  NodeRef add = -1;   // a stored value of the same shape as the result, or -1
  NodeRef bias = -1;  // a parameter of one row, or -1
  bool relu = false;
  // The remaining tail, which may be empty. Its MicroOp::root is the result of the product.
  RowProgram rest;
  NodeRef result = -1;  // if the rest is empty, the stored value that the result is
  // A stored value whose memory may hold the result until the rest has run, or -1.
  NodeRef landing = -1;
  bool empty() const { return add < 0 && bias < 0 && !relu; }
};
// Returns a value that `rest` stores, whose rows are as wide as those of the product's result, and
// whose memory may hold that result until `rest` runs; -1 if there is none.
NodeRef find_landing(const RowProgram& rest);
// Splits a tail into the part that the product does and the rest. If `root_stored`, the result of
// the product itself must be stored too, so the product does no part of the tail. `add` says
// whether the product may add a value.
Epilogue absorb_tail(const RowProgram& tail, bool root_stored, bool add = true);

}  // namespace nacre
