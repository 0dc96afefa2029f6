#include "nacre/kernel/cpu/typed_rows.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gather_rows.h"
#include "nacre/kernel/cpu/gemm.h"
#include "nacre/kernel/cpu/tile_runner.h"

namespace nacre::cpu {
namespace {

constexpr int64_t kTileRows = 96;       // a multiple of the rows of the GEMM's register tile
constexpr int64_t kRunRows = 960;       // rows of a run of the product, the work of one task
constexpr int64_t kGradRuns = 48;       // largest number of partial weight gradients
constexpr int64_t kMinGradRows = 4096;  // smallest number of rows of a run of the gradient

void cut(RowsByType& rows, const int64_t* type_ptr) {
  const int64_t grad_rows = std::max(kMinGradRows, (rows.rows + kGradRuns - 1) / kGradRuns);
  for (int32_t t = 0; t < rows.num_types; ++t) {
    for (int64_t b = type_ptr[t]; b < type_ptr[t + 1]; b += kRunRows) {
      rows.runs.push_back({t, b, std::min(type_ptr[t + 1], b + kRunRows), -1});
    }
    for (int64_t b = type_ptr[t]; b < type_ptr[t + 1]; b += grad_rows) {
      const int64_t partial = b == type_ptr[t] ? -1 : rows.num_partials++;
      rows.grad_runs.push_back({t, b, std::min(type_ptr[t + 1], b + grad_rows), partial});
    }
  }
}

struct Operand {
  const float* x;
  const uint32_t* gather;  // row of x for each row, or null
  int64_t width;
};

// Returns rows [begin, end) of an operand as a packed tile, without a copy if they already lie
// together.
const float* tile_of(const RowsByType& rows, int64_t begin, int64_t end, const Operand& from, float* tile) {
  if (rows.order == nullptr && from.gather == nullptr) return from.x + begin * from.width;
  if (rows.order == nullptr || from.gather == nullptr) {
    const uint32_t* index = (rows.order == nullptr ? from.gather : rows.order) + begin;
    gather_copy({index, end - begin, std::min<int64_t>(rows.rows - end, kTileRows)}, from.x, from.width, tile);
    return tile;
  }
  uint32_t index[kTileRows];
  for (int64_t i = begin; i < end; ++i) index[i - begin] = from.gather[rows.order[i]];
  gather_copy({index, end - begin, 0}, from.x, from.width, tile);
  return tile;
}

void multiply_run(const TypedRowsArgs& a, const RowsByType::Run& run, const float* packed, float* scratch) {
  const RowsByType& rows = *a.rows;
  const int64_t inner = a.transpose ? a.n : a.k;
  const int64_t outer = a.transpose ? a.k : a.n;
  float* gathered = scratch;
  float* product = scratch + kTileRows * inner;
  for (int64_t b = run.begin; b < run.end; b += kTileRows) {
    const int64_t e = std::min(run.end, b + kTileRows);
    const float* x = tile_of(rows, b, e, {a.x, a.gather, inner}, gathered);
    float* out = rows.order == nullptr ? a.out + b * outer : product;
    gemm_tile_packed(e - b, outer, inner, x, inner, packed, out, outer);
    if (rows.order == nullptr) continue;
    for (int64_t i = b; i < e; ++i) std::copy_n(product + (i - b) * outer, outer, a.out + rows.order[i] * outer);
  }
}

}  // namespace

std::shared_ptr<const RowsByType> pairs_by_type(const Graph& graph, End end) {
  auto rows = std::make_shared<RowsByType>();
  const PairIndex& pairs = graph.pairs(end);
  rows->rows = pairs.num_pairs;
  rows->num_types = graph.num_edge_types();
  rows->keep = std::make_shared<Graph>(graph);
  cut(*rows, pairs.type_ptr.data());
  return rows;
}

std::shared_ptr<const RowsByType> edges_by_type(const Graph& graph) {
  auto rows = std::make_shared<RowsByType>();
  const PairIndex& pairs = graph.pairs(End::dst);  // here the edges lie by (type, destination)
  rows->rows = graph.num_edges();
  rows->num_types = graph.num_edge_types();
  rows->order = pairs.edge.data();
  rows->keep = std::make_shared<Graph>(graph);
  std::vector<int64_t> type_ptr;
  for (const int64_t p : pairs.type_ptr) type_ptr.push_back(pairs.edge_ptr[p]);
  cut(*rows, type_ptr.data());
  return rows;
}

int64_t typed_rows_scratch(int64_t k, int64_t n) { return kTileRows * (k + n); }

int64_t typed_rows_workspace(const RowsByType& rows, int64_t k, int64_t n) {
  return rows.num_types * std::max(gemm_packed_size(n, k), gemm_packed_size(k, n));
}

void typed_rows(const TypedRowsArgs& args) {
  const int64_t size = args.transpose ? gemm_packed_size(args.k, args.n) : gemm_packed_size(args.n, args.k);
  parallel_tasks(args.rows->num_types, [&](int64_t t) {
    const float* w = args.w + t * args.k * args.n;
    if (args.transpose) {
      gemm_pack_nt(args.k, args.n, w, args.n, args.workspace + t * size);
    } else {
      gemm_pack_nn(args.n, args.k, w, args.n, args.workspace + t * size);
    }
  });
  parallel_tasks(static_cast<int64_t>(args.rows->runs.size()), [&](int64_t r) {
    const RowsByType::Run& run = args.rows->runs[r];
    multiply_run(args, run, args.workspace + run.type * size,
                 thread_scratch(args.scratch, typed_rows_scratch(args.k, args.n)));
  });
}

void typed_rows_grad(const TypedRowsGradArgs& args) {
  const RowsByType& rows = *args.rows;
  const int64_t size = args.k * args.n;
  parallel_tasks(static_cast<int64_t>(rows.grad_runs.size()), [&](int64_t r) {
    const RowsByType::Run& run = rows.grad_runs[r];
    float* scratch = thread_scratch(args.scratch, typed_rows_scratch(args.k, args.n));
    float* dw = run.partial < 0 ? args.dw + run.type * size : args.workspace + run.partial * size;
    for (int64_t b = run.begin; b < run.end; b += kTileRows) {
      const int64_t e = std::min(run.end, b + kTileRows);
      const float* x = tile_of(rows, b, e, {args.x, args.gather_x, args.k}, scratch);
      const float* g = tile_of(rows, b, e, {args.g, args.gather_g, args.n}, scratch + kTileRows * args.k);
      gemm_tile_tn(e - b, args.n, args.k, x, args.k, g, args.n, dw, args.n, b == run.begin ? 0.0f : 1.0f);
    }
  });
  parallel_for(size, 2048, [&](int64_t begin, int64_t end) {
    size_t r = 0;
    for (int32_t t = 0; t < rows.num_types; ++t) {
      float* dw = args.dw + t * size;
      if (r == rows.grad_runs.size() || rows.grad_runs[r].type != t) {
        std::fill(dw + begin, dw + end, 0.0f);  // a type without rows
        continue;
      }
      for (++r; r < rows.grad_runs.size() && rows.grad_runs[r].type == t; ++r) {
        const float* term = args.workspace + rows.grad_runs[r].partial * size;
        for (int64_t i = begin; i < end; ++i) dw[i] += term[i];
      }
    }
  });
}

}  // namespace nacre::cpu
