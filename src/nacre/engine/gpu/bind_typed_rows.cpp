// Binds stored rows times one matrix per type, and its weight gradient, on a GPU.
//
// The rows of a type lie together (pairs), or are brought together by the order of the edges. In
// the variant "side by side", rows of vertices that are read by pair need not be copied: X · [W0 |
// W1 | …] gives the rows of all types at once, side by side, and those of pairs are kept. The
// gradient spreads the rows of the pairs in the same way.
#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/bind_typed.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/variants/typed.h"

namespace nacre {
namespace {

using cuda::Arrange;

// Returns the type of products whose operands lie in memory as f32. Products in bf16 cannot read
// such operands, so tf32 replaces bf16.
GemmType in_memory(const GpuKernel& k) {
  const GemmType type = k.context.options().precision;
  return type == GemmType::bf16 ? GemmType::tf32 : type;
}

// Describes the typed rows of a kernel: edges, or pairs of one end.
struct TypedSpace {
  Space space;
  std::vector<int64_t> type_ptr;    // positions of each type
  const uint32_t* order = nullptr;  // row of each position; null if it is the position itself
  int64_t rows() const { return type_ptr.back(); }
  int64_t begin_of(const TypeRun& run) const { return type_ptr[run.type]; }
};

End end_of(Space space) { return space.kind == SpaceKind::pair_src ? End::src : End::dst; }

TypedSpace space_of(const GpuKernel& k, Space space, bool sizing) {
  TypedSpace s;
  s.space = space;
  // Pairs are ordered by type. So edges in the order of their pairs at the destinations are ordered
  // by type as well.
  const PairIndex& pairs = k.graph().pairs(end_of(space));
  for (const int64_t p : pairs.type_ptr) s.type_ptr.push_back(space.is_pair() ? p : pairs.edge_ptr[p]);
  if (!space.is_pair() && !sizing) s.order = k.context.resident(pairs.edge);
  return s;
}

// Describes an operand: rows of the space itself, or rows of vertices that are read by pair.
struct Operand {
  const float* x;
  int64_t width;
  bool by_vertex;
};

Operand operand_of(const GpuKernel& k, NodeRef arg, int64_t width) {
  return {static_cast<const float*>(k.pointer(arg)), width, k.node(arg).type.space.on_vertices()};
}

// Gathered: gives the rows of an operand, by position, as a matrix. If they lie together in this
// order, the matrix is the operand itself; otherwise it is a copy.
class Gathered {
 public:
  Gathered(const GpuKernel& k, const TypedSpace& space, const Operand& from, bool bf16) : from_(from), bf16_(bf16) {
    NACRE_CHECK(!from.by_vertex || space.space.is_pair(), "rows of vertices are read by pair only");
    if (from.by_vertex) map_ = k.context.resident(k.graph().pairs(end_of(space.space)).vertex);
    if (!from.by_vertex) map_ = space.order;
    copied_ = bf16 || (from.by_vertex ? !every_vertex(k, space) : !space.space.is_pair());
    ld_ = from.width;
    if (copied_) ld_ = bf16 ? (from.width + 7) / 8 * 8 : copy_ld(from.width);
  }
  // Returns whether each type has a pair of every vertex or of none. The rows of a type that has
  // pairs are then those of all vertices, in order.
  static bool every_vertex(const GpuKernel& k, const TypedSpace& space) {
    const int64_t vertices = end_of(space.space) == End::dst ? k.graph().num_dst() : k.graph().num_src();
    for (size_t t = 0; t + 1 < space.type_ptr.size(); ++t) {
      const int64_t rows = space.type_ptr[t + 1] - space.type_ptr[t];
      if (rows != 0 && rows != vertices) return false;
    }
    return true;
  }

  int64_t ld() const { return ld_; }
  int64_t row_bytes() const { return copied_ ? ld_ * (bf16_ ? 2 : 4) : 0; }
  void reserve(StepList& steps, int64_t rows) {
    if (copied_) copy_ = steps.carve.take(rows * row_bytes());
  }
  // Makes the positions [begin, begin + count) available to rows(). Adds a step if they must be
  // copied.
  void get(StepList& steps, int64_t begin, int64_t count) {
    begin_ = begin;
    if (!copied_) return;
    add_copy(steps, {{from_.width, bf16_, {}, {1, ld_}}, from_.x, map_, begin, copy_, nullptr, 0, count});
  }
  // Returns the rows of a run of one type, whose positions start at type_begin.
  const void* rows(const TypeRun& run, int64_t type_begin) const {
    if (copied_) return at(static_cast<const char*>(copy_), (run.begin - begin_) * row_bytes());
    return at(from_.x, (from_.by_vertex ? run.begin - type_begin : run.begin) * from_.width);
  }

 private:
  Operand from_;
  bool bf16_;
  bool copied_ = false;
  int64_t ld_ = 0;
  const uint32_t* map_ = nullptr;
  void* copy_ = nullptr;
  int64_t begin_ = 0;
};

struct TypedRows {
  TypedSpace space;
  WeightShape w;
  bool transpose;
  Operand x;
  const float* weights;
  float* out;
  int64_t out_width;
};

// Adds X · [W0 | W1 | …] for runs of about `most` vertices, and copies the cells that are pairs to
// their rows.
void rows_side_by_side(const GpuKernel& k, const TypedRows& r, const GpuPairs& pairs, int64_t most, StepList& steps) {
  const int64_t n = r.w.types * r.out_width;
  const int64_t ld = copy_ld(n);
  const int64_t chunk = chunk_rows(pairs.vertices(), most);
  float* wide = steps.carve.floats(chunk * ld);
  const float* weights = r.weights;
  if (!r.transpose) {  // the transposes side by side are the transpose of W
    float* split = steps.carve.floats(r.w.types * r.w.k * r.w.n);
    add_arrange(steps, Arrange::split, r.w, r.weights, split, false);
    weights = split;
  }
  GemmShape shape;
  shape.n = n;
  shape.k = r.x.width;
  shape.transpose_b = r.transpose;
  shape.lda = r.x.width;
  shape.ldb = r.transpose ? r.w.n : n;
  shape.ldc = ld;
  shape.type = in_memory(k);
  const uint32_t* pair_of_cell = steps.sizing() ? nullptr : pairs.pair_of_cell();
  for (int64_t v = 0; v < pairs.vertices(); v += chunk) {
    shape.m = std::min(chunk, pairs.vertices() - v);
    steps.product(shape, {at(r.x.x, v * r.x.width), weights, wide, nullptr});
    add_copy(steps, {{r.out_width, false, {r.w.types, ld}, {}},
                     wide,
                     nullptr,
                     0,
                     r.out,
                     pair_of_cell,
                     v * r.w.types,
                     shape.m * r.w.types});
  }
}

void rows_by_type(const GpuKernel& k, const TypedRows& r, bool bf16, int64_t most, StepList& steps) {
  const bool ordered = !r.space.space.is_pair();
  Gathered x(k, r.space, r.x, bf16);
  const int64_t ld_out = ordered ? copy_ld(r.out_width) : r.out_width;
  const int64_t chunk = chunk_rows(r.space.rows(), most);
  x.reserve(steps, chunk);
  float* product = ordered ? steps.carve.floats(chunk * ld_out) : nullptr;
  const char* weights = reinterpret_cast<const char*>(r.weights);
  if (bf16) {
    void* converted = steps.carve.take(r.w.types * r.w.k * r.w.n * 2);
    add_arrange(steps, Arrange::keep, r.w, r.weights, converted, true);
    weights = static_cast<const char*>(converted);
  }
  GemmShape shape;
  shape.n = r.out_width;
  shape.k = r.x.width;
  shape.transpose_b = r.transpose;
  shape.lda = x.ld();
  shape.ldb = r.w.n;
  shape.ldc = ld_out;
  shape.type = bf16 ? GemmType::bf16 : in_memory(k);
  for (int64_t b = 0; b < r.space.rows(); b += chunk) {
    const int64_t count = std::min(chunk, r.space.rows() - b);
    x.get(steps, b, count);
    for (const TypeRun& run : runs_of_types(r.space.type_ptr, b, b + count)) {
      shape.m = run.end - run.begin;
      float* to = ordered ? at(product, (run.begin - b) * ld_out) : at(r.out, run.begin * r.out_width);
      const void* w = at(weights, run.type * r.w.k * r.w.n * (bf16 ? 2 : 4));
      steps.product(shape, {x.rows(run, r.space.begin_of(run)), w, to, nullptr});
    }
    if (!ordered) continue;
    add_copy(steps, {{r.out_width, false, {1, ld_out}, {}}, product, nullptr, 0, r.out, r.space.order, b, count});
  }
}

// ---- Products on tensor cores, whose rows are read where they lie.

std::string key_of(const GpuKernel& k, const TypedSpace& space, const char* what) {
  const PairIndex& pairs = k.graph().pairs(end_of(space.space));
  return fmt::format("{} {} {}", what, static_cast<const void*>(pairs.edge.data()), space.space.is_pair());
}

const uint32_t* map_of(const GpuKernel& k, const TypedSpace& space, const Operand& from) {
  if (from.by_vertex) return k.context.resident(k.graph().pairs(end_of(space.space)).vertex);
  return space.order;
}

void rows_on_tensor_cores(const GpuKernel& k, const TypedRows& r, const TypedRowsFacts& facts, StepList& steps) {
  const auto matrix = k.take<TypeMatrix>(type_matrix_variants(), facts);
  const bool kept = matrix.way == TypeMatrix::kept;
  const cuda::TypedProduct what = product_of_rows(facts, k.context.traits(), matrix.way);
  const cuda::MmaTile tile = cuda::tile_of(what);
  const float* weights = matrices_of(steps, r.w, r.weights, r.transpose);
  if (steps.sizing()) return;
  const PairIndex& pairs = k.graph().pairs(end_of(r.space.space));
  // If each block of threads keeps a matrix, the plan says how many runs there are (matrix.limit).
  // Otherwise there are as many runs as the rows need.
  const std::string key = key_of(k, r.space, "runs of products") +
                          fmt::format(" {} {} {}", tile.rows(), r.x.by_vertex, kept ? matrix.limit : 0);
  const auto& runs = k.context.once<std::vector<cuda::MmaRun>>(key, [&] {
    if (kept) return cut_evenly(r.space.type_ptr, matrix.limit, tile.rows());
    return cut_products(r.space.type_ptr, tile.rows(), r.x.by_vertex ? pairs.vertex.data() : nullptr);
  });
  steps.launch(cuda::typed_product(what), static_cast<int64_t>(runs.size()) * cuda::column_blocks(what), [&] {
    return cuda::TypedProductParams{.x = r.x.x,
                                    .map_in = map_of(k, r.space, r.x),
                                    .w = weights,
                                    .out = r.out,
                                    .map_out = r.space.order,
                                    .runs = k.context.made(key, runs)};
  });
}

struct RowsGrad {
  TypedSpace space;
  WeightShape w;
  Operand x, g;
  float* dw;
};

void grad_on_tensor_cores(const GpuKernel& k, const RowsGrad& r, int64_t wanted, StepList& steps) {
  const cuda::TypedGrad what = {r.w.k, r.w.n, k.context.traits().shared_bytes};
  const std::string key = key_of(k, r.space, "runs of gradients") + fmt::format(" {}", wanted);
  const auto& runs =
      k.context.once<std::vector<cuda::MmaRun>>(key, [&] { return cut_grads(r.space.type_ptr, wanted); });
  const auto count = static_cast<int64_t>(runs.size());
  float* partials = steps.carve.floats(count * r.w.k * r.w.n);
  if (steps.sizing()) return;
  steps.launch(cuda::typed_grad(what), count * cuda::blocks_of_run(what), [&] {
    return cuda::TypedGradParams{.x = r.x.x,
                                 .map_x = map_of(k, r.space, r.x),
                                 .g = r.g.x,
                                 .map_g = map_of(k, r.space, r.g),
                                 .runs = k.context.made(key, runs),
                                 .partials = partials};
  });
  const cuda::Source total = cuda::typed_grad_total(what, r.w.types);
  steps.launch(total, (r.w.types * r.w.k * r.w.n + total.threads - 1) / total.threads, [&] {
    return cuda::TypedGradTotalParams{
        .partials = partials, .first = k.context.made(key + " by type", first_runs(runs, r.w.types)), .dw = r.dw};
  });
}

// Spreads the operand with a row for every pair over the cells of runs of vertices (zeros for cells
// without a pair). The gradients of all types are then one product with the rows of the vertices.
void grad_side_by_side(const GpuKernel& k, const RowsGrad& r, const GpuPairs& pairs, int64_t most, StepList& steps) {
  const Operand& by_vertex = r.x.by_vertex ? r.x : r.g;
  const Operand& by_pair = r.x.by_vertex ? r.g : r.x;
  const int64_t ld = copy_ld(r.w.types * by_pair.width);
  const int64_t chunk = chunk_rows(pairs.vertices(), most);
  float* wide = steps.carve.floats(chunk * ld);
  // The gradient is stored as [types · K, N]. If the product gives [K, types · N], it is written to
  // the workspace first.
  float* result = r.x.by_vertex ? steps.carve.floats(r.w.types * r.w.k * r.w.n) : r.dw;
  GemmShape shape;
  shape.m = r.x.by_vertex ? r.w.k : r.w.types * r.w.k;
  shape.n = r.x.by_vertex ? r.w.types * r.w.n : r.w.n;
  shape.transpose_a = true;
  shape.lda = r.x.by_vertex ? by_vertex.width : ld;
  shape.ldb = r.x.by_vertex ? ld : by_vertex.width;
  shape.ldc = shape.n;
  shape.type = in_memory(k);
  const uint32_t* pair_of_cell = steps.sizing() ? nullptr : pairs.pair_of_cell();
  for (int64_t v = 0; v < pairs.vertices(); v += chunk) {
    shape.k = std::min(chunk, pairs.vertices() - v);
    shape.beta = v == 0 ? 0.0f : 1.0f;
    add_copy(steps, {{by_pair.width, false, {}, {r.w.types, ld}},
                     by_pair.x,
                     pair_of_cell,
                     v * r.w.types,
                     wide,
                     nullptr,
                     0,
                     shape.k * r.w.types});
    const float* rows = at(by_vertex.x, v * by_vertex.width);
    steps.product(shape, {r.x.by_vertex ? rows : wide, r.x.by_vertex ? wide : rows, result, nullptr});
  }
  if (r.x.by_vertex) add_arrange(steps, Arrange::join, r.w, result, r.dw, false);
}

void grad_by_type(const GpuKernel& k, const RowsGrad& r, bool bf16, int64_t most, StepList& steps) {
  Gathered x(k, r.space, r.x, bf16), g(k, r.space, r.g, bf16);
  const int64_t chunk = chunk_rows(r.space.rows(), most);
  x.reserve(steps, chunk);
  g.reserve(steps, chunk);
  GemmShape shape;
  shape.m = r.w.k;
  shape.n = r.w.n;
  shape.transpose_a = true;
  shape.lda = x.ld();
  shape.ldb = g.ld();
  shape.ldc = r.w.n;
  shape.type = bf16 ? GemmType::bf16 : in_memory(k);
  zero_unused(steps, r.space.type_ptr, r.w, r.dw);
  for (int64_t b = 0; b < r.space.rows(); b += chunk) {
    const int64_t count = std::min(chunk, r.space.rows() - b);
    x.get(steps, b, count);
    g.get(steps, b, count);
    for (const TypeRun& run : runs_of_types(r.space.type_ptr, b, b + count)) {
      const int64_t begin = r.space.begin_of(run);
      shape.k = run.end - run.begin;
      shape.beta = run.begin == begin ? 0.0f : 1.0f;
      float* dw = at(r.dw, run.type * r.w.k * r.w.n);
      steps.product(shape, {x.rows(run, begin), g.rows(run, begin), dw, nullptr});
    }
  }
}

}  // namespace

void add_typed_rows(const GpuKernel& k, StepList& steps) {
  const auto in = operands<ProductOperands>(k.kernel);
  const Dims& dims = k.node(in.weight).type.dims;
  const bool transpose = k.kernel.transpose;
  const Space space = k.node(k.kernel.root).type.space;
  TypedRows r = {space_of(k, space, steps.sizing()),
                 {k.graph().num_edge_types(), dims[0], dims[1]},
                 transpose,
                 operand_of(k, in.x, transpose ? dims[1] : dims[0]),
                 static_cast<const float*>(k.pointer(in.weight)),
                 static_cast<float*>(k.pointer(k.kernel.root)),
                 transpose ? dims[0] : dims[1]};
  if (r.space.rows() == 0) return;
  const TypedRowsFacts facts = typed_rows_facts(k.planned());
  const auto way = k.variant<TypedRowsWay>(typed_rows_variants(), facts);
  if (way == TypedRowsWay::tensor_cores) return rows_on_tensor_cores(k, r, facts, steps);
  steps.time_products(product_timing(k));
  const int64_t most = rows_of_chunk(k, typed_chunks(facts, k.context.traits(), way));
  if (way == TypedRowsWay::by_type) return rows_by_type(k, r, copies_bf16(facts, k.context.traits()), most, steps);
  rows_side_by_side(k, r, GpuPairs(k.context, k.graph(), end_of(space)), most, steps);
}

void add_typed_rows_grad(const GpuKernel& k, StepList& steps) {
  const auto in = operands<WeightGradOperands>(k.kernel);
  const Dims& dims = k.node(k.kernel.root).type.dims;
  const Space space = k.node(k.node(k.kernel.root).inputs[0]).type.space;
  RowsGrad r = {space_of(k, space, steps.sizing()),
                {k.graph().num_edge_types(), dims[0], dims[1]},
                operand_of(k, in.x, dims[0]),
                operand_of(k, in.gradient, dims[1]),
                static_cast<float*>(k.pointer(k.kernel.root))};
  if (r.space.rows() == 0) return steps.zero(r.dw, r.w.types * r.w.k * r.w.n * 4);
  const TypedRowsGradFacts facts = typed_rows_grad_facts(k.planned());
  const auto [way, runs] = k.take<TypedRowsGradWay>(typed_rows_grad_variants(), facts);
  if (way == TypedRowsGradWay::tensor_cores) return grad_on_tensor_cores(k, r, runs, steps);
  steps.time_products(product_timing(k));
  const int64_t most = rows_of_chunk(k, typed_chunks(facts, k.context.traits(), way));
  if (way == TypedRowsGradWay::by_type) return grad_by_type(k, r, copies_bf16(facts, k.context.traits()), most, steps);
  grad_side_by_side(k, r, GpuPairs(k.context, k.graph(), end_of(space)), most, steps);
}

}  // namespace nacre
