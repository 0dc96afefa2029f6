// Binds typed products over edges on a GPU. The edges of each (row, type) pair are summed first,
// then multiplied.
//
// In the variant "side by side", the sums of a run of vertices form one matrix [vertices, types ·
// width]. Then Σ over types of sums · W[type] is one product with W as it lies, [types · K, N], and
// all weight gradients are one product too. In the variant "by type", the sums of each type are
// multiplied separately. The lists of variants are in plan/variants/typed.h.
#include "nacre/engine/gpu/bind_typed.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/row_binding.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/variants/typed.h"

namespace nacre {
namespace {

using cuda::Arrange;
using cuda::RowPlace;

End end_of(const GpuKernel& k) { return k.kernel.direction == Direction::by_dst ? End::dst : End::src; }

// Says how summed rows are stored for the products.
struct Precision {
  GemmType type;
  bool bf16;
  int64_t bytes;  // bytes of an element
};
Precision precision_of(const GpuKernel& k) {
  const GemmType type = k.context.options().precision;
  const bool bf16 = type == GemmType::bf16;
  return {type, bf16, bf16 ? 2 : 4};
}

SumRange cells_of(const GpuPairs& pairs, int64_t begin, int64_t end) {
  return SumRange::of_cells(pairs.host(), pairs.types(), begin, end);
}

// Returns the largest number of partial sums that a run of `chunk` vertices has.
int64_t partials_of_cells(const GpuPairs& pairs, int64_t chunk) {
  int64_t most = 0;
  for (int64_t v = 0; v < pairs.vertices(); v += chunk) {
    most = std::max(most, pairs.num_partials(cells_of(pairs, v, std::min(v + chunk, pairs.vertices()))));
  }
  return most;
}

struct Reduce {
  GpuPairs pairs;
  WeightShape w;
  int64_t in, out;
  bool transpose;
  Precision p;
  GpuPairs::Sum sum;
  const float* weights;
  float* result;
  std::optional<RowFactor> own = {};  // product of the vertices' own rows, which the tail adds
  RowProgram tail = {};               // the tail without that product
};

Reduce reduce_of(const GpuKernel& k) {
  const auto in = operands<TypedReduceOperands>(k.kernel);
  const Dims& dims = k.node(in.weight).type.dims;
  Reduce r = {GpuPairs(k.context, k.graph(), end_of(k)),
              {0, dims[0], dims[1]},
              0,
              0,
              k.kernel.transpose,
              precision_of(k),
              {},
              static_cast<const float*>(k.pointer(in.weight)),
              static_cast<float*>(k.pointer(k.kernel.root))};
  r.w.types = r.pairs.types();
  r.in = r.transpose ? r.w.n : r.w.k;
  r.out = r.transpose ? r.w.k : r.w.n;
  r.sum.what.width = r.in;
  r.sum.what.bf16 = r.p.bf16;
  r.sum.x = static_cast<const float*>(k.pointer(in.x));
  r.tail = k.kernel.tail;
  r.own = take_product(r.tail);
  return r;
}

// Appends the sums over pairs, and one product for all types: [vertices, types · in] · [types · in,
// out], for at most about `most` vertices at a time.
void reduce_wide(Reduce& r, int64_t most, StepList& steps) {
  const int64_t inner = r.w.types * r.in;
  const int64_t ld = sums_ld(inner, r.p.bytes);
  const int64_t vertices = r.pairs.vertices();
  const int64_t chunk = chunk_rows(vertices, most);
  r.sum.what.out = {r.w.types, ld};
  r.sum.out = steps.carve.take(chunk * ld * r.p.bytes);
  r.sum.partials = steps.carve.floats(partials_of_cells(r.pairs, chunk) * r.sum.what.length);
  // W lies in memory as [types · K, N]. The product with the transposes of its matrices needs them
  // one below the other, which is the transpose of [K, types · N]. So W is brought into that
  // layout.
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
    r.sum.range = cells_of(r.pairs, v, v + shape.m);
    r.pairs.sum(steps, r.sum);
    steps.product(shape, {r.sum.out, weights, at(r.result, v * r.out), nullptr});
  }
}

// Appends the products of the sums over pairs, which are in memory. The products run on tensor
// cores, where all types of a vertex are one product.
void add_products_by_cell(const GpuKernel& k, const Reduce& r, const float* sums, StepList& steps) {
  const cuda::TypedProduct what = {
      r.in, r.out, r.w.types, k.context.traits().shared_bytes, false, r.own ? &r.tail : nullptr};
  const float* matrices = matrices_of(steps, r.w, r.weights, r.transpose);
  const float* own = nullptr;
  if (r.own) {
    const auto* w = static_cast<const float*>(k.pointer(r.own->w));
    own = matrices_of(steps, {1, r.w.k, r.w.n}, w, r.own->transpose);
  }
  if (steps.sizing()) return;
  const GpuPairs::Cells cells = r.pairs.cells(cuda::tile_of(what).rows());
  steps.launch(cuda::typed_product(what), cells.num_runs * cuda::column_blocks(what), [&] {
    cuda::LaunchParams params(cuda::TypedProductParams{
        .x = sums, .map_in = cells.pair, .w = matrices, .out = r.result, .map_out = cells.vertex, .runs = cells.runs});
    if (r.own) {
      params.then(
          cuda::TypedProductTailParams{.step = k.context.step(), .own = k.pointer(r.own->x), .own_matrix = own});
      params.operands(operands_of(k, r.tail));
    }
    return params;
  });
}

void reduce_by_cell(const GpuKernel& k, Reduce& r, StepList& steps) {
  r.sum.range = SumRange::of_pairs(0, r.pairs.num_pairs());
  r.sum.what.out = {1, r.in};
  r.sum.out = steps.carve.floats(r.pairs.num_pairs() * r.in);
  r.sum.partials = steps.carve.floats(r.pairs.num_partials(r.sum.range) * r.sum.what.length);
  r.pairs.sum(steps, r.sum);
  add_products_by_cell(k, r, static_cast<const float*>(r.sum.out), steps);
}

// Appends the sums over pairs, a product for each type, and the sum over the pairs of each vertex,
// for at most about `most` pairs at a time.
void reduce_by_type(Reduce& r, int64_t most, StepList& steps) {
  const int64_t ld = sums_ld(r.in, r.p.bytes);
  const std::vector<int64_t> borders = cut_by_pairs(r.pairs.host().vertex_ptr, most);
  int64_t rows = 0, partials = 0;
  const Array<int64_t>& vertex_ptr = r.pairs.host().vertex_ptr;
  std::vector<SumRange> ranges;
  for (size_t c = 0; c + 1 < borders.size(); ++c) {
    rows = std::max(rows, vertex_ptr[borders[c + 1]] - vertex_ptr[borders[c]]);
    ranges.push_back({ranges_of(r.pairs.host(), borders[c], borders[c + 1])});
    partials = std::max(partials, r.pairs.num_partials(ranges.back()));
  }
  r.sum.out = steps.carve.take(rows * ld * r.p.bytes);
  float* products = steps.carve.floats(rows * r.out);
  r.sum.what.out = {1, ld};
  r.sum.partials = steps.carve.floats(partials * r.sum.what.length);
  const char* sums = static_cast<const char*>(r.sum.out);
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
    r.sum.range = ranges[c];
    r.pairs.sum(steps, r.sum);
    for (const PairRange& range : ranges[c].ranges) {
      shape.m = range.end - range.begin;
      steps.product(shape,
                    {at(sums, range.offset * ld * r.p.bytes), at(weights, range.type * r.w.k * r.w.n * r.p.bytes),
                     at(products, range.offset * r.out), nullptr});
    }
    r.pairs.sum_of_vertices(steps, {r.out, products, r.result, borders[c], borders[c + 1] - borders[c]},
                            borders.size() == 2 ? std::vector<PairRange>{} : ranges[c].ranges);
  }
}

void reduce_pairs_by_type(const Reduce& r, int64_t most, StepList& steps) {
  const PairIndex& pairs = r.pairs.host();
  const std::vector<int64_t> borders = cut_by_pairs(pairs.vertex_ptr, most);
  std::vector<std::vector<PairRange>> ranges;
  int64_t rows = 0;
  for (size_t c = 0; c + 1 < borders.size(); ++c) {
    rows = std::max(rows, pairs.vertex_ptr[borders[c + 1]] - pairs.vertex_ptr[borders[c]]);
    ranges.push_back(ranges_of(pairs, borders[c], borders[c + 1]));
  }
  float* products = steps.carve.floats(rows * r.out);
  GemmShape shape;
  shape.n = r.out;
  shape.k = r.in;
  shape.transpose_b = r.transpose;
  shape.lda = r.in;
  shape.ldb = r.w.n;
  shape.ldc = r.out;
  shape.type = r.p.bf16 ? GemmType::tf32 : r.p.type;  // the operands are f32
  for (size_t c = 0; c < ranges.size(); ++c) {
    for (const PairRange& range : ranges[c]) {
      shape.m = range.end - range.begin;
      steps.product(shape, {at(r.sum.x, range.begin * r.in), at(r.weights, range.type * r.w.k * r.w.n),
                            at(products, range.offset * r.out), nullptr});
    }
    r.pairs.sum_of_vertices(steps, {r.out, products, r.result, borders[c], borders[c + 1] - borders[c]},
                            ranges.size() == 1 ? std::vector<PairRange>{} : ranges[c]);
  }
}

struct WeightGrad {
  GpuPairs pairs;
  WeightShape w;
  bool by_dst;  // x is summed over the edges of pairs and g is read by row; otherwise g and x
  Precision p;
  GpuPairs::Sum sum;
  int64_t summed, by_row;  // widths of the two operands
  const float* rows;       // operand that is read by row
  float* dw;
};

WeightGrad weight_grad_of(const GpuKernel& k) {
  const auto in = operands<TypedWeightGradOperands>(k.kernel);
  const Dims& dims = k.node(k.kernel.root).type.dims;
  const bool by_dst = end_of(k) == End::dst;
  WeightGrad g = {GpuPairs(k.context, k.graph(), end_of(k)),
                  {0, dims[0], dims[1]},
                  by_dst,
                  precision_of(k),
                  {},
                  by_dst ? dims[0] : dims[1],
                  by_dst ? dims[1] : dims[0],
                  static_cast<const float*>(k.pointer(by_dst ? in.gradient : in.x)),
                  static_cast<float*>(k.pointer(k.kernel.root))};
  g.w.types = g.pairs.types();
  g.sum.what.width = g.summed;
  g.sum.what.bf16 = g.p.bf16;
  g.sum.x = static_cast<const float*>(k.pointer(by_dst ? in.x : in.gradient));
  return g;
}

// Appends one product for all types. Either it is sumsᵀ · rows, which gives the gradient in its own
// layout, [types · K, N], or it is rowsᵀ · sums, which gives [K, types · N] and is brought into
// that layout afterwards.
void weight_grad_wide(WeightGrad& g, int64_t most, StepList& steps) {
  const int64_t outer = g.w.types * g.summed;
  const int64_t ld = sums_ld(outer, g.p.bytes);
  const int64_t vertices = g.pairs.vertices();
  const int64_t chunk = chunk_rows(vertices, most);
  g.sum.what.out = {g.w.types, ld};
  g.sum.out = steps.carve.take(chunk * ld * g.p.bytes);
  g.sum.partials = steps.carve.floats(partials_of_cells(g.pairs, chunk) * g.sum.what.length);
  const int64_t row_ld = g.p.bf16 ? sums_ld(g.by_row, 2) : g.by_row;
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
    g.sum.range = cells_of(g.pairs, v, v + shape.k);
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

void weight_grad_by_type(WeightGrad& g, int64_t most, StepList& steps) {
  const PairIndex& pairs = g.pairs.host();
  const int64_t ld_sum = sums_ld(g.summed, g.p.bytes), ld_row = sums_ld(g.by_row, g.p.bytes);
  const int64_t chunk = chunk_rows(pairs.num_pairs, most);
  g.sum.what.out = {1, ld_sum};
  g.sum.out = steps.carve.take(chunk * ld_sum * g.p.bytes);
  void* rows = steps.carve.take(chunk * ld_row * g.p.bytes);
  int64_t partials = 0;
  for (int64_t b = 0; b < pairs.num_pairs; b += chunk) {
    partials = std::max(partials, g.pairs.num_partials(SumRange::of_pairs(b, std::min(b + chunk, pairs.num_pairs))));
  }
  g.sum.partials = steps.carve.floats(partials * g.sum.what.length);
  const uint32_t* vertex = steps.sizing() ? nullptr : g.pairs.vertex();
  GemmShape shape;
  shape.m = g.w.k;
  shape.n = g.w.n;
  shape.transpose_a = true;
  shape.lda = g.by_dst ? ld_sum : ld_row;
  shape.ldb = g.by_dst ? ld_row : ld_sum;
  shape.ldc = g.w.n;
  shape.type = g.p.type;
  const std::vector<int64_t> type_ptr(pairs.type_ptr.begin(), pairs.type_ptr.end());
  zero_unused(steps, type_ptr, g.w, g.dw);
  for (int64_t b = 0; b < pairs.num_pairs; b += chunk) {
    const int64_t count = std::min(chunk, pairs.num_pairs - b);
    g.sum.range = SumRange::of_pairs(b, b + count);
    g.pairs.sum(steps, g.sum);
    add_copy(steps, {{g.by_row, g.p.bf16, {}, {1, ld_row}}, g.rows, vertex, b, rows, nullptr, 0, count});
    for (const TypeRun& run : runs_of_types(type_ptr, b, b + count)) {
      shape.k = run.end - run.begin;
      shape.beta = run.begin == type_ptr[run.type] ? 0.0f : 1.0f;
      const void* sums = at(static_cast<const char*>(g.sum.out), (run.begin - b) * ld_sum * g.p.bytes);
      const void* by_row = at(static_cast<const char*>(rows), (run.begin - b) * ld_row * g.p.bytes);
      steps.product(shape,
                    {g.by_dst ? sums : by_row, g.by_dst ? by_row : sums, at(g.dw, run.type * g.w.k * g.w.n), nullptr});
    }
  }
}

// Appends the sums over the edges of pairs and the products of these sums, in the variant `way`.
void reduce_sums(const GpuKernel& k, TypedReduceWay way, int64_t most, Reduce& r, StepList& steps) {
  switch (way) {
    case TypedReduceWay::by_cell:
      return reduce_by_cell(k, r, steps);
    case TypedReduceWay::side_by_side:
      return reduce_wide(r, most, steps);
    case TypedReduceWay::by_type:
      return reduce_by_type(r, most, steps);
  }
}

// Sets how the products of the library are timed, and returns how many rows the kernel takes at a
// time.
template <class Facts, class Way>
int64_t prepare_library(const GpuKernel& k, const Facts& facts, Way way, StepList& steps) {
  steps.time_products(product_timing(k));
  return rows_of_chunk(k, typed_chunks(facts, k.context.traits(), way));
}

// Appends the steps of a kernel whose result is the sums over the edges of pairs.
void add_pair_sums(const GpuKernel& k, StepList& steps) {
  const auto in = operands<SpmmOperands>(k.kernel);
  const bool dst = k.kernel.direction == Direction::by_dst_pair;
  GpuPairs pairs(k.context, k.graph(), dst ? End::dst : End::src);
  GpuPairs::Sum sum;
  sum.what.width = k.width(k.kernel.root);
  sum.range = SumRange::of_pairs(0, pairs.num_pairs());
  sum.x = static_cast<const float*>(k.pointer(in.x));
  pairs.prepare(k, steps, in.weight, sum);
  sum.partials = steps.carve.floats(pairs.num_partials(sum.range) * sum.what.length);
  sum.out = k.pointer(k.kernel.root);
  pairs.sum(steps, sum);
}

void add_steps(const GpuKernel& k, StepList& steps) {
  switch (k.kernel.kind) {
    case KernelKind::spmm:
      return add_pair_sums(k, steps);
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
  const auto in = operands<TypedReduceOperands>(k.kernel);
  Reduce r = reduce_of(k);
  const TypedReduceFacts facts = typed_reduce_facts(k.planned());
  auto products = PairProductWay::by_type;
  auto sums = TypedReduceWay::by_type;
  int64_t most = 0;
  if (facts.of_pairs) {
    products = k.variant<PairProductWay>(pair_product_variants(), facts);
    if (takes_library(facts, products)) most = prepare_library(k, facts, products, steps);
  } else {
    sums = k.variant<TypedReduceWay>(typed_reduce_variants(), facts);
    if (takes_library(facts, sums)) most = prepare_library(k, facts, sums, steps);
  }
  const bool whole = products == PairProductWay::by_cell_with_own;
  // If the kernel of the products does not compute the whole tail, the rest of the tail runs after
  // it.
  const std::optional<RowFactor> own = whole ? std::nullopt : std::exchange(r.own, std::nullopt);
  if (!whole && !k.stored(k.kernel.root)) r.result = steps.carve.floats(r.pairs.vertices() * r.out);
  if (r.pairs.num_pairs() == 0) {
    steps.zero(r.result, r.pairs.vertices() * r.out * 4);
  } else if (products != PairProductWay::by_type) {
    add_products_by_cell(k, r, r.sum.x, steps);
  } else if (facts.of_pairs) {
    reduce_pairs_by_type(r, most, steps);
  } else {
    r.pairs.prepare(k, steps, in.scale, r.sum);
    reduce_sums(k, sums, most, r, steps);
  }
  if (whole || r.tail.empty()) return;
  if (own) {
    GemmShape shape;
    shape.m = r.pairs.vertices();
    shape.n = r.out;
    shape.k = k.width(own->x);
    shape.transpose_b = own->transpose;
    shape.beta = 1;
    shape.type = r.p.bf16 ? GemmType::tf32 : r.p.type;  // the operands are f32
    steps.product(shape, {k.pointer(own->x), k.pointer(own->w), r.result, nullptr});
  }
  if (!steps.sizing()) steps.then(bind_tail(k, r.tail, {r.result, false}));
}

void add_typed_weight_grad(const GpuKernel& k, StepList& steps) {
  WeightGrad g = weight_grad_of(k);
  if (g.pairs.num_pairs() == 0) return steps.zero(g.dw, g.w.types * g.w.k * g.w.n * 4);
  g.pairs.prepare(k, steps, operands<TypedWeightGradOperands>(k.kernel).scale, g.sum);
  const TypedGradFacts facts = typed_grad_facts(k.planned());
  const auto way = k.variant<TypedGradWay>(typed_grad_variants(), facts);
  const int64_t most = prepare_library(k, facts, way, steps);
  if (way == TypedGradWay::side_by_side) return weight_grad_wide(g, most, steps);
  weight_grad_by_type(g, most, steps);
}

const GpuFamily kGpuTyped = {typed_needs, bind_typed};

}  // namespace nacre
