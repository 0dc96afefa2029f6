// Typed gather–GEMM–reduce on the CPU, the kernel of RGCN: out[row] += scale[e] ·
// x[col]·W[type(e)], without copies of features on edges. The entries of one (row, type) pair are
// summed first, so that the matrix product runs once per pair instead of once per edge; this is
// allowed because products are linear. Tiles of pairs are gathered into cache, multiplied, and
// added to the rows of the tile's row block. One task owns a row block, so there are no atomics and
// the bits are the same on any number of threads.
#pragma once

#include <memory>
#include <vector>

#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {

// Holds the distinct (row, type) pairs of a view, ordered by (row block, type, row), and their
// entries. It is prepared once.
struct TypedView {
  std::shared_ptr<const RowView> view;
  int num_types = 1;
  int64_t num_pairs = 0;
  struct Block {  // one row block: rows [row_begin, row_end)
    int64_t row_begin, row_end;
    int64_t group_begin, group_end;  // range in groups
  };
  struct Group {  // the pairs of one type inside one block
    int32_t type;
    int64_t pair_begin, pair_end;
  };
  struct Run {  // a share of one type's pairs, summed into one partial weight gradient
    int32_t type;
    int64_t begin, end;  // range in type_groups
    // The partial sum that the run is added to; -1: the first run of a type is written straight to
    // the result.
    int64_t partial = -1;
  };
  std::vector<Block> blocks;
  std::vector<Group> groups;
  std::vector<int64_t> type_groups;  // numbers of the groups, ordered by type
  std::vector<Run> runs;             // ordered by type
  int64_t num_partials = 0;
  Array<NodeId> pair_row;   // row of each pair
  Array<int64_t> pair_ptr;  // num_pairs + 1: entries of each pair
  Array<NodeId> col;        // other end of each entry, in pair order
  Array<EdgeId> edge_id;    // in-CSR position of each entry, in pair order
  int64_t bytes() const;
};
std::shared_ptr<const TypedView> make_typed_view(std::shared_ptr<const RowView> view);

struct TypedMatmulArgs {
  const TypedView* view = nullptr;
  const float* x = nullptr;      // cols × in
  const float* w = nullptr;      // types × [K, N]
  const float* scale = nullptr;  // a factor for each edge, or null
  int64_t k = 0, n = 0;          // w's shape
  bool transpose = false;        // false: in = K, out = N, uses w; true: in = N, out = K, uses wᵀ
  float* out = nullptr;          // rows × (transpose ? K : N), overwritten
  Scratch scratch;               // per_thread >= typed_scratch_floats(k, n)
  // Memory of typed_matmul_workspace(...) floats, in which w is packed for the GEMM. With null, the
  // product is slower and gives the same bits.
  float* workspace = nullptr;
};
int64_t typed_scratch_floats(int64_t k, int64_t n);
int64_t typed_matmul_workspace(const TypedView& view, int64_t k, int64_t n);
void typed_matmul_reduce(const TypedMatmulArgs& args);

// Computes dw[t] = Σ over edges of type t of scale[e] · x[src]ᵀ·g[dst]. With a by_dst view, x is
// gathered and summed per pair and g is read by row; with a by_src view, g is gathered and x is
// read by row. The view with fewer pairs is the faster one.
struct TypedWeightGradArgs {
  const TypedView* view = nullptr;
  const float* x = nullptr;  // num_src × K
  const float* g = nullptr;  // num_dst × N
  const float* scale = nullptr;
  int64_t k = 0, n = 0;
  float* dw = nullptr;         // types × [K, N], overwritten
  float* workspace = nullptr;  // typed_weight_grad_workspace(...) floats: partial sums of the runs
  Scratch scratch;             // per_thread >= typed_scratch_floats(k, n)
};
int64_t typed_weight_grad_workspace(const TypedView& view, int64_t k, int64_t n);
void typed_weight_grad(const TypedWeightGradArgs& args);

}  // namespace nacre::cpu
