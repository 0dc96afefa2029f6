// SIMD micro-kernels of the tile interpreter: one function for each micro-op, compiled for every
// instruction set and chosen at run time. A call covers all rows of a tile.
#pragma once

#include <cstdint>

#include "nacre/graph/graph.h"
#include "nacre/kernel/program.h"

namespace nacre::cpu {

// The rows of a register, wherever they are in memory: row r starts at base + (index ? index[r] :
// r) · stride. With a stride of 0, one row stands for all.
struct Rows {
  const float* base = nullptr;
  const uint32_t* index = nullptr;
  int64_t stride = 0;
  int64_t width = 0;

  const float* row(int64_t r) const { return base + (index != nullptr ? int64_t{index[r]} : r) * stride; }
  bool packed() const { return index == nullptr && stride == width; }
};

struct MicroCall {
  const Micro* micro = nullptr;
  int64_t rows = 0;
  Rows a, b;
  // The result: packed rows of out_width floats. In elementwise micro-ops, out may be a or b.
  float* out = nullptr;
  int64_t out_width = 0;
  // The position of row r is position ? position[r] : first_position + r.
  int64_t first_position = 0;
  const uint32_t* position = nullptr;
  // The key and the step of the random numbers; used by dropout only.
  uint64_t key = 0;
  uint64_t step = 0;
  // `operand` is the argmax rows for take_max and the moments for standardize. `dst`, the
  // destination of each row, is used by take_max only.
  const void* operand = nullptr;
  const uint32_t* dst = nullptr;
};

using MicroFunction = void (*)(const MicroCall&);

// Returns the functions of the computing micro-ops, indexed by MicroOp; null for loads, root and
// store.
const MicroFunction* micro_functions();

// Sums and maxima over runs of rows.
struct RowSegment {
  const Rows* value = nullptr;
  int64_t begin = 0, end = 0;  // rows of `value`; not empty
  float* sum = nullptr;        // sum or maximum: value->width floats
  bool fresh = true;           // whether `sum` holds nothing yet
  int32_t* argmax = nullptr;   // used by the maximum only; may be null
  int64_t first_position = 0;  // the value of MicroCall::first_position
  const uint32_t* position = nullptr;
  int64_t fetch_end = 0;  // rows of `value` before this one may be prefetched
};

struct SegmentFunctions {
  void (*copy)(const Rows& from, int64_t rows, float* out);  // copies to packed rows
  void (*scatter)(const Rows& from, int64_t rows, const uint32_t* to, float* out);
  void (*add)(const RowSegment& segment);
  void (*max)(const RowSegment& segment);
  void (*scale)(float* row, int64_t width, float factor);
};
const SegmentFunctions& segment_functions();

// Return the parts of micro_functions() that are defined in micro_rows.cpp and dropout.cpp.
// row_micro_function() returns null for micro-ops that micro_rows.cpp does not have.
MicroFunction row_micro_function(MicroOp op);
MicroFunction dropout_function();

}  // namespace nacre::cpu
