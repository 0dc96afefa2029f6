// What the typed kernels on a GPU are made of: the pairs of a graph in device memory, pieces of long ones, chunks that
// keep workspaces bounded, and matrix products.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/gpu/step_list.h"
#include "nacre/kernel/cuda/typed.h"

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
// Ranges whose pairs and rows both follow on each other, as one (of the first one's type).
std::vector<PairRange> merged(const std::vector<PairRange>& ranges);

// Most edges of a pair that is summed in one go, in a graph of that many edges.
int64_t long_pair(int64_t edges);
// The longer ones in pieces. Rows are slots (vertex · types + type) or pair numbers; everything is ordered by row.
struct LongPairs {
  std::vector<GpuSegment> pieces;  // `partial`: its own number
  std::vector<GpuSplitRow> rows;
};
LongPairs long_pairs(const PairIndex& pairs, int types, bool slots, int64_t longest);
// Pair of every slot; cuda::kNoRow where there is none.
std::vector<uint32_t> pairs_of_slots(const PairIndex& pairs, int64_t vertices, int types);

// ---- in device memory

// The pairs at one end of a graph's edges, in device memory.
class GpuPairs {
 public:
  GpuPairs(GpuContext& context, const Graph& graph, End end);

  const PairIndex& host() const { return *pairs_; }
  int64_t vertices() const { return vertices_; }
  int types() const { return types_; }
  int64_t num_pairs() const { return pairs_->num_pairs; }
  // Most slots have a pair: a matrix with a place for each wastes little.
  bool full() const;
  const uint32_t* vertex() const { return context_.resident(pairs_->vertex); }
  const uint32_t* pair_of_slot() const;

  // Sums over the edges of slots (or pairs) [first, first + count) of rows of x, into rows 0 … of `out`.
  struct Sum {
    cuda::TypedSum what;
    bool slots = false;
    const float* x = nullptr;
    const float* scale = nullptr;
    float* partials = nullptr;  // most_pieces(...) rows
    void* out = nullptr;
    int64_t first = 0, count = 0;
  };
  // Pieces that ranges of at most `count` rows have.
  int64_t most_pieces(bool slots, int64_t count) const;
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
  const LongPairs& long_ones(bool slots) const;

  GpuContext& context_;
  const PairIndex* pairs_;
  const void* graph_;  // whose pairs they are
  End end_;
  int64_t vertices_;
  int types_;
  mutable std::unique_ptr<LongPairs> long_ones_[2];
  mutable const uint32_t* pair_of_slot_ = nullptr;
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
};
void add_arrange(StepList& steps, cuda::Arrange how, const WeightShape& shape, const float* from, void* to, bool bf16);

// Bytes a kernel may use for rows in between.
int64_t rows_budget(GpuContext& context);

}  // namespace nacre
