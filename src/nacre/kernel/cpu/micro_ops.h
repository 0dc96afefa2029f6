// SIMD micro-kernels of the tile interpreter: one function per micro-op, compiled for every
// instruction set and chosen at run time. A call covers all rows of a tile.
#pragma once

#include <cstdint>

#include "nacre/graph/graph.h"
#include "nacre/kernel/program.h"

namespace nacre::cpu {

// The rows of a register, wherever they lie: row r starts at base + (index ? index[r] : r) ·
// stride. A stride of 0 is one row that stands for all.
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
  // packed rows of out_width; may be a's or b's memory for elementwise micro-ops
  float* out = nullptr;
  int64_t out_width = 0;
  // Row r's position is position ? position[r] : first_position + r.
  int64_t first_position = 0;
  const uint32_t* position = nullptr;
  // dropout: the step's stream
  uint64_t key = 0;
  uint64_t step = 0;
  // take_max: argmax rows and the destination of each row; standardize: the moments
  const void* operand = nullptr;
  const uint32_t* dst = nullptr;
};

using MicroFunction = void (*)(const MicroCall&);

// The function of every computing micro-op, indexed by MicroOp (null for loads, root and store).
const MicroFunction* micro_functions();

// Sums and maxima over runs of rows.
struct RowSegment {
  const Rows* value = nullptr;
  int64_t begin = 0, end = 0;  // rows of `value`; not empty
  float* sum = nullptr;        // or maximum: value->width floats
  bool fresh = true;           // nothing in `sum` yet
  int32_t* argmax = nullptr;   // maximum only, may be null
  int64_t first_position = 0;  // as in MicroCall
  const uint32_t* position = nullptr;
  int64_t fetch_end = 0;  // rows of `value` before this one may be fetched early
};

struct SegmentFunctions {
  void (*copy)(const Rows& from, int64_t rows, float* out);  // to packed rows
  void (*scatter)(const Rows& from, int64_t rows, const uint32_t* to, float* out);
  void (*add)(const RowSegment& segment);
  void (*max)(const RowSegment& segment);
  void (*scale)(float* row, int64_t width, float factor);
};
const SegmentFunctions& segment_functions();

// Parts of micro_functions(): micro_rows.cpp (null when it has none) and dropout.cpp.
MicroFunction row_micro_function(MicroOp op);
MicroFunction dropout_function();

}  // namespace nacre::cpu
