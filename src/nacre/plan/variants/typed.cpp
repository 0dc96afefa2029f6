#include "nacre/plan/variants/typed.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "nacre/base/log.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/plan/operands.h"

namespace nacre {
namespace {

// If a block of threads has fewer rows than this, writing its matrix of partial sums costs more
// than the block saves.
constexpr int64_t kRowsOfGrad = 256;

// A run of rows is numbered with 32 bits, and each run of a gradient has a matrix of partial sums.
constexpr int64_t kMostRuns = int64_t{1} << 20;

constexpr const char* kNotTf32 = "this variant needs --precision tf32";
constexpr const char* kNoCells = "there are more pairs of node and edge type than 32 bits can number";
constexpr const char* kNoTail = "the operations that follow the products do not fit into one block of threads";
constexpr const char* kNoStages = "the rows and matrices do not fit into the shared memory of a block of threads";

End end_of(const Kernel& kernel) { return kernel.direction == Direction::by_dst ? End::dst : End::src; }
End end_of(Space space) { return space.kind == SpaceKind::pair_src ? End::src : End::dst; }

PairCounts count(const Graph& graph, End end) {
  return {end == End::dst ? graph.num_dst() : graph.num_src(), graph.count_pairs(end), graph.num_edge_types()};
}

double number(int64_t value) { return static_cast<double>(value); }

// Products by type are taken for at least this many pairs at a time.
constexpr int64_t kFewestPairs = 128;

int64_t bytes_of_sum(const DeviceTraits& device) { return device.products == GemmType::bf16 ? 2 : 4; }

// Returns the bytes of the copy of a row that products by type read, 0 if it is read where it lies.
int64_t copied_bytes(int64_t width, bool bf16, bool by_vertex, bool of_pairs, bool every_vertex) {
  if (bf16) return (width + 7) / 8 * 8 * 2;
  return (by_vertex ? !every_vertex : !of_pairs) ? copy_ld(width) * 4 : 0;
}

// Returns whether each type has a pair of every vertex or of none.
bool covers_every_vertex(const Graph& graph, const PairCounts& counts) {
  if (counts.pairs == 0 || counts.pairs == counts.vertices * counts.types) return true;
  if (counts.pairs % counts.vertices != 0) return false;
  // A type has at most one pair of each vertex. So each type that occurs has a pair of every vertex
  // if and only if there are as many pairs as vertices times types that occur.
  std::vector<char> occurs(static_cast<size_t>(counts.types), 0);
  for (const uint16_t type : graph.edge_type()) occurs[type] = 1;
  return counts.pairs == counts.vertices * std::count(occurs.begin(), occurs.end(), 1);
}

std::string too_few(int64_t rows, int64_t least) {
  return rows < least ? fmt::format("there are {} rows, fewer than the {} that keep the whole GPU busy", rows, least)
                      : "";
}

// ---- typed_reduce

std::string cells_decline(const TypedReduceFacts& f, const DeviceTraits& device, bool with_own) {
  if (device.products != GemmType::tf32) return kNotTf32;
  if (!f.pairs.has_cells()) return kNoCells;
  const cuda::TypedProduct what = product_by_cell(f, device, with_own);
  if (!cuda::fits(what)) return with_own ? kNoTail : kNoStages;
  // The planner joins a product and its tail only where a typical block of a mini-batch fills the
  // device. The few blocks that are too small to fill it are not declined.
  return with_own ? "" : too_few(f.pairs.vertices, cuda::tile_of(what).rows() * device.multiprocessors);
}

std::string sums_by_cell_decline(const TypedReduceFacts& f, const DeviceTraits& device) {
  std::string why = cells_decline(f, device, false);
  const int64_t bytes = f.pairs.pairs * f.in * 4;
  if (!why.empty() || bytes <= device.rows_budget()) return why;
  return fmt::format("the sums would take {} of memory, and at most {} may be used for them",
                     human_bytes(number(bytes)), human_bytes(number(device.rows_budget())));
}

std::string with_own_declines(const TypedReduceFacts& f, const DeviceTraits& device) {
  if (!f.own) return "no product of the nodes' own rows is added";
  if (f.pairs.pairs == 0) return "there are no edges";
  return cells_decline(f, device, true);
}

std::string without_own_declines(const TypedReduceFacts& f, const DeviceTraits& device) {
  return cells_decline(f, device, false);
}

template <class Facts>
std::string side_by_side_declines(const Facts& f, const DeviceTraits&) {
  return f.pairs.has_cells() ? "" : kNoCells;
}

double reduce_by_cell_cost(const TypedReduceFacts& f, const DeviceTraits& device) {
  const double pairs = number(f.pairs.pairs), in = number(f.in), out = number(f.out);
  return device.rates.seconds(3, 2 * pairs * in + number(f.pairs.vertices) * out,
                              device.rates.cell_slower * 2 * pairs * in * out);
}

double reduce_side_by_side_cost(const TypedReduceFacts& f, const DeviceTraits& device) {
  const double vertices = number(f.pairs.vertices), in = number(f.in), out = number(f.out);
  const double cells = vertices * number(f.pairs.types);
  return device.rates.seconds(3, 2 * cells * in + vertices * out, 2 * cells * in * out);
}

double reduce_by_type_cost(const TypedReduceFacts& f, const DeviceTraits& device) {
  const double pairs = number(f.pairs.pairs), in = number(f.in), out = number(f.out);
  return device.rates.seconds(number(f.pairs.types) + 2, 2 * pairs * (in + out) + number(f.pairs.vertices) * out,
                              2 * pairs * in * out);
}

// ---- typed_weight_grad

double grad_side_by_side_cost(const TypedGradFacts& f, const DeviceTraits& device) {
  const double vertices = number(f.pairs.vertices), types = number(f.pairs.types);
  const double summed = number(f.summed), by_row = number(f.by_row);
  return device.rates.seconds(3, 2 * vertices * types * summed + vertices * by_row,
                              2 * vertices * types * summed * by_row);
}

double grad_by_type_cost(const TypedGradFacts& f, const DeviceTraits& device) {
  const double pairs = number(f.pairs.pairs), summed = number(f.summed), by_row = number(f.by_row);
  return device.rates.seconds(number(f.pairs.types) + 2, pairs * (2 * summed + 3 * by_row),
                              2 * pairs * summed * by_row);
}

// ---- typed_rows and typed_rows_grad

// Returns the cost of multiplying the vertices' rows by the matrices of all types side by side.
// `by_vertex` is the width of the operand that has a row for every vertex, `kept` the width of the
// operand or result that has a row for every pair. With `spread`, the latter is an operand, which
// is copied to the cells first; without it, the latter is the result, which is copied from the
// cells.
double side_cost(const PairCounts& c, double by_vertex, double kept, bool spread, const DeviceTraits& device) {
  const double rows = number(c.pairs), vertices = number(c.vertices), types = number(c.types);
  return device.rates.seconds(
      3, vertices * by_vertex + (spread ? 2 : 1) * vertices * types * kept + (spread ? 1 : 2) * rows * kept,
      2 * vertices * types * by_vertex * kept);
}

// Returns the cost of copying the vertices' rows to a matrix by pair and multiplying the rows of
// each type.
double by_type_cost(const PairCounts& c, double by_vertex, double kept, const DeviceTraits& device) {
  const double rows = number(c.pairs);
  return device.rates.seconds(number(c.types) + 1, rows * (3 * by_vertex + kept), 2 * rows * by_vertex * kept);
}

std::string rows_side_by_side_decline(const PairCounts& c, bool by_vertex, bool of_pairs, bool every_vertex) {
  if (!by_vertex || !of_pairs)
    return "the kernel does not work on both rows of nodes and rows of pairs of node and edge type";
  if (every_vertex) return "each edge type has all nodes in their order, so its rows lie together already";
  return c.has_cells() ? "" : kNoCells;
}

std::string matrix_declines(const TypedRowsFacts& f, const DeviceTraits& device) {
  if (cuda::fits(product_of_rows(f, device, TypeMatrix::kept))) return "";
  return "a matrix does not fit into the shared memory of a block of threads beside the rows";
}

std::string rows_on_tensor_cores_decline(const TypedRowsFacts& f, const DeviceTraits& device) {
  if (!f.by_vertex && f.of_pairs) return "the rows of each edge type lie together, so the library can read them";
  if (device.products != GemmType::tf32) return kNotTf32;
  const bool kept = matrix_declines(f, device).empty();
  const cuda::TypedProduct what = product_of_rows(f, device, kept ? TypeMatrix::kept : TypeMatrix::in_slices);
  std::string few = too_few(f.rows, cuda::tile_of(what).rows() * device.multiprocessors);
  if (!few.empty()) return few;
  return cuda::fits(what) ? "" : kNoStages;
}

std::string grad_on_tensor_cores_decline(const TypedRowsGradFacts& f, const DeviceTraits& device) {
  if (device.products != GemmType::tf32) return kNotTf32;
  std::string few = too_few(f.rows, kRowsOfGrad * device.multiprocessors);
  if (!few.empty()) return few;
  return cuda::fits(cuda::TypedGrad{f.k, f.n, device.shared_bytes}) ? "" : kNoStages;
}

// If blocks of threads keep the matrix of a type in shared memory, the rows are divided into one
// run for every block that the device holds at once.
int64_t runs_of_products(const TypedRowsFacts& f, const DeviceTraits& device) {
  const cuda::TypedProduct what = product_of_rows(f, device, TypeMatrix::kept);
  const int64_t held = int64_t{device.multiprocessors} * cuda::tile_of(what).together;
  return std::max<int64_t>(1, held / cuda::column_blocks(what));
}

// The rows are divided into one run for every block of threads that the device holds at once, so
// that all blocks end together.
int64_t runs_of_grads(const TypedRowsGradFacts& f, const DeviceTraits& device) {
  const cuda::TypedGrad what = {f.k, f.n, device.shared_bytes};
  const int64_t together = std::clamp<int64_t>(device.shared_bytes / cuda::tile_of(what).shared_bytes, 1, 2);
  return std::max<int64_t>(1, device.multiprocessors * together / cuda::blocks_of_run(what));
}

// Return the widths of the operand with a row for every vertex and of the one with a row for every
// pair.
double vertex_side(const TypedRowsGradFacts& f) { return number(f.x_by_vertex ? f.k : f.n); }
double pair_side(const TypedRowsGradFacts& f) { return number(f.x_by_vertex ? f.n : f.k); }

}  // namespace

bool PairCounts::has_cells() const { return vertices * types < int64_t{cuda::kNoRow}; }

TypedReduceFacts typed_reduce_facts(const PlannedKernel& k) {
  const auto in = operands<TypedReduceOperands>(k.kernel);
  const Dims& dims = k.node(in.weight).type.dims;
  TypedReduceFacts f;
  f.pairs = count(k.graph(), end_of(k.kernel));
  f.in = k.kernel.transpose ? dims[1] : dims[0];
  f.out = k.kernel.transpose ? dims[0] : dims[1];
  f.of_pairs = k.node(in.x).type.space.is_pair();
  f.tail = k.kernel.tail;
  f.own = take_product(f.tail);
  return f;
}

cuda::TypedProduct product_by_cell(const TypedReduceFacts& f, const DeviceTraits& device, bool with_own) {
  return {f.in, f.out, f.pairs.types, device.shared_bytes, false, with_own ? &f.tail : nullptr};
}

const VariantList<TypedReduceFacts>& typed_reduce_variants() {
  static const VariantList<TypedReduceFacts> list = {
      "typed sums",
      false,
      {{"by cell", sums_by_cell_decline, reduce_by_cell_cost},
       {"side by side", side_by_side_declines<TypedReduceFacts>, reduce_side_by_side_cost},
       {"by type", nullptr, reduce_by_type_cost}}};
  return list;
}

const VariantList<TypedReduceFacts>& pair_product_variants() {
  static const VariantList<TypedReduceFacts> list = {"products of pairs",
                                                     false,
                                                     {{"by cell, with the node's own", with_own_declines, nullptr},
                                                      {"by cell", without_own_declines, nullptr},
                                                      {"by type", nullptr, nullptr}}};
  return list;
}

TypedGradFacts typed_grad_facts(const PlannedKernel& k) {
  const Dims& dims = k.node(k.kernel.root).type.dims;
  const bool by_dst = end_of(k.kernel) == End::dst;
  return {count(k.graph(), end_of(k.kernel)), by_dst ? dims[0] : dims[1], by_dst ? dims[1] : dims[0]};
}

const VariantList<TypedGradFacts>& typed_grad_variants() {
  static const VariantList<TypedGradFacts> list = {
      "typed weight gradient",
      false,
      {{"side by side", side_by_side_declines<TypedGradFacts>, grad_side_by_side_cost},
       {"by type", nullptr, grad_by_type_cost}}};
  return list;
}

TypedRowsFacts typed_rows_facts(const PlannedKernel& k) {
  const auto in = operands<ProductOperands>(k.kernel);
  const Dims& dims = k.node(in.weight).type.dims;
  const Space space = k.node(k.kernel.root).type.space;
  TypedRowsFacts f;
  f.of_pairs = space.is_pair();
  f.pairs = count(k.graph(), end_of(space));
  f.rows = f.of_pairs ? f.pairs.pairs : k.graph().num_edges();
  f.in = k.kernel.transpose ? dims[1] : dims[0];
  f.out = k.kernel.transpose ? dims[0] : dims[1];
  f.by_vertex = k.node(in.x).type.space.on_vertices();
  f.every_vertex = covers_every_vertex(k.graph(), f.pairs);
  return f;
}

cuda::TypedProduct product_of_rows(const TypedRowsFacts& f, const DeviceTraits& device, TypeMatrix way) {
  return {f.in, f.out, 0, device.shared_bytes, way == TypeMatrix::kept};
}

const VariantList<TypedRowsFacts>& type_matrix_variants() {
  static const VariantList<TypedRowsFacts> list = {
      "matrices of types",
      false,
      {{"kept in shared memory", matrix_declines, nullptr, runs_of_products}, {"read in slices", nullptr, nullptr}},
      {"in about {} runs", 1, kMostRuns}};
  return list;
}

const VariantList<TypedRowsFacts>& typed_rows_variants() {
  static const VariantList<TypedRowsFacts> list = {
      "typed rows",
      false,
      {{"read where they lie", rows_on_tensor_cores_decline, nullptr},
       {"side by side",
        [](const TypedRowsFacts& f, const DeviceTraits&) {
          return rows_side_by_side_decline(f.pairs, f.by_vertex, f.of_pairs, f.every_vertex);
        },
        [](const TypedRowsFacts& f, const DeviceTraits& device) {
          return side_cost(f.pairs, number(f.in), number(f.out), false, device);
        }},
       {"by type", nullptr, [](const TypedRowsFacts& f, const DeviceTraits& device) {
          return by_type_cost(f.pairs, number(f.in), number(f.out), device);
        }}}};
  return list;
}

TypedRowsGradFacts typed_rows_grad_facts(const PlannedKernel& k) {
  const Dims& dims = k.node(k.kernel.root).type.dims;
  const Space space = k.node(k.node(k.kernel.root).inputs[0]).type.space;
  const auto by_vertex = [&](NodeRef arg) { return k.node(arg).type.space.on_vertices(); };
  const auto in = operands<WeightGradOperands>(k.kernel);
  TypedRowsGradFacts f;
  f.of_pairs = space.is_pair();
  f.pairs = count(k.graph(), end_of(space));
  f.rows = f.of_pairs ? f.pairs.pairs : k.graph().num_edges();
  f.k = dims[0];
  f.n = dims[1];
  f.x_by_vertex = by_vertex(in.x);
  f.g_by_vertex = by_vertex(in.gradient);
  f.every_vertex = covers_every_vertex(k.graph(), f.pairs);
  return f;
}

const VariantList<TypedRowsGradFacts>& typed_rows_grad_variants() {
  static const VariantList<TypedRowsGradFacts> list = {
      "typed rows gradient",
      false,
      {{"read where they lie", grad_on_tensor_cores_decline, nullptr, runs_of_grads},
       {"side by side",
        [](const TypedRowsGradFacts& f, const DeviceTraits&) {
          return rows_side_by_side_decline(f.pairs, f.x_by_vertex != f.g_by_vertex, f.of_pairs, f.every_vertex);
        },
        [](const TypedRowsGradFacts& f, const DeviceTraits& device) {
          return side_cost(f.pairs, vertex_side(f), pair_side(f), true, device);
        }},
       {"by type", nullptr,
        [](const TypedRowsGradFacts& f, const DeviceTraits& device) {
          return by_type_cost(f.pairs, vertex_side(f), pair_side(f), device);
        }}},
      {"in about {} runs", 1, kMostRuns}};
  return list;
}

int64_t sums_ld(int64_t width, int64_t bytes) { return (width * bytes + 15) / 16 * 16 / bytes; }

int64_t copy_ld(int64_t width) { return (width + 3) / 4 * 4; }

bool takes_library(const TypedReduceFacts& f, TypedReduceWay way) {
  return way != TypedReduceWay::by_cell || f.own.has_value();
}

bool takes_library(const TypedReduceFacts& f, PairProductWay way) {
  return way == PairProductWay::by_type || (way == PairProductWay::by_cell && f.own.has_value());
}

ChunkFacts typed_chunks(const TypedReduceFacts& f, const DeviceTraits& device, TypedReduceWay way) {
  const int64_t bytes = bytes_of_sum(device);
  if (way == TypedReduceWay::side_by_side)
    return {f.pairs.vertices, sums_ld(f.pairs.types * f.in, bytes) * bytes, device.rows_budget()};
  if (way == TypedReduceWay::by_cell) return {f.pairs.pairs};
  return {f.pairs.pairs, sums_ld(f.in, bytes) * bytes + f.out * 4, device.rows_budget(), kFewestPairs};
}

ChunkFacts typed_chunks(const TypedReduceFacts& f, const DeviceTraits& device, PairProductWay way) {
  if (way != PairProductWay::by_type) return {f.pairs.pairs};
  return {f.pairs.pairs, f.out * 4, device.rows_budget(), kFewestPairs};
}

ChunkFacts typed_chunks(const TypedGradFacts& f, const DeviceTraits& device, TypedGradWay way) {
  const int64_t bytes = bytes_of_sum(device);
  if (way == TypedGradWay::side_by_side)
    return {f.pairs.vertices, sums_ld(f.pairs.types * f.summed, bytes) * bytes, device.rows_budget()};
  const int64_t row = (sums_ld(f.summed, bytes) + sums_ld(f.by_row, bytes)) * bytes;
  return {f.pairs.pairs, row, device.rows_budget(), kFewestPairs};
}

bool copies_bf16(const TypedRowsFacts& f, const DeviceTraits& device) {
  return device.products == GemmType::bf16 && (f.by_vertex || !f.of_pairs);
}

ChunkFacts typed_chunks(const TypedRowsFacts& f, const DeviceTraits& device, TypedRowsWay way) {
  if (way == TypedRowsWay::side_by_side)
    return {f.pairs.vertices, copy_ld(f.pairs.types * f.out) * 4, device.copies_budget()};
  if (way == TypedRowsWay::tensor_cores) return {f.rows};
  const int64_t result = f.of_pairs ? 0 : copy_ld(f.out) * 4;
  const int64_t copy = copied_bytes(f.in, copies_bf16(f, device), f.by_vertex, f.of_pairs, f.every_vertex);
  return {f.rows, copy + result, device.copies_budget(), kFewestPairs};
}

bool copies_bf16(const TypedRowsGradFacts& f, const DeviceTraits& device) {
  const bool copies = (f.x_by_vertex && f.g_by_vertex) || !f.of_pairs;
  return device.products == GemmType::bf16 && copies;
}

ChunkFacts typed_chunks(const TypedRowsGradFacts& f, const DeviceTraits& device, TypedRowsGradWay way) {
  if (way == TypedRowsGradWay::side_by_side) {
    const int64_t by_pair = f.x_by_vertex ? f.n : f.k;
    return {f.pairs.vertices, copy_ld(f.pairs.types * by_pair) * 4, device.copies_budget()};
  }
  if (way == TypedRowsGradWay::tensor_cores) return {f.rows};
  const bool bf16 = copies_bf16(f, device);
  const int64_t row = copied_bytes(f.k, bf16, f.x_by_vertex, f.of_pairs, f.every_vertex) +
                      copied_bytes(f.n, bf16, f.g_by_vertex, f.of_pairs, f.every_vertex);
  return {f.rows, row, device.copies_budget(), kFewestPairs};
}

}  // namespace nacre
