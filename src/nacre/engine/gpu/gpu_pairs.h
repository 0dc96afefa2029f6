// This header declares what the binders of typed kernels on a GPU share: the pairs of a graph in
// device memory, pieces of long pairs, chunks that bound the workspace, and matrix products.
#pragma once

#include <string>
#include <vector>

#include "nacre/engine/gpu/step_list.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/kernel/cuda/typed_mma.h"

namespace nacre {

// ---- Index work on the host.

// Returns the number of rows of a chunk if `total` rows are cut into equal chunks of at most about
// `most` rows. If there are several chunks, this number is a multiple of 128.
int64_t chunk_rows(int64_t total, int64_t most);
// Cuts the vertices into runs of at most `most` pairs and returns the borders, from 0 to the number
// of vertices. A vertex with more pairs is a run of its own.
std::vector<int64_t> cut_by_pairs(const Array<int64_t>& vertex_ptr, int64_t most);

// Names the pairs of one type, and the place of their rows in a matrix.
struct PairRange {
  int type;
  int64_t begin, end;  // numbers of the pairs
  int64_t offset;      // row of the matrix at which their rows begin
};
// Returns the pairs whose vertices lie in a run, by type. Types without pairs are left out.
std::vector<PairRange> ranges_of(const PairIndex& pairs, int64_t vertex_begin, int64_t vertex_end);

// In the cut_…() functions below, a position is the place of a row among the rows ordered by type;
// type_ptr says where each type begins.

// Names the rows of one type within a run of rows ordered by type.
struct TypeRun {
  int64_t type, begin, end;
};
std::vector<TypeRun> runs_of_types(const std::vector<int64_t>& type_ptr, int64_t begin, int64_t end);

// Cuts positions into runs of one type and at most `rows` positions each. If `vertex` is not null,
// runs of the same vertices are neighbours, whatever their type, so that rows which one run has
// read are still in a cache for the next.
std::vector<cuda::MmaRun> cut_products(const std::vector<int64_t>& type_ptr, int64_t rows, const NodeId* vertex);
// Cuts positions into about `wanted` runs of similar length, at least one for each type that has
// positions. The length is a multiple of `rows` except for the last run of a type.
std::vector<cuda::MmaRun> cut_evenly(const std::vector<int64_t>& type_ptr, int64_t wanted, int64_t rows);
// Cuts positions into about `wanted` runs of similar length, in the order of the positions, at
// least one for each type that has positions.
std::vector<cuda::MmaRun> cut_grads(const std::vector<int64_t>& type_ptr, int64_t wanted);
// Returns the first run of each type, and the number of runs.
std::vector<int32_t> first_runs(const std::vector<cuda::MmaRun>& runs, int64_t types);

// Pairs longer than a limit are cut into pieces. With this limit, every pair is summed as a whole.
inline constexpr int64_t kWholePairs = INT64_MAX;

// Names the pairs that are summed, and the rows for their sums. With `cells`, the sum of a pair
// goes to the row of its cell, vertex · types + type, counted from first_cell on, and cells without
// a pair become zeros. Without `cells`, the ranges say where the sums go.
struct SumRange {
  std::vector<PairRange> ranges;
  bool cells = false;
  int64_t first_cell = 0, num_cells = 0;

  static SumRange of_pairs(int64_t begin, int64_t end) { return {{{0, begin, end, 0}}}; }
  static SumRange of_cells(const PairIndex& pairs, int types, int64_t vertex_begin, int64_t vertex_end);
};
// Holds the sums of a SumRange as units of work: first pieces of long pairs, then runs of short
// pairs.
struct PackedSums {
  // An item with `partial` >= 0 is a piece of a long pair. Any other item is a run of short pairs:
  // unless the sums go to cells, the sum of pair p goes to row p − `row` of the result.
  std::vector<cuda::Segment> items;
  std::vector<cuda::SplitRow> rows;  // pairs that are in pieces
  std::vector<uint32_t> zeros;       // with cells: rows of the result that belong to no pair
  int64_t num_partials = 0;
};
// Returns the sums of `range` as units of work. Pairs of more than `longest` edges are cut into
// pieces (plan/variants/sums.h).
PackedSums pack_sums(const PairIndex& pairs, int types, const SumRange& range, int64_t longest);
// Returns the pair of every edge. The edges are in the order of the pairs.
std::vector<uint32_t> pairs_of_entries(const PairIndex& pairs);
// Returns the pair of every cell, cuda::kNoRow for a cell without a pair.
std::vector<uint32_t> pairs_of_cells(const PairIndex& pairs, int64_t vertices, int types);

// Holds an order of the vertices in which those with the same types are neighbours, so that few
// types occur in only a part of a run of at most `rows` vertices. Runs with many types come first,
// because they take longest. With more than cuda::kMostMasked types, the vertices keep their order.
struct CellOrder {
  std::vector<uint32_t> vertex;  // vertex of each position
  std::vector<uint32_t> pair;    // pair of each cell of each position
  std::vector<cuda::MmaRun> runs;
};
CellOrder order_cells(const PairIndex& pairs, int64_t vertices, int types, int64_t rows);

// ---- Device memory.

// GpuPairs: keeps the pairs at one end of the edges of a graph in device memory, and adds steps
// that sum over them.
class GpuPairs {
 public:
  GpuPairs(GpuContext& context, const Graph& graph, End end);

  const PairIndex& host() const { return *pairs_; }
  int64_t vertices() const { return vertices_; }
  int types() const { return types_; }
  int64_t num_pairs() const { return pairs_->num_pairs; }
  // Returns whether the number of cells fits into 32 bits.
  bool has_cells() const { return vertices_ * types_ < int64_t{cuda::kNoRow}; }
  const uint32_t* vertex() const { return context_.resident(pairs_->vertex); }
  const uint32_t* pair_of_cell() const;
  const uint32_t* cell_of_pair() const;
  // Points to the arrays of a CellOrder in device memory.
  struct Cells {
    const uint32_t* vertex;
    const uint32_t* pair;
    const cuda::MmaRun* runs;
    int64_t num_runs;
  };
  // Returns the order of the vertices for products by cell, in runs of at most `rows` vertices.
  Cells cells(int64_t rows) const;
  // Returns the pair of each edge. The edges are in the order of the pairs.
  const uint32_t* pair_of_entry() const;

  // Points to the edges in the order of the pairs: the vertices at their other ends, their pairs,
  // and their numbers.
  struct Entries {
    const NodeId* other = nullptr;
    const uint32_t* pair = nullptr;
    const EdgeId* edge = nullptr;
  };

  // Describes a sum of rows of x over the edges of each pair.
  struct Sum {
    cuda::TypedSum what;
    SumRange range;
    const float* x = nullptr;
    const float* scale = nullptr;
    bool by_entry = false;      // the scale lies in the order of the pairs, not of the edges
    Entries entries;            // copies in the workspace; null members: the copies of this object
    float* partials = nullptr;  // num_partials(range) rows of what.length floats
    void* out = nullptr;
  };
  // Takes the plan's decisions about sums over the edges of pairs (plan/variants/sums.h) and enters
  // them into `args`: in which order the scales of the edges are read, whether rows of x are copied
  // to longer ones, whether the edges are copied to the workspace once before the first sum, and
  // which pairs are cut. `scale` is the node of the scales, or -1. Must be called once before sums
  // of x are taken.
  void prepare(const GpuKernel& k, StepList& steps, NodeRef scale, Sum& args);
  int64_t num_partials(const SumRange& range) const { return packed(range).num_partials; }
  void sum(StepList& steps, Sum args) const;

  // Holds the parameters of sum_of_vertices().
  struct OfVertices {
    int64_t width = 0;
    const float* p = nullptr;
    float* out = nullptr;
    int64_t first = 0, count = 0;
  };
  // Adds the step that computes, for the vertices [first, first + count), out[vertex] = the sum of
  // the rows of p that belong to the pairs of the vertex. `ranges` says where the pairs lie in p.
  // If it is empty, row i of p belongs to pair i.
  void sum_of_vertices(StepList& steps, const OfVertices& args, const std::vector<PairRange>& ranges) const;

 private:
  std::string key(const char* what) const;
  std::string key(const char* what, const SumRange& range) const;
  const PackedSums& packed(const SumRange& range) const;
  Entries bring_entries(StepList& steps, bool scaled) const;

  GpuContext& context_;
  const PairIndex* pairs_;
  const void* graph_;  // identifies the graph in keys
  End end_;
  int64_t vertices_;
  int64_t others_;  // number of vertices at the other end
  int types_;
  int64_t longest_ = kWholePairs;
};

// Holds the parameters of cuda::copy_rows() (kernel/cuda/typed.h).
struct RowCopy {
  cuda::CopyRows what;
  const float* x = nullptr;
  const uint32_t* map_in = nullptr;
  int64_t first_in = 0;
  void* out = nullptr;
  const uint32_t* map_out = nullptr;
  int64_t first_out = 0;
  int64_t count = 0;
};
void add_copy(StepList& steps, const RowCopy& copy);

// Describes the shape of typed weights.
struct WeightShape {
  int64_t types, k, n;
  int64_t ld = 0;  // length of the rows that cuda::arrange_weights() fills up with zeros; 0: none
};
void add_arrange(StepList& steps, cuda::Arrange how, const WeightShape& shape, const float* from, void* to, bool bf16);

// Returns the weights as cuda::TypedProduct reads them, for products with the matrices or, if
// `transpose`, with their transposes. Adds the step that arranges them if they have to be copied.
const float* matrices_of(StepList& steps, const WeightShape& shape, const float* w, bool transpose);

// Adds steps that set the gradients of types without rows to zeros.
void zero_unused(StepList& steps, const std::vector<int64_t>& type_ptr, const WeightShape& shape, float* dw);

}  // namespace nacre
