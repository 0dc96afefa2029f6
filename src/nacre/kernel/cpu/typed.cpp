#include "nacre/kernel/cpu/typed.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gather_rows.h"
#include "nacre/kernel/cpu/gemm.h"

namespace nacre::cpu {
namespace {

// Number of rows of the GEMM's register tile; tiles of pairs are multiples of it.
constexpr int64_t kTileStep = 12;
// The number of floats of the two tiles (gathered and multiplied), which share the second-level
// cache with the weights of one type.
constexpr int64_t kTileFloats = 3 << 15;
// Packing the weights pays if those of each type are used by at least this many pairs on average.
constexpr int64_t kPackPairs = 16;

int64_t tile_pairs(int64_t k, int64_t n) {
  return std::clamp<int64_t>(kTileFloats / std::max<int64_t>(1, k + n) / kTileStep, 8, 64) * kTileStep;
}

// Returns the number of pairs in each of the equal shares into which `pairs` pairs are cut, so that
// a share fits a tile.
int64_t even_share(int64_t pairs, int64_t tile) {
  const int64_t shares = (pairs + tile - 1) / tile;
  const int64_t share = (pairs + shares - 1) / shares;
  return std::min(tile, (share + kTileStep - 1) / kTileStep * kTileStep);
}

RowSums sums_of(const TypedView& view, const float* scale) {
  return {view.pair_ptr.data(), view.col.data(), view.edge_id.data(), scale, view.col.size()};
}

void multiply_tile(const TypedMatmulArgs& args, int32_t type, const float* packed, int64_t pairs, const float* in,
                   float* out) {
  const int64_t k = args.k;
  const int64_t n = args.n;
  const float* w = args.w + type * k * n;
  const int64_t inner = args.transpose ? n : k;
  const int64_t outer = args.transpose ? k : n;
  if (packed != nullptr) {
    gemm_tile_packed(pairs, outer, inner, in, inner, packed + type * gemm_packed_size(outer, inner), out, outer);
  } else if (args.transpose) {
    gemm_tile_nt(pairs, k, n, in, n, w, n, out, k);
  } else {
    gemm_tile_nn(pairs, n, k, in, k, w, n, out, n);
  }
}

void multiply_block(const TypedMatmulArgs& args, const TypedView::Block& block, const float* packed, float* scratch) {
  const TypedView& view = *args.view;
  const int64_t in = args.transpose ? args.n : args.k;
  const int64_t out = args.transpose ? args.k : args.n;
  const int64_t tile = tile_pairs(args.k, args.n);
  const RowSums sums = sums_of(view, args.scale);
  float* gathered = scratch;
  float* product = scratch + tile * in;
  std::fill(args.out + block.row_begin * out, args.out + block.row_end * out, 0.0f);
  for (int64_t g = block.group_begin; g < block.group_end; ++g) {
    const TypedView::Group& group = view.groups[g];
    const int64_t share = even_share(group.pair_end - group.pair_begin, tile);
    for (int64_t begin = group.pair_begin; begin < group.pair_end; begin += share) {
      const int64_t end = std::min(begin + share, group.pair_end);
      gather_sum(sums, begin, end, args.x, in, gathered);
      multiply_tile(args, group.type, packed, end - begin, gathered, product);
      scatter_add({view.pair_row.data() + begin, end - begin, 0}, product, out, args.out);
    }
  }
}

// Computes one run of the weight gradient: its pairs, from all blocks, fill tiles whose products
// are added up in `dw`.
void sum_run(const TypedWeightGradArgs& args, const TypedView::Run& run, float* dw, float* scratch) {
  const TypedView& view = *args.view;
  const bool by_dst = view.view->direction == Direction::by_dst;
  const int64_t tile = tile_pairs(args.k, args.n);
  const RowSums sums = sums_of(view, args.scale);
  float* x = scratch;
  float* g = scratch + tile * args.k;
  // `summed` is the side that is summed over the entries of a pair; `by_row` is read at the row of
  // the pair.
  const float* summed = by_dst ? args.x : args.g;
  const float* by_row = by_dst ? args.g : args.x;
  const int64_t summed_width = by_dst ? args.k : args.n;
  const int64_t by_row_width = by_dst ? args.n : args.k;
  float* summed_tile = by_dst ? x : g;
  float* by_row_tile = by_dst ? g : x;
  int64_t filled = 0;
  float beta = 0;
  const auto flush = [&] {
    gemm_tile_tn(filled, args.n, args.k, x, args.k, g, args.n, dw, args.n, beta);
    filled = 0;
    beta = 1;
  };
  for (int64_t i = run.begin; i < run.end; ++i) {
    const auto& group = view.groups[view.type_groups[i]];
    for (int64_t begin = group.pair_begin; begin < group.pair_end;) {
      const int64_t end = std::min(group.pair_end, begin + tile - filled);
      const RowList rows = {view.pair_row.data() + begin, end - begin, group.pair_end - end};
      gather_sum(sums, begin, end, summed, summed_width, summed_tile + filled * summed_width);
      gather_copy(rows, by_row, by_row_width, by_row_tile + filled * by_row_width);
      filled += end - begin;
      begin = end;
      if (filled == tile) flush();
    }
  }
  if (filled > 0) flush();
}

// Adds the partial sums of the later runs of each type to its first run, in order. Types without
// edges get 0.
void combine_runs(const TypedWeightGradArgs& args) {
  const std::vector<TypedView::Run>& runs = args.view->runs;
  const int64_t size = args.k * args.n;
  parallel_for(size, 2048, [&](int64_t begin, int64_t end) {
    size_t r = 0;
    for (int32_t t = 0; t < args.view->num_types; ++t) {
      float* dw = args.dw + t * size;
      if (r == runs.size() || runs[r].type != t) {
        std::fill(dw + begin, dw + end, 0.0f);
        continue;
      }
      for (++r; r < runs.size() && runs[r].type == t; ++r) {
        const float* term = args.workspace + runs[r].partial * size;
        for (int64_t i = begin; i < end; ++i) dw[i] += term[i];
      }
    }
  });
}

float* scratch_of(const Scratch& scratch) { return scratch.data + thread_index() * scratch.per_thread; }

}  // namespace

int64_t typed_scratch_floats(int64_t k, int64_t n) { return tile_pairs(k, n) * (k + n); }

int64_t typed_matmul_workspace(const TypedView& view, int64_t k, int64_t n) {
  return view.num_types * std::max(gemm_packed_size(n, k), gemm_packed_size(k, n));
}

void typed_matmul_reduce(const TypedMatmulArgs& args) {
  const TypedView& view = *args.view;
  NACRE_CHECK(args.scratch.per_thread >= typed_scratch_floats(args.k, args.n),
              "the scratch memory of the typed kernel is too small");
  float* packed = view.num_pairs >= kPackPairs * view.num_types ? args.workspace : nullptr;
  if (packed != nullptr) {
    const int64_t size = args.transpose ? gemm_packed_size(args.k, args.n) : gemm_packed_size(args.n, args.k);
    parallel_tasks(view.num_types, [&](int64_t t) {
      const float* w = args.w + t * args.k * args.n;
      if (args.transpose) {
        gemm_pack_nt(args.k, args.n, w, args.n, packed + t * size);
      } else {
        gemm_pack_nn(args.n, args.k, w, args.n, packed + t * size);
      }
    });
  }
  parallel_tasks(static_cast<int64_t>(view.blocks.size()),
                 [&](int64_t b) { multiply_block(args, view.blocks[b], packed, scratch_of(args.scratch)); });
}

int64_t typed_weight_grad_workspace(const TypedView& view, int64_t k, int64_t n) { return view.num_partials * k * n; }

void typed_weight_grad(const TypedWeightGradArgs& args) {
  const TypedView& view = *args.view;
  NACRE_CHECK(args.scratch.per_thread >= typed_scratch_floats(args.k, args.n),
              "the scratch memory of the typed kernel is too small");
  parallel_tasks(static_cast<int64_t>(view.runs.size()), [&](int64_t r) {
    const TypedView::Run& run = view.runs[r];
    const int64_t size = args.k * args.n;
    float* sum = run.partial < 0 ? args.dw + run.type * size : args.workspace + run.partial * size;
    sum_run(args, run, sum, scratch_of(args.scratch));
  });
  combine_runs(args);
}

}  // namespace nacre::cpu
