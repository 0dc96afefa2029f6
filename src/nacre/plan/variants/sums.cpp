#include "nacre/plan/variants/sums.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/plan/operands.h"

namespace nacre {
namespace {

// From this many reads of a row on, tiles save more time than walking the edges once for each tile
// costs.
constexpr int64_t kReadOften = 64;
constexpr int64_t kLine = 32;       // floats in a line of memory
constexpr int64_t kTileWidth = 64;  // columns of a tile of sums over pairs
constexpr int64_t kVector = 4;      // floats that a thread reads at once
// Rows that are read this often, in graphs of this many edges, pay for a copy of them.
constexpr int64_t kWorthCopying = 4;
constexpr int64_t kManyEdges = 1 << 13;
// Kernels that gather fewer numbers run too short to be worth timing.
constexpr double kWorthTiming = 64e6;

std::string read_too_rarely(int64_t times) {
  return fmt::format("a row is read {} times on average, and tiles save time from {} times on", times, kReadOften);
}

std::string fits_cache(int64_t bytes) {
  return fmt::format("the rows take {}, which fits into the GPU's cache", human_bytes(static_cast<double>(bytes)));
}

std::string cannot_be_cut(int64_t columns) {
  return fmt::format("rows of {} columns cannot be cut into tiles of a useful width", columns);
}

double number(int64_t value) { return static_cast<double>(value); }

// Returns the mean number of entries of a row of the view that a kernel walks.
int64_t mean_degree(const Graph& graph, Direction direction) {
  const auto mean = [](int64_t entries, int64_t rows) { return rows == 0 ? 1 : entries / rows; };
  switch (direction) {
    case Direction::by_dst:
      return mean(graph.num_edges(), graph.num_dst());
    case Direction::by_src:
      return mean(graph.num_edges(), graph.num_src());
    case Direction::by_dst_pair:
      return mean(graph.num_edges(), graph.count_pairs(End::dst));
    case Direction::by_src_pair:
      return mean(graph.num_edges(), graph.count_pairs(End::src));
    case Direction::pairs_of_dst:
      return mean(graph.count_pairs(End::dst), graph.num_dst());
    case Direction::pairs_of_src:
      return mean(graph.count_pairs(End::src), graph.num_src());
  }
  return 1;
}

// How the columns of rows would be cut into tiles. The number of tiles is 1 if they cannot be cut.
struct Cut {
  ColumnTiles tiles;
  // Tiles do not begin where a line of memory begins, so each of them touches one line more than it
  // fills.
  bool uneven = false;
};

Cut cut_columns(const SpmmFacts& f) {
  if (!f.narrow && f.width % 4 == 0) {
    // The fewer lines of memory a tile touches, the faster it is read. A tile has two lines; if the
    // row has an odd number of lines, a tile has one.
    if (f.width % kLine == 0 && f.width % (2 * kLine) != 0) return {{static_cast<int>(f.width / kLine), kLine}};
    const int64_t tiles = (f.width + 2 * kLine - 1) / (2 * kLine);
    return {{static_cast<int>(tiles), (f.width / 4 + tiles - 1) / tiles * 4}, tiles > 1 && f.width % kLine != 0};
  }
  for (int tiles = static_cast<int>(std::max<int64_t>(1, f.width / 48)); tiles > 1; --tiles) {
    if (f.width % tiles == 0 && f.width / tiles <= 128 && f.width / tiles % (f.narrow ? 8 : 2) == 0) {
      return {{tiles, f.width / tiles}};
    }
  }
  return {{1, f.width}};
}

std::string tiles_decline(const SpmmFacts& f, const DeviceTraits& device) {
  if (f.heads > 1) return "there are several attention heads, each with its own weights";
  if (f.mean_degree < kReadOften) return read_too_rarely(f.mean_degree);
  const int64_t bytes = f.read * f.width * (f.narrow ? 2 : 4);
  if (bytes <= device.gathered_cache()) return fits_cache(bytes);
  return cut_columns(f).tiles.count > 1 ? "" : cannot_be_cut(f.width);
}

std::string copied_tiles_decline(const SpmmFacts& f, const DeviceTraits& device) {
  std::string why = tiles_decline(f, device);
  if (!why.empty()) return why;
  const Cut cut = cut_columns(f);
  if (!cut.uneven) return "tiles of the rows themselves already begin where a line of memory begins";
  const int64_t bytes = f.read * cut.tiles.count * 2 * kLine * 4;
  if (bytes <= device.copies_budget()) return "";
  return fmt::format("a copy of the rows would take {}, and at most {} may be used for it", human_bytes(number(bytes)),
                     human_bytes(number(device.copies_budget())));
}

std::string ordered_weights_decline(const SpmmFacts& f, const DeviceTraits&) {
  if (!f.weighted) return "the edges have no weights";
  if (!f.other_order) return "the weights already lie in the order in which the sum reads them";
  return f.width >= 16 * f.heads ? "" : "the rows are so short that a copy of the weights saves no time";
}

std::string more_warps_declines(const RowShapeFacts& f, const DeviceTraits& device) {
  if (!device.tune) return "this run does not time variants";
  if (f.gathered < kWorthTiming) return "the kernel takes too little time to be timed";
  return f.batch == 0 || f.batch >= 4 ? "" : "a group of threads reads fewer than four rows at the same time anyway";
}

std::string pair_tiles_decline(const PairSumFacts& f, const DeviceTraits& device) {
  const int64_t bytes = f.others * f.width * 4;
  if (bytes <= device.gathered_cache()) return fits_cache(bytes);
  if (f.edges < kReadOften * f.others) return read_too_rarely(f.edges / f.others);
  return f.width / kTileWidth > 1 ? "" : cannot_be_cut(f.width);
}

std::string copied_rows_decline(const PairSumFacts& f, const DeviceTraits&) {
  if (f.width % kVector == 0) return fmt::format("rows of {} numbers can be read in vectors as they are", f.width);
  // Kernels read short rows in shorter vectors. Such a vector could lie in the added columns as a
  // whole, and kernels would store it beyond the end of the result's row.
  if (cuda::split_row(pair_row_length(f, PairSumRows::copied)).vector < kVector)
    return fmt::format("rows of {} numbers are too short to pay for a copy", f.width);
  if (f.edges < kManyEdges) return fmt::format("{} edges are too few to pay for a copy of the rows", f.edges);
  if (f.edges < kWorthCopying * f.others)
    return fmt::format("a row is read fewer than {} times on average, which does not pay for a copy", kWorthCopying);
  return "";
}

}  // namespace

SpmmFacts spmm_facts(const PlannedKernel& k) {
  const Direction d = k.kernel.direction;
  SpmmFacts f;
  const auto in = operands<SpmmOperands>(k.kernel);
  f.read = k.rows(in.x);
  f.width = k.width(k.kernel.root);
  f.heads = k.kernel.heads;
  f.mean_degree = mean_degree(k.graph(), d);
  f.narrow = k.narrow(in.x);
  f.weighted = in.weight >= 0;
  f.other_order = d == Direction::by_src || d == Direction::by_dst_pair || d == Direction::by_src_pair;
  return f;
}

const VariantList<SpmmFacts>& spmm_tile_variants() {
  static const VariantList<SpmmFacts> list = {"columns",
                                              false,
                                              {{"tiles of a copy", copied_tiles_decline, nullptr},
                                               {"tiles", tiles_decline, nullptr},
                                               {"whole rows", nullptr, nullptr}}};
  return list;
}

ColumnTiles column_tiles(const SpmmFacts& f, SpmmTiles way) {
  if (way == SpmmTiles::none) return {1, f.width};
  ColumnTiles tiles = cut_columns(f).tiles;
  if (way == SpmmTiles::copied) tiles.pitch = 2 * kLine;
  return tiles;
}

const VariantList<SpmmFacts>& spmm_weight_variants() {
  static const VariantList<SpmmFacts> list = {
      "weights",
      false,
      {{"in the order of the walk", ordered_weights_decline, nullptr}, {"as they lie", nullptr, nullptr}}};
  return list;
}

RowShapeFacts row_shape_facts(const PlannedKernel& k) {
  return {number(k.graph().num_edges()) * number(k.width(k.kernel.root)), 0};
}

const VariantList<RowShapeFacts>& row_shape_variants() {
  static const VariantList<RowShapeFacts> list = {
      "in flight", true, {{"more warps", more_warps_declines, nullptr}, {"more rows", nullptr, nullptr}}};
  return list;
}

PairSumFacts pair_sum_facts(const PlannedKernel& k) {
  const Kernel& kernel = k.kernel;
  const Graph& graph = k.graph();
  const bool dst = rows_at_dst(kernel.direction);
  PairSumFacts f{graph.num_edges(), dst ? graph.num_src() : graph.num_dst(), k.width(kernel.root)};
  if (kernel.kind == KernelKind::typed_reduce)
    f.width = k.node(operands<TypedReduceOperands>(kernel).weight).type.dims[kernel.transpose ? 1 : 0];
  if (kernel.kind == KernelKind::typed_weight_grad) f.width = k.node(kernel.root).type.dims[dst ? 0 : 1];
  return f;
}

const VariantList<PairSumFacts>& pair_sum_variants() {
  static const VariantList<PairSumFacts> list = {
      "columns of pairs' sums", false, {{"tiles", pair_tiles_decline, nullptr}, {"whole rows", nullptr, nullptr}}};
  return list;
}

int64_t tiles_of_pair_sum(const PairSumFacts& f) { return f.width / kTileWidth; }

const VariantList<PairSumFacts>& pair_row_variants() {
  static const VariantList<PairSumFacts> list = {
      "rows of pairs' sums",
      false,
      {{"copied to whole vectors", copied_rows_decline, nullptr}, {"where they lie", nullptr, nullptr}}};
  return list;
}

int64_t pair_row_length(const PairSumFacts& f, PairSumRows way) {
  return way == PairSumRows::in_place ? f.width : (f.width + kVector - 1) / kVector * kVector;
}

}  // namespace nacre
