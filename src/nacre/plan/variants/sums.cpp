#include "nacre/plan/variants/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nacre/base/log.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/variants/rows.h"

namespace nacre {
namespace {

constexpr int64_t kLine = 32;       // floats in a line of memory
constexpr int64_t kTileWidth = 64;  // columns of a tile of sums over pairs
constexpr int64_t kVector = 4;      // floats that a thread reads at once
// A copy of rows pays if they are read this often on average, in a graph of this many edges.
constexpr int64_t kWorthCopying = 4;
constexpr int64_t kManyEdges = 1 << 13;
// Long pairs are cut into about this many pieces: enough to keep a large device busy, and each long
// enough for a group of threads.
constexpr int64_t kPiecesWanted = 16384;
constexpr int64_t kShortPiece = 64;
constexpr int64_t kLongPiece = 512;
constexpr const char* kWeightsChange = "the weights change in every step";
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

// Returns the node of the weights of a kernel's sums over the edges of pairs; -1 if they have none.
NodeRef weight_of_pair_sum(const Kernel& kernel) {
  if (kernel.kind == KernelKind::typed_reduce) return operands<TypedReduceOperands>(kernel).scale;
  if (kernel.kind == KernelKind::typed_weight_grad) return operands<TypedWeightGradOperands>(kernel).scale;
  return operands<SpmmOperands>(kernel).weight;
}

// How the columns of rows would be cut into tiles. The number of tiles is 1 if they cannot be cut.
struct Cut {
  ColumnTiles tiles;
  // Whether tiles do not begin where a line of memory begins, so that each of them touches one line
  // more than it fills.
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

// ---- What sums over gathered rows cost where devices share a cache. The figures were found on one
// H200: the times of sums of 16, 32, 64 and 256 columns over the edges of reddit, and the epochs of
// four parts of the GPU beside those of one device (docs/results_log.md).

// Rows that are found in the cache are read this many times as fast as others.
constexpr double kNear = 3;
// Where rows take n times the bytes of the cache, n^-kReuse of the reads find their row there. This
// is more than 1/n, because few rows are read often.
constexpr double kReuse = 0.4;
// Walking an edge once costs as much as this many bytes, besides the bytes of its index and weight.
constexpr double kWalkBytes = 8;
// Starting with a row, or with a piece of one, costs as much as this many bytes.
constexpr double kRowBytes = 384;

double sum_seconds(const SpmmFacts& f, const ColumnTiles& tiles, int blocks, const DeviceTraits& device) {
  const double element = f.narrow ? 2 : 4;
  const double columns = number(tiles.count * tiles.width);
  const double table = number(f.read * tiles.width) * element / blocks;
  const double found = table <= 0 ? 1 : std::min(1.0, std::pow(number(device.gathered_cache()) / table, kReuse));
  const double walk = 4 + (f.weighted ? 4 * number(f.heads) : 0) + kWalkBytes;
  double bytes = f.edges * (columns * element * (found / kNear + 1 - found) + tiles.count * walk);
  // The sums of the blocks cost extra traffic, because they are written and read again.
  bytes += number(f.rows) * blocks * (tiles.count * kRowBytes + (blocks > 1 ? 2 * 4 * columns : 0));
  if (tiles.pitch > 0) bytes += 2 * 4 * number(f.read * tiles.count * tiles.pitch);
  return bytes / (device.rates.bytes_per_second * device.part.cache());
}

constexpr int kSourceBlocks[] = {16, 8, 4, 2, 1};
// A row should have at least this many edges to each block of vertices that the sum reads.
constexpr int64_t kShortestPiece = 16;

std::string decline_blocks(const SourceFacts& f, const DeviceTraits& device, int blocks) {
  const SpmmFacts& sum = f.sum;
  if (!device.part.shares_cache()) return "the device has the cache of its GPU to itself";
  if (!sum.ordered) return "the edges of a row come in another order than the nodes that they read";
  const int64_t bytes = sum.read * f.tiles.width * (sum.narrow ? 2 : 4);
  if (bytes <= device.gathered_cache()) return fits_cache(bytes);
  if (sum.mean_degree < kShortestPiece * blocks)
    return fmt::format("a row has {} edges on average, fewer than {} for each block", sum.mean_degree, kShortestPiece);
  const int64_t kept = sum.rows * blocks * f.tiles.count * f.tiles.width * 4;
  if (kept <= device.copies_budget()) return "";
  return fmt::format("the sums of the blocks would take {}, and at most {} may be used for them",
                     human_bytes(number(kept)), human_bytes(number(device.copies_budget())));
}

// Returns the seconds of a sum with the best number of blocks; negative if the device shares its
// cache with nobody, because then the first variant that does not decline is taken.
double seconds_of_tiles(const SpmmFacts& f, SpmmTiles way, const DeviceTraits& device) {
  if (!device.part.shares_cache()) return -1;
  const ColumnTiles tiles = column_tiles(f, way);
  double best = sum_seconds(f, tiles, 1, device);
  for (const int blocks : kSourceBlocks) {
    if (decline_blocks({f, tiles}, device, blocks).empty())
      best = std::min(best, sum_seconds(f, tiles, blocks, device));
  }
  return best;
}

template <SpmmTiles kWay>
double tile_cost(const SpmmFacts& f, const DeviceTraits& device) {
  return seconds_of_tiles(f, kWay, device);
}

template <int kBlocks>
std::string blocks_decline(const SourceFacts& f, const DeviceTraits& device) {
  return decline_blocks(f, device, kBlocks);
}

template <int kBlocks>
double blocks_cost(const SourceFacts& f, const DeviceTraits& device) {
  return sum_seconds(f.sum, f.tiles, kBlocks, device);
}

std::string tiles_decline(const SpmmFacts& f, const DeviceTraits& device) {
  if (f.heads > 1) return "there are several attention heads, each with its own weights";
  if (f.dots) return "dot products of whole rows are computed from the rows that are read";
  if (f.mean_degree < kReadOften) return read_too_rarely(f.mean_degree);
  const int64_t bytes = f.read * f.width * (f.narrow ? 2 : 4);
  if (bytes <= device.gathered_cache()) return fits_cache(bytes);
  return cut_columns(f).tiles.count > 1 ? "" : cannot_be_cut(f.width);
}

template <int64_t kColumns>
std::string narrow_tiles_decline(const SpmmFacts& f, const DeviceTraits& device) {
  std::string why = tiles_decline(f, device);
  if (!why.empty()) return why;
  if (f.narrow) return "the rows are kept as bf16";
  if (f.width % kColumns != 0 || cut_columns(f).tiles.width <= kColumns)
    return fmt::format("rows of {} columns cannot be cut into tiles of {} columns", f.width, kColumns);
  return "";
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

std::string ordered_weights_decline(const SpmmFacts& f, const DeviceTraits&);

std::string kept_weights_decline(const SpmmFacts& f, const DeviceTraits& device) {
  std::string why = ordered_weights_decline(f, device);
  return why.empty() && !f.constant_weights ? kWeightsChange : why;
}

std::string ordered_weights_decline(const SpmmFacts& f, const DeviceTraits&) {
  if (!f.weighted) return "the edges have no weights";
  if (f.dots) return "dot products are written where their edges lie";
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

std::string brought_edges_decline(const PairSumFacts& f, const DeviceTraits&) {
  if (!f.once) return "the sums are computed in every step";
  return f.others_in_steps ? "kernels that run in every step walk the same edges" : "";
}

std::string pair_order_declines(const PairSumFacts& f, const DeviceTraits& device) {
  if (!f.weighted) return "the edges have no weights";
  if (brought_edges_decline(f, device).empty()) return "the weights are read once";
  return f.constant_weights ? "" : kWeightsChange;
}

int64_t longest_pair(const PairSumFacts& f, const DeviceTraits&) {
  return std::clamp(f.edges / kPiecesWanted, kShortPiece, kLongPiece) * 3 / 2;
}

}  // namespace

bool PlannedKernel::constant(NodeRef i) const {
  const NodeRef owner = plan.alias[i];
  return std::any_of(plan.kernels.begin(), plan.kernels.end(), [&](const Kernel& k) {
    return k.once && std::find(k.writes.begin(), k.writes.end(), owner) != k.writes.end();
  });
}

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
  f.constant_weights = f.weighted && k.constant(in.weight);
  f.dots = in.own >= 0;
  f.other_order = d == Direction::by_src || d == Direction::by_dst_pair || d == Direction::by_src_pair;
  f.edges = number(k.graph().num_edges());
  f.rows = k.rows(k.kernel.root);
  const Space space = k.node(in.x).type.space;
  f.ordered = (d == Direction::by_dst || d == Direction::by_src) && space.on_vertices() && !k.blocks.is_reversed(space);
  return f;
}

const VariantList<SpmmFacts>& spmm_tile_variants() {
  static const VariantList<SpmmFacts> list = {
      "columns",
      false,
      {{"tiles of a copy", copied_tiles_decline, tile_cost<SpmmTiles::copied>},
       {"tiles", tiles_decline, tile_cost<SpmmTiles::in_place>},
       {"tiles of 32 columns", narrow_tiles_decline<kLine>, tile_cost<SpmmTiles::line>},
       {"tiles of 16 columns", narrow_tiles_decline<kLine / 2>, tile_cost<SpmmTiles::half_line>},
       {"whole rows", nullptr, tile_cost<SpmmTiles::none>}}};
  return list;
}

ColumnTiles column_tiles(const SpmmFacts& f, SpmmTiles way) {
  const auto narrow = [&](int64_t width) { return ColumnTiles{static_cast<int>(f.width / width), width}; };
  if (way == SpmmTiles::none) return {1, f.width};
  if (way == SpmmTiles::line) return narrow(kLine);
  if (way == SpmmTiles::half_line) return narrow(kLine / 2);
  ColumnTiles tiles = cut_columns(f).tiles;
  if (way == SpmmTiles::copied) tiles.pitch = 2 * kLine;
  return tiles;
}

const VariantList<SourceFacts>& spmm_source_variants() {
  static const VariantList<SourceFacts> list = {"sources",
                                                false,
                                                {{"16 blocks", blocks_decline<16>, blocks_cost<16>},
                                                 {"8 blocks", blocks_decline<8>, blocks_cost<8>},
                                                 {"4 blocks", blocks_decline<4>, blocks_cost<4>},
                                                 {"2 blocks", blocks_decline<2>, blocks_cost<2>},
                                                 {"all at once", nullptr, blocks_cost<1>}}};
  return list;
}

int source_blocks(int variant) { return kSourceBlocks[variant]; }

const VariantList<SpmmFacts>& spmm_weight_variants() {
  static const VariantList<SpmmFacts> list = {"weights",
                                              false,
                                              {{"kept in the order of the walk", kept_weights_decline, nullptr},
                                               {"in the order of the walk", ordered_weights_decline, nullptr},
                                               {"as they lie", nullptr, nullptr}}};
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
  const NodeRef weight = weight_of_pair_sum(kernel);
  f.weighted = weight >= 0;
  f.constant_weights = f.weighted && k.constant(weight);
  f.once = kernel.once;
  const End end = dst ? End::dst : End::src;
  f.others_in_steps = std::any_of(k.plan.kernels.begin(), k.plan.kernels.end(), [&](const Kernel& other) {
    return !other.once && sums_edges_of_pairs(other, k.plan.dfg, end);
  });
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

const VariantList<PairSumFacts>& pair_edge_variants() {
  static const VariantList<PairSumFacts> list = {
      "edges of pairs' sums",
      false,
      {{"brought for one use", brought_edges_decline, nullptr}, {"kept on the GPU", nullptr, nullptr}}};
  return list;
}

const VariantList<PairSumFacts>& pair_weight_variants() {
  static const VariantList<PairSumFacts> list = {
      "weights of pairs' sums",
      false,
      {{"kept in the order of the pairs", pair_order_declines, nullptr}, {"as they lie", nullptr, nullptr}}};
  return list;
}

const VariantList<PairSumFacts>& long_pair_variants() {
  static const VariantList<PairSumFacts> list = {
      "long pairs",
      false,
      {{"in pieces", nullptr, nullptr, longest_pair}, {"whole", nullptr, nullptr}},
      {"above {} edges", 2}};
  return list;
}

int64_t piece_of_pair(int64_t limit) { return (2 * limit + 2) / 3; }

bool sums_edges_of_pairs(const Kernel& kernel, const Dfg& dfg, End end) {
  const bool dst = end == End::dst;
  switch (kernel.kind) {
    case KernelKind::spmm:
      return kernel.direction == (dst ? Direction::by_dst_pair : Direction::by_src_pair);
    case KernelKind::typed_reduce:
      if (dfg[operands<TypedReduceOperands>(kernel).x].type.space.is_pair()) return false;
      [[fallthrough]];
    case KernelKind::typed_weight_grad:
      return kernel.direction == (dst ? Direction::by_dst : Direction::by_src);
    default:
      return false;
  }
}

}  // namespace nacre
