// What the typed kernels on a GPU are made of: the pairs of a graph in device memory, pieces of long ones, chunks that
// keep workspaces bounded, and matrix products.
#pragma once

#include <string>
#include <vector>

#include "nacre/engine/gpu/step_list.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/kernel/cuda/typed_mma.h"

namespace nacre {

// ---- index work, on the host

// Rows of a chunk when `total` rows are cut into equal chunks of at most about `most`, in multiples of 128 where there
// are several.
int64_t chunk_rows(int64_t total, int64_t most);
// Borders of runs of vertices that have at most `most` pairs (a vertex with more is a run of its own): 0 … vertices.
std::vector<int64_t> cut_by_pairs(const Array<int64_t>& vertex_ptr, int64_t most);

// Pairs of one type, and where they go in a matrix.
struct PairRange {
  int type;
  int64_t begin, end;  // pairs
  int64_t offset;      // rows before them
};
// The pairs whose vertices lie in a run, by type; types without any are left out.
std::vector<PairRange> ranges_of(const PairIndex& pairs, int64_t vertex_begin, int64_t vertex_end);

// The rows of one type within a run of rows ordered by type.
struct TypeRun {
  int64_t type, begin, end;
};
std::vector<TypeRun> runs_of_types(const std::vector<int64_t>& type_ptr, int64_t begin, int64_t end);

// Runs of at most `rows` positions of one type each. Where positions belong to vertices, those of the same vertices
// come together, whatever their type: rows read for one are then still in a cache for the next.
std::vector<cuda::MmaRun> cut_products(const std::vector<int64_t>& type_ptr, int64_t rows, const NodeId* vertex);
// About `wanted` runs of alike length, whole multiples of `rows` but for the last of a type, at least one for each type
// that has any.
std::vector<cuda::MmaRun> cut_evenly(const std::vector<int64_t>& type_ptr, int64_t wanted, int64_t rows);
// About `wanted` runs of alike length, in order of the positions, at least one for each type that has any.
std::vector<cuda::MmaRun> cut_grads(const std::vector<int64_t>& type_ptr, int64_t wanted);
// First run of each type, and their number.
std::vector<int32_t> first_runs(const std::vector<cuda::MmaRun>& runs, int64_t types);

// Most edges of a pair that is summed in one go, in a graph of that many edges.
int64_t long_pair(int64_t edges);

// Pairs to be summed, and where their sums go: pairs of vertices, by slot (vertex · types + type, from first_slot on;
// slots without a pair get zeros) or as the ranges say.
struct SumRange {
  std::vector<PairRange> ranges;
  bool slots = false;
  int64_t first_slot = 0, num_slots = 0;

  static SumRange of_pairs(int64_t begin, int64_t end) { return {{{0, begin, end, 0}}}; }
  static SumRange of_slots(const PairIndex& pairs, int types, int64_t vertex_begin, int64_t vertex_end);
};
// The same as units of work: pieces of long pairs, then runs of short ones.
struct PackedSums {
  std::vector<GpuSegment> items;  // `partial` >= 0: a piece; otherwise `row`: pair less row of the result
  std::vector<GpuSplitRow> rows;  // of pairs in pieces
  std::vector<uint32_t> zeros;    // rows without a pair
  int64_t num_partials = 0;
};
PackedSums pack_sums(const PairIndex& pairs, int types, const SumRange& range);
// Pair of every edge, in the pairs' order.
std::vector<uint32_t> pairs_of_entries(const PairIndex& pairs);
// Whether a kernel sums over the edges of pairs at one end.
bool sums_edges_of_pairs(const Kernel& kernel, const Dfg& dfg, End end);
// Pair of every slot; cuda::kNoRow where there is none.
std::vector<uint32_t> pairs_of_slots(const PairIndex& pairs, int64_t vertices, int types);

// Vertices in an order in which those of the same types come together, so that runs of at most `rows` of them have few
// types that only some of them have. Runs of many types come first: they take longest. More types than have a bit:
// vertices as they are.
struct SlotOrder {
  std::vector<uint32_t> vertex;  // of each position
  std::vector<uint32_t> pair;    // of each position's slots
  std::vector<cuda::MmaRun> runs;
};
SlotOrder order_slots(const PairIndex& pairs, int64_t vertices, int types, int64_t rows);

// ---- in device memory

// The pairs at one end of a graph's edges, in device memory.
class GpuPairs {
 public:
  GpuPairs(GpuContext& context, const Graph& graph, End end);

  const PairIndex& host() const { return *pairs_; }
  int64_t vertices() const { return vertices_; }
  int types() const { return types_; }
  int64_t num_pairs() const { return pairs_->num_pairs; }
  // Slots can be numbered.
  bool has_slots() const { return vertices_ * types_ < int64_t{cuda::kNoRow}; }
  const uint32_t* vertex() const { return context_.resident(pairs_->vertex); }
  const uint32_t* pair_of_slot() const;
  const uint32_t* slot_of_pair() const;
  // For products of runs of at most `rows` vertices, by slot.
  struct Slots {
    const uint32_t* vertex;
    const uint32_t* pair;
    const cuda::MmaRun* runs;
    int64_t num_runs;
  };
  Slots slots(int64_t rows) const;
  const uint32_t* pair_of_entry() const;  // of the edges in the pairs' order

  // The edges in the pairs' order: the vertices at their other ends, their pairs, and their own numbers.
  struct Entries {
    const NodeId* other = nullptr;
    const uint32_t* pair = nullptr;
    const EdgeId* edge = nullptr;
  };

  // Sums over the edges of pairs of rows of x.
  struct Sum {
    cuda::TypedSum what;
    SumRange range;
    const float* x = nullptr;
    const float* scale = nullptr;
    bool by_entry = false;      // the scale lies in the order of the pairs' edges
    Entries entries;            // in the workspace; nulls: those that stay in device memory
    float* partials = nullptr;  // num_partials(range) rows of what.length
    void* out = nullptr;
  };
  // To be called once before sums of x are taken, `scale` being the node of its numbers of edges or -1: constant ones
  // are brought into the pairs' order, and rows of x of no whole number of vectors are lengthened if they are read
  // often. Entries that only constants walk are brought to the workspace, which is free before the first step.
  void prepare(const GpuKernel& k, StepList& steps, NodeRef scale, Sum& args) const;
  int64_t num_partials(const SumRange& range) const { return packed(range).num_partials; }
  void sum(StepList& steps, Sum args) const;

  // out[vertex] = Σ of the rows of p of its pairs, for vertices [first, first + count). `ranges`: where the pairs lie
  // in p; empty: by number.
  struct OfVertices {
    int64_t width = 0;
    const float* p = nullptr;
    float* out = nullptr;
    int64_t first = 0, count = 0;
  };
  void sum_of_vertices(StepList& steps, const OfVertices& args, const std::vector<PairRange>& ranges) const;

 private:
  std::string key(const char* what) const;
  std::string key(const char* what, const SumRange& range) const;
  const PackedSums& packed(const SumRange& range) const;
  Entries bring_entries(StepList& steps, bool scaled) const;
  // Where rows are read many times over but do not fit the cache together, tiles of their columns do.
  int64_t column_tiles(int64_t width) const;

  GpuContext& context_;
  const PairIndex* pairs_;
  const void* graph_;  // whose pairs they are
  End end_;
  int64_t vertices_;
  int64_t others_;  // vertices at the other end
  int types_;
};

// copy_rows (kernel/cuda/typed.h) over a range.
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

// Weights in another arrangement.
struct WeightShape {
  int64_t types, k, n;
  int64_t ld = 0;  // of the arranged ones' rows, where they are filled up with zeros (cuda::arrange_weights)
};
void add_arrange(StepList& steps, cuda::Arrange how, const WeightShape& shape, const float* from, void* to, bool bf16);

// As cuda::TypedProduct reads them, for products with W or (`transpose`) with its transposes.
const float* matrices_of(StepList& steps, const WeightShape& shape, const float* w, bool transpose);

// Gradients of types without rows become zeros.
void zero_unused(StepList& steps, const std::vector<int64_t>& type_ptr, const WeightShape& shape, float* dw);

// What a way of doing typed products costs, on an ordinary data-centre GPU, to choose between ways.
struct WayCost {
  double launches = 0;
  double floats = 0;  // read or written
  double flops = 0;
  double seconds() const { return launches * 3e-6 + floats * 4 / 3.5e12 + flops / 300e12; }
};

// Bytes a kernel may use for rows in between; for copies of rows, which chunks of any size serve as well.
int64_t rows_budget(GpuContext& context);
int64_t copies_budget(GpuContext& context);

}  // namespace nacre
