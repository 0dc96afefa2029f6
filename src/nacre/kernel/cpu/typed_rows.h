// Products of stored rows with one matrix for each type, and their weight gradient. They are used
// when a typed product was moved to distinct (vertex, type) pairs, or was left on the edges and not
// fused. The rows are walked type by type, so that every tile is one small GEMM. The rows of an
// operand may be gathered on the way.
#pragma once

#include <memory>
#include <vector>

#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {

// Holds row numbers sorted by type. It is prepared once for each space.
struct RowsByType {
  struct Run {  // consecutive rows of one type, the work of one task
    int32_t type;
    int64_t begin, end;
    // Used by weight gradients: the partial sum that the run is added to; -1: the first run of a
    // type is written to the result.
    int64_t partial = -1;
  };
  int64_t rows = 0;
  int num_types = 1;
  std::vector<Run> runs;       // runs of the product
  std::vector<Run> grad_runs;  // runs of the gradient, which are longer
  int64_t num_partials = 0;
  const uint32_t* order = nullptr;  // row number of each position; null: the position itself
  std::shared_ptr<const void> keep;
};
// Return the edges of a graph by type, and the pairs of one end by type (pairs are stored in this
// order already).
std::shared_ptr<const RowsByType> edges_by_type(const Graph& graph);
std::shared_ptr<const RowsByType> pairs_by_type(const Graph& graph, End end);

struct TypedRowsArgs {
  const RowsByType* rows = nullptr;
  const float* x = nullptr;
  const uint32_t* gather = nullptr;  // row of x for each row; null: the row itself
  const float* w = nullptr;          // types × [K, N]
  int64_t k = 0, n = 0;
  bool transpose = false;  // multiplies by wᵀ
  float* out = nullptr;
  float* workspace = nullptr;  // typed_rows_workspace(...) floats
  Scratch scratch;             // per_thread >= typed_rows_scratch(k, n)
};
int64_t typed_rows_scratch(int64_t k, int64_t n);
int64_t typed_rows_workspace(const RowsByType& rows, int64_t k, int64_t n);
void typed_rows(const TypedRowsArgs& args);

// Computes dw[t] = Σ over rows of type t of xᵀ·g.
struct TypedRowsGradArgs {
  const RowsByType* rows = nullptr;
  const float* x = nullptr;
  const uint32_t* gather_x = nullptr;
  const float* g = nullptr;
  const uint32_t* gather_g = nullptr;
  int64_t k = 0, n = 0;
  float* dw = nullptr;
  float* workspace = nullptr;  // rows->num_partials · k · n floats
  Scratch scratch;
};
void typed_rows_grad(const TypedRowsGradArgs& args);

}  // namespace nacre::cpu
