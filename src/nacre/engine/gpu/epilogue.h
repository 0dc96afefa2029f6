// What of a product's tail the product itself can do while its result is in registers: add another value, a bias, relu.
#pragma once

#include "nacre/plan/plan.h"

namespace nacre {

struct Epilogue {
  NodeRef add = -1;   // a stored value of the result's shape
  NodeRef bias = -1;  // a parameter of one row
  bool relu = false;
  RowProgram rest;       // the tail after that, its MicroOp::root being the product's result; empty: nothing is left
  NodeRef result = -1;   // the stored value the result is, where nothing is left
  NodeRef landing = -1;  // a stored value whose memory may hold the result until the rest has run, or -1
  bool empty() const { return add < 0 && bias < 0 && !relu; }
};
// A value that a tail stores in rows as wide as those it follows, and whose memory may hold these until the tail runs;
// -1: there is none.
NodeRef find_landing(const RowProgram& rest);
// `root_stored`: the product's own result is wanted too, so nothing may happen to it. `add`: whether values may be
// added.
Epilogue absorb_tail(const RowProgram& tail, bool root_stored, bool add = true);

}  // namespace nacre
