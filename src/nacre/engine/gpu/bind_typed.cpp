// Typed products over edges on a GPU. The edges of each (row, type) pair are summed first, then multiplied.
//
// Where most vertices have edges of most types, the sums of a run of vertices stand side by side as one matrix
// [vertices, types · width]: then Σ over types of sums · W[type] is one product with W as it lies, [types · K, N], and
// all weight gradients are one product too. Otherwise each type's sums are multiplied apart.
#include "nacre/engine/gpu/bind_typed.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {
namespace {

using cuda::Arrange;
using cuda::RowPlace;

End end_of(const GpuKernel& k) { return k.kernel.direction == cpu::Direction::by_dst ? End::dst : End::src; }

// How summed rows are kept for the products.
struct Precision {
  GemmType type;
  bool bf16;
  int64_t bytes;  // of an element
};
Precision precision_of(const GpuKernel& k) {
  const GemmType type = k.context.options().precision;
  const bool bf16 = type == GemmType::bf16;
  return {type, bf16, bf16 ? 2 : 4};
}

// Sums of a run of vertices side by side: leading dimensions of whole 16-byte words.
int64_t wide_ld(int64_t width, int64_t bytes) { return (width * bytes + 15) / 16 * 16 / bytes; }

struct Reduce {
  GpuPairs pairs;
  WeightShape w;
  int64_t in, out;
  bool transpose;
  Precision p;
  GpuPairs::Sum sum;
  const float* weights;
  float* result;
};

Reduce reduce_of(const GpuKernel& k) {
  const Dims& dims = k.node(k.kernel.args[1]).type.dims;
  Reduce r = {GpuPairs(k.context, k.graph(), end_of(k)),
              {0, dims[0], dims[1]},
              0,
              0,
              k.kernel.transpose,
              precision_of(k),
              {},
              static_cast<const float*>(k.pointer(k.kernel.args[1])),
              static_cast<float*>(k.pointer(k.kernel.root))};
  r.w.types = r.pairs.types();
  r.in = r.transpose ? r.w.n : r.w.k;
  r.out = r.transpose ? r.w.k : r.w.n;
  r.sum.what.width = r.in;
  r.sum.what.bf16 = r.p.bf16;
  r.sum.what.scaled = k.kernel.args[2] >= 0;
  r.sum.x = static_cast<const float*>(k.pointer(k.kernel.args[0]));
  r.sum.scale = static_cast<const float*>(k.pointer(k.kernel.args[2]));
  return r;
}

// All types in one product: [vertices, types · in] · [types · in, out].
void reduce_wide(const GpuKernel& k, Reduce& r, StepList& steps) {
  const int64_t inner = r.w.types * r.in;
  const int64_t ld = wide_ld(inner, r.p.bytes);
  const int64_t vertices = r.pairs.vertices();
  const int64_t chunk = chunk_rows(vertices, rows_budget(k.context) / (ld * r.p.bytes));
  r.sum.slots = true;
  r.sum.what.out = {r.w.types, ld};
  r.sum.out = steps.carve.take(chunk * ld * r.p.bytes);
  r.sum.partials = steps.carve.floats(r.pairs.most_pieces(true, chunk * r.w.types) * r.in);
  // W as it lies is [types · K, N]; its transpose side by side is the transpose of [K, types · N].
  const void* weights = r.weights;
  if (r.transpose || r.p.bf16) {
    void* arranged = steps.carve.take(r.w.types * r.w.k * r.w.n * r.p.bytes);
    add_arrange(steps, r.transpose ? Arrange::split : Arrange::keep, r.w, r.weights, arranged, r.p.bf16);
    weights = arranged;
  }
  GemmShape shape;
  shape.n = r.out;
  shape.k = inner;
  shape.transpose_b = r.transpose;
  shape.lda = ld;
  shape.ldb = r.transpose ? r.w.types * r.w.n : r.w.n;
  shape.ldc = r.out;
  shape.type = r.p.type;
  for (int64_t v = 0; v < vertices; v += chunk) {
    shape.m = std::min(chunk, vertices - v);
    r.sum.first = v * r.w.types;
    r.sum.count = shape.m * r.w.types;
    r.pairs.sum(steps, r.sum);
    steps.product(shape, {r.sum.out, weights, at(r.result, v * r.out), nullptr});
  }
}

// A product for each type, summed over the pairs of each vertex.
void reduce_by_type(const GpuKernel& k, Reduce& r, StepList& steps) {
  const int64_t ld = wide_ld(r.in, r.p.bytes);
  const int64_t row_bytes = ld * r.p.bytes + r.out * 4;
  const int64_t most = std::max<int64_t>(128, rows_budget(k.context) / row_bytes);
  const std::vector<int64_t> borders = cut_by_pairs(r.pairs.host().vertex_ptr, most);
  int64_t rows = 0;
  const Array<int64_t>& vertex_ptr = r.pairs.host().vertex_ptr;
  for (size_t c = 0; c + 1 < borders.size(); ++c) {
    rows = std::max(rows, vertex_ptr[borders[c + 1]] - vertex_ptr[borders[c]]);
  }
  char* sums = static_cast<char*>(steps.carve.take(rows * ld * r.p.bytes));
  float* products = steps.carve.floats(rows * r.out);
  r.sum.what.out = {1, ld};
  r.sum.partials = steps.carve.floats(r.pairs.most_pieces(false, rows) * r.in);
  const char* weights = reinterpret_cast<const char*>(r.weights);
  if (r.p.bf16) {
    void* arranged = steps.carve.take(r.w.types * r.w.k * r.w.n * r.p.bytes);
    add_arrange(steps, Arrange::keep, r.w, r.weights, arranged, true);
    weights = static_cast<const char*>(arranged);
  }
  GemmShape shape;
  shape.n = r.out;
  shape.k = r.in;
  shape.transpose_b = r.transpose;
  shape.lda = ld;
  shape.ldb = r.w.n;
  shape.ldc = r.out;
  shape.type = r.p.type;
  for (size_t c = 0; c + 1 < borders.size(); ++c) {
    const std::vector<PairRange> ranges = ranges_of(r.pairs.host(), borders[c], borders[c + 1]);
    for (const PairRange& range : merged(ranges)) {
      r.sum.first = range.begin;
      r.sum.count = range.end - range.begin;
      r.sum.out = at(sums, range.offset * ld * r.p.bytes);
      r.pairs.sum(steps, r.sum);
    }
    for (const PairRange& range : ranges) {
      shape.m = range.end - range.begin;
      steps.product(shape,
                    {at(sums, range.offset * ld * r.p.bytes), at(weights, range.type * r.w.k * r.w.n * r.p.bytes),
                     at(products, range.offset * r.out), nullptr});
    }
    r.pairs.sum_of_vertices(steps, {r.out, products, r.result, borders[c], borders[c + 1] - borders[c]},
                            borders.size() == 2 ? std::vector<PairRange>{} : ranges);
  }
}

struct WeightGrad {
  GpuPairs pairs;
  WeightShape w;
  bool by_dst;  // x is summed over each pair's edges, g read by row; otherwise the other way round
  Precision p;
  GpuPairs::Sum sum;
  int64_t summed, by_row;  // widths
  const float* rows;       // read by row
  float* dw;
};

WeightGrad weight_grad_of(const GpuKernel& k) {
  const Dims& dims = k.node(k.kernel.root).type.dims;
  const bool by_dst = end_of(k) == End::dst;
  WeightGrad g = {GpuPairs(k.context, k.graph(), end_of(k)),
                  {0, dims[0], dims[1]},
                  by_dst,
                  precision_of(k),
                  {},
                  by_dst ? dims[0] : dims[1],
                  by_dst ? dims[1] : dims[0],
                  static_cast<const float*>(k.pointer(k.kernel.args[by_dst ? 1 : 0])),
                  static_cast<float*>(k.pointer(k.kernel.root))};
  g.w.types = g.pairs.types();
  g.sum.what.width = g.summed;
  g.sum.what.bf16 = g.p.bf16;
  g.sum.what.scaled = k.kernel.args[2] >= 0;
  g.sum.x = static_cast<const float*>(k.pointer(k.kernel.args[by_dst ? 0 : 1]));
  g.sum.scale = static_cast<const float*>(k.pointer(k.kernel.args[2]));
  return g;
}

// sumsᵀ · rows is [types · K, N], the gradient as it lies; rowsᵀ · sums is [K, types · N].
void weight_grad_wide(const GpuKernel& k, WeightGrad& g, StepList& steps) {
  const int64_t outer = g.w.types * g.summed;
  const int64_t ld = wide_ld(outer, g.p.bytes);
  const int64_t vertices = g.pairs.vertices();
  const int64_t chunk = chunk_rows(vertices, rows_budget(k.context) / (ld * g.p.bytes));
  g.sum.slots = true;
  g.sum.what.out = {g.w.types, ld};
  g.sum.out = steps.carve.take(chunk * ld * g.p.bytes);
  g.sum.partials = steps.carve.floats(g.pairs.most_pieces(true, chunk * g.w.types) * g.summed);
  const int64_t row_ld = g.p.bf16 ? wide_ld(g.by_row, 2) : g.by_row;
  void* converted = g.p.bf16 ? steps.carve.take(chunk * row_ld * 2) : nullptr;
  float* result = g.by_dst ? g.dw : steps.carve.floats(g.w.types * g.w.k * g.w.n);
  GemmShape shape;
  shape.m = g.by_dst ? outer : g.w.k;
  shape.n = g.by_dst ? g.w.n : outer;
  shape.transpose_a = true;
  shape.lda = g.by_dst ? ld : row_ld;
  shape.ldb = g.by_dst ? row_ld : ld;
  shape.ldc = shape.n;
  shape.type = g.p.type;
  for (int64_t v = 0; v < vertices; v += chunk) {
    shape.k = std::min(chunk, vertices - v);
    shape.beta = v == 0 ? 0.0f : 1.0f;
    g.sum.first = v * g.w.types;
    g.sum.count = shape.k * g.w.types;
    g.pairs.sum(steps, g.sum);
    const void* rows = at(g.rows, v * g.by_row);
    if (g.p.bf16) {
      add_copy(steps, {{g.by_row, true, {}, {1, row_ld}}, g.rows, nullptr, v, converted, nullptr, 0, shape.k});
      rows = converted;
    }
    steps.product(shape, {g.by_dst ? g.sum.out : rows, g.by_dst ? rows : g.sum.out, result, nullptr});
  }
  if (!g.by_dst) add_arrange(steps, Arrange::join, g.w, result, g.dw, false);
}

void weight_grad_by_type(const GpuKernel& k, WeightGrad& g, StepList& steps) {
  const PairIndex& pairs = g.pairs.host();
  const int64_t ld_sum = wide_ld(g.summed, g.p.bytes), ld_row = wide_ld(g.by_row, g.p.bytes);
  int64_t longest = 0;
  for (int t = 0; t < g.w.types; ++t) longest = std::max(longest, pairs.type_ptr[t + 1] - pairs.type_ptr[t]);
  const int64_t budget = std::max<int64_t>(128, rows_budget(k.context) / ((ld_sum + ld_row) * g.p.bytes));
  const int64_t chunk = chunk_rows(longest, budget);
  g.sum.what.out = {1, ld_sum};
  g.sum.out = steps.carve.take(chunk * ld_sum * g.p.bytes);
  void* rows = steps.carve.take(chunk * ld_row * g.p.bytes);
  g.sum.partials = steps.carve.floats(g.pairs.most_pieces(false, chunk) * g.summed);
  const uint32_t* vertex = steps.sizing() ? nullptr : g.pairs.vertex();
  GemmShape shape;
  shape.m = g.w.k;
  shape.n = g.w.n;
  shape.transpose_a = true;
  shape.lda = g.by_dst ? ld_sum : ld_row;
  shape.ldb = g.by_dst ? ld_row : ld_sum;
  shape.ldc = g.w.n;
  shape.type = g.p.type;
  for (int t = 0; t < g.w.types; ++t) {
    float* dw = at(g.dw, t * g.w.k * g.w.n);
    const int64_t end = pairs.type_ptr[t + 1];
    if (end == pairs.type_ptr[t]) steps.zero(dw, g.w.k * g.w.n * 4);
    for (int64_t b = pairs.type_ptr[t]; b < end; b += chunk) {
      shape.k = std::min(chunk, end - b);
      shape.beta = b == pairs.type_ptr[t] ? 0.0f : 1.0f;
      g.sum.first = b;
      g.sum.count = shape.k;
      g.pairs.sum(steps, g.sum);
      add_copy(steps, {{g.by_row, g.p.bf16, {}, {1, ld_row}}, g.rows, vertex, b, rows, nullptr, 0, shape.k});
      steps.product(shape, {g.by_dst ? g.sum.out : rows, g.by_dst ? rows : g.sum.out, dw, nullptr});
    }
  }
}

void add_steps(const GpuKernel& k, StepList& steps) {
  switch (k.kernel.kind) {
    case KernelKind::typed_reduce:
      return add_typed_reduce(k, steps);
    case KernelKind::typed_weight_grad:
      return add_typed_weight_grad(k, steps);
    case KernelKind::typed_rows:
      return add_typed_rows(k, steps);
    default:
      return add_typed_rows_grad(k, steps);
  }
}

KernelNeeds typed_needs(const GpuKernel& k) {
  StepList steps(k.context, nullptr, true);
  add_steps(k, steps);
  return {0, steps.bytes()};
}

Step bind_typed(const GpuKernel& k, void* workspace) {
  StepList steps(k.context, workspace, false);
  add_steps(k, steps);
  return steps.finish(workspace);
}

}  // namespace

void add_typed_reduce(const GpuKernel& k, StepList& steps) {
  Reduce r = reduce_of(k);
  if (r.pairs.num_pairs() == 0) return steps.zero(r.result, r.pairs.vertices() * r.out * 4);
  if (r.pairs.full()) return reduce_wide(k, r, steps);
  reduce_by_type(k, r, steps);
}

void add_typed_weight_grad(const GpuKernel& k, StepList& steps) {
  WeightGrad g = weight_grad_of(k);
  if (g.pairs.num_pairs() == 0) return steps.zero(g.dw, g.w.types * g.w.k * g.w.n * 4);
  if (g.pairs.full()) return weight_grad_wide(k, g, steps);
  weight_grad_by_type(k, g, steps);
}

const GpuFamily kGpuTyped = {typed_needs, bind_typed};

}  // namespace nacre
