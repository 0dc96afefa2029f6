#include "nacre/engine/gpu/gpu_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/gpu/edge_order.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/variants/sums.h"

namespace nacre {
namespace {

constexpr int64_t kPack = 32;  // entries of short pairs that one group of threads sums
// A run of a weight gradient consists of whole slices of positions. It has at least kShortRun
// positions, because each run costs a matrix of partial sums.
constexpr int64_t kSlice = 32;
constexpr int64_t kShortRun = 512;

int64_t blocks_of(int64_t groups, int64_t per_block) { return (groups + per_block - 1) / per_block; }

}  // namespace

int64_t chunk_rows(int64_t total, int64_t most) {
  if (total <= most) return std::max<int64_t>(1, total);
  const int64_t chunks = (total + most - 1) / std::max<int64_t>(1, most);
  return ((total + chunks - 1) / chunks + 127) / 128 * 128;
}

std::vector<int64_t> cut_by_pairs(const Array<int64_t>& vertex_ptr, int64_t most) {
  const int64_t vertices = vertex_ptr.size() - 1;
  std::vector<int64_t> borders = {0};
  while (borders.back() < vertices) {
    const int64_t from = borders.back();
    // The next run ends with the last vertex whose pairs still fit.
    const int64_t* past = std::upper_bound(vertex_ptr.begin() + from + 1, vertex_ptr.end(), vertex_ptr[from] + most);
    borders.push_back(std::max<int64_t>(from + 1, past - vertex_ptr.begin() - 1));
  }
  return borders;
}

std::vector<PairRange> ranges_of(const PairIndex& pairs, int64_t vertex_begin, int64_t vertex_end) {
  std::vector<PairRange> ranges;
  int64_t offset = 0;
  for (int64_t t = 0; t + 1 < pairs.type_ptr.size(); ++t) {
    const NodeId* first = pairs.vertex.begin() + pairs.type_ptr[t];
    const NodeId* last = pairs.vertex.begin() + pairs.type_ptr[t + 1];
    const auto before = [](NodeId v, int64_t border) { return static_cast<int64_t>(v) < border; };
    const int64_t b = std::lower_bound(first, last, vertex_begin, before) - pairs.vertex.begin();
    const int64_t e = std::lower_bound(first, last, vertex_end, before) - pairs.vertex.begin();
    if (b == e) continue;
    ranges.push_back({static_cast<int>(t), b, e, offset});
    offset += e - b;
  }
  return ranges;
}

std::vector<TypeRun> runs_of_types(const std::vector<int64_t>& type_ptr, int64_t begin, int64_t end) {
  std::vector<TypeRun> runs;
  for (size_t t = 0; t + 1 < type_ptr.size(); ++t) {
    const int64_t b = std::max(begin, type_ptr[t]), e = std::min(end, type_ptr[t + 1]);
    if (b < e) runs.push_back({static_cast<int64_t>(t), b, e});
  }
  return runs;
}

std::vector<cuda::MmaRun> cut_products(const std::vector<int64_t>& type_ptr, int64_t rows, const NodeId* vertex) {
  std::vector<cuda::MmaRun> runs;
  for (size_t t = 0; t + 1 < type_ptr.size(); ++t) {
    for (int64_t b = type_ptr[t]; b < type_ptr[t + 1]; b += rows) {
      const int64_t e = std::min(b + rows, type_ptr[t + 1]);
      runs.push_back({static_cast<uint32_t>(t), static_cast<uint32_t>(b), static_cast<uint32_t>(e), 0});
    }
  }
  if (vertex == nullptr) return runs;
  std::stable_sort(runs.begin(), runs.end(),
                   [&](const cuda::MmaRun& a, const cuda::MmaRun& b) { return vertex[a.begin] < vertex[b.begin]; });
  return runs;
}

std::vector<cuda::MmaRun> cut_evenly(const std::vector<int64_t>& type_ptr, int64_t wanted, int64_t rows) {
  std::vector<cuda::MmaRun> runs;
  const int64_t total = type_ptr.back();
  for (size_t t = 0; t + 1 < type_ptr.size(); ++t) {
    const int64_t of_type = type_ptr[t + 1] - type_ptr[t];
    const int64_t cuts = std::max<int64_t>(1, total == 0 ? 0 : wanted * of_type / total);
    const int64_t length = std::max<int64_t>(1, blocks_of(blocks_of(of_type, cuts), rows)) * rows;
    for (int64_t b = type_ptr[t]; b < type_ptr[t + 1]; b += length) {
      const int64_t e = std::min(b + length, type_ptr[t + 1]);
      runs.push_back({static_cast<uint32_t>(t), static_cast<uint32_t>(b), static_cast<uint32_t>(e), 0});
    }
  }
  return runs;
}

std::vector<cuda::MmaRun> cut_grads(const std::vector<int64_t>& type_ptr, int64_t wanted) {
  std::vector<cuda::MmaRun> runs;
  const int64_t total = type_ptr.back();
  for (size_t t = 0; t + 1 < type_ptr.size(); ++t) {
    const int64_t rows = type_ptr[t + 1] - type_ptr[t];
    const int64_t most = std::max<int64_t>(1, rows / kShortRun);
    const int64_t cuts = std::clamp<int64_t>(total == 0 ? 0 : wanted * rows / total, 1, most);
    const int64_t length = std::max<int64_t>(1, (rows + cuts - 1) / cuts + kSlice - 1) / kSlice * kSlice;
    for (int64_t b = type_ptr[t]; b < type_ptr[t + 1]; b += length) {
      const int64_t e = std::min(b + length, type_ptr[t + 1]);
      runs.push_back({static_cast<uint32_t>(t), static_cast<uint32_t>(b), static_cast<uint32_t>(e), 0});
    }
  }
  return runs;
}

std::vector<int32_t> first_runs(const std::vector<cuda::MmaRun>& runs, int64_t types) {
  std::vector<int32_t> first(static_cast<size_t>(types) + 1, 0);
  for (const cuda::MmaRun& run : runs) ++first[run.type + 1];
  for (size_t t = 0; t < static_cast<size_t>(types); ++t) first[t + 1] += first[t];
  return first;
}

SumRange SumRange::of_cells(const PairIndex& pairs, int types, int64_t vertex_begin, int64_t vertex_end) {
  return {ranges_of(pairs, vertex_begin, vertex_end), true, vertex_begin * types, (vertex_end - vertex_begin) * types};
}

PackedSums pack_sums(const PairIndex& pairs, int types, const SumRange& range, int64_t longest) {
  PackedSums packed;
  const int64_t piece = longest == kWholePairs ? longest : piece_of_pair(longest);
  std::vector<cuda::Segment> runs;
  std::vector<char> present(range.num_cells, 0);
  const auto cell_of = [&](int64_t p) {
    return static_cast<int64_t>(pairs.vertex[p]) * types + pairs.type[p] - range.first_cell;
  };
  for (const PairRange& r : range.ranges) {
    const auto shift = static_cast<uint32_t>(r.begin - r.offset);
    int64_t from = pairs.edge_ptr[r.begin];
    const auto close = [&](int64_t to) {
      if (to > from) runs.push_back({shift, -1, from, to});
      from = to;
    };
    for (int64_t p = r.begin; p < r.end; ++p) {
      const int64_t begin = pairs.edge_ptr[p], end = pairs.edge_ptr[p + 1];
      if (range.cells) present[cell_of(p)] = 1;
      const bool in_pieces = end - begin > longest;
      if (in_pieces || end - from > kPack) close(begin);
      if (!in_pieces) continue;
      const auto first = static_cast<int32_t>(packed.items.size());
      for (int64_t e = begin; e < end; e += piece) {
        packed.items.push_back({0, static_cast<int32_t>(packed.items.size()), e, std::min(end, e + piece)});
      }
      packed.rows.push_back({static_cast<uint32_t>(range.cells ? cell_of(p) : p - r.begin + r.offset), first,
                             static_cast<int32_t>(packed.items.size()) - first, static_cast<int32_t>(end - begin)});
      from = end;
    }
    close(pairs.edge_ptr[r.end]);
  }
  packed.num_partials = static_cast<int64_t>(packed.items.size());
  packed.items.insert(packed.items.end(), runs.begin(), runs.end());
  for (size_t s = 0; s < present.size(); ++s) {
    if (present[s] == 0) packed.zeros.push_back(static_cast<uint32_t>(s));
  }
  return packed;
}

std::vector<uint32_t> pairs_of_entries(const PairIndex& pairs) {
  std::vector<uint32_t> pair_of(pairs.edge.size());
  parallel_for(pairs.num_pairs, 1 << 14, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      std::fill(pair_of.begin() + pairs.edge_ptr[p], pair_of.begin() + pairs.edge_ptr[p + 1], static_cast<uint32_t>(p));
    }
  });
  return pair_of;
}

std::vector<uint32_t> pairs_of_cells(const PairIndex& pairs, int64_t vertices, int types) {
  std::vector<uint32_t> cells(vertices * types, cuda::kNoRow);
  parallel_for(pairs.num_pairs, 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      cells[static_cast<int64_t>(pairs.vertex[p]) * types + pairs.type[p]] = static_cast<uint32_t>(p);
    }
  });
  return cells;
}

CellOrder order_cells(const PairIndex& pairs, int64_t vertices, int types, int64_t rows) {
  std::vector<uint32_t> has(vertices, 0);
  const bool masked = types <= cuda::kMostMasked;
  CellOrder order;
  order.vertex.resize(vertices);
  std::iota(order.vertex.begin(), order.vertex.end(), 0u);
  if (masked) {
    for (int64_t p = 0; p < pairs.num_pairs; ++p) has[pairs.vertex[p]] |= 1u << pairs.type[p];
    std::stable_sort(order.vertex.begin(), order.vertex.end(), [&](uint32_t a, uint32_t b) { return has[a] < has[b]; });
  }
  const std::vector<uint32_t> of_vertex = pairs_of_cells(pairs, vertices, types);
  order.pair.reserve(of_vertex.size());
  for (const uint32_t v : order.vertex) {
    const auto first = of_vertex.begin() + static_cast<int64_t>(v) * types;
    order.pair.insert(order.pair.end(), first, first + types);
  }
  for (int64_t b = 0; b < vertices; b += rows) {
    cuda::MmaRun run = {0, static_cast<uint32_t>(b), static_cast<uint32_t>(std::min(b + rows, vertices)), 0};
    for (uint32_t i = run.begin; i < run.end; ++i) run.types |= has[order.vertex[i]];
    order.runs.push_back(run);
  }
  std::stable_sort(order.runs.begin(), order.runs.end(), [](const cuda::MmaRun& a, const cuda::MmaRun& b) {
    return std::popcount(a.types) > std::popcount(b.types);
  });
  return order;
}

GpuPairs::GpuPairs(GpuContext& context, const Graph& graph, End end)
    : context_(context),
      pairs_(&graph.pairs(end)),
      graph_(graph.row_ptr().data()),
      end_(end),
      vertices_(end == End::dst ? graph.num_dst() : graph.num_src()),
      others_(end == End::dst ? graph.num_src() : graph.num_dst()),
      types_(graph.num_edge_types()) {}

std::string GpuPairs::key(const char* what) const {
  // The key names the pairs as well as the graph, because two graphs with the same edges and
  // different edge types have different pairs.
  return fmt::format("{} {} {} {}", what, graph_, static_cast<const void*>(pairs_), static_cast<int>(end_));
}

std::string GpuPairs::key(const char* what, const SumRange& range) const {
  std::string text = key(what) + fmt::format(" {} {} {} {}", longest_, range.cells, range.first_cell, range.num_cells);
  for (const PairRange& r : range.ranges) text += fmt::format(" {}-{}", r.begin, r.end);
  return text;
}

const uint32_t* GpuPairs::pair_of_cell() const {
  return context_.made_once<uint32_t>(key("pair of cell"), [&] { return pairs_of_cells(*pairs_, vertices_, types_); });
}

const PackedSums& GpuPairs::packed(const SumRange& range) const {
  return context_.once<PackedSums>(key("sums", range), [&] { return pack_sums(*pairs_, types_, range, longest_); });
}

const uint32_t* GpuPairs::pair_of_entry() const {
  return context_.made_once<uint32_t>(key("pair of entry"), [&] { return pairs_of_entries(*pairs_); });
}

const uint32_t* GpuPairs::cell_of_pair() const {
  return context_.made_once<uint32_t>(key("cell of pair"), [&] {
    std::vector<uint32_t> cell(num_pairs());
    for (int64_t p = 0; p < num_pairs(); ++p) {
      cell[p] = static_cast<uint32_t>(static_cast<int64_t>(pairs_->vertex[p]) * types_ + pairs_->type[p]);
    }
    return cell;
  });
}

GpuPairs::Cells GpuPairs::cells(int64_t rows) const {
  const std::string name = key("order of cells") + fmt::format(" {}", rows);
  const auto& order = context_.once<CellOrder>(name, [&] { return order_cells(*pairs_, vertices_, types_, rows); });
  return {context_.made(name + " vertices", order.vertex), context_.made(name + " pairs", order.pair),
          context_.made(name + " runs", order.runs), static_cast<int64_t>(order.runs.size())};
}

GpuPairs::Entries GpuPairs::bring_entries(StepList& steps, bool scaled) const {
  const int64_t bytes = pairs_->edge.size() * 4;
  void* other = steps.carve.take(bytes);
  void* pair = steps.carve.take(bytes);
  void* edge = scaled ? steps.carve.take(bytes) : nullptr;
  steps.then([&device = context_.device(), pairs = pairs_, other, pair, edge, bytes] {
    device.upload(other, pairs->other.data(), bytes);
    device.upload(pair, pairs_of_entries(*pairs).data(), bytes);
    if (edge != nullptr) device.upload(edge, pairs->edge.data(), bytes);
  });
  return {static_cast<const NodeId*>(other), static_cast<const uint32_t*>(pair), static_cast<const EdgeId*>(edge)};
}

void GpuPairs::prepare(const GpuKernel& k, StepList& steps, NodeRef scale, Sum& args) {
  const PairSumFacts facts = pair_sum_facts(k.planned());
  const bool tiled = k.variant<PairSumTiles>(pair_sum_variants(), facts) == PairSumTiles::tiles;
  args.what.tiles = tiled ? tiles_of_pair_sum(facts) : 1;
  args.what.scaled = scale >= 0;
  args.scale = static_cast<const float*>(k.pointer(scale));
  const auto long_pairs = k.take<LongPairs>(long_pair_variants(), facts);
  longest_ = long_pairs.way == LongPairs::in_pieces ? long_pairs.limit : kWholePairs;
  if (k.variant<PairSumEdges>(pair_edge_variants(), facts) == PairSumEdges::brought_once)
    args.entries = bring_entries(steps, args.what.scaled);
  if (k.variant<PairSumWeights>(pair_weight_variants(), facts) == PairSumWeights::in_order_of_pairs) {
    const KeptOrder order = {pairs_->edge.data(), pairs_->edge.size(), key("weights")};
    args.scale = static_cast<const float*>(kept_edges(k, scale, order).memory.get());
    args.by_entry = true;
    if (!steps.sizing()) steps.then(order_kept_edges(k, scale, order));
  }
  const auto rows = k.variant<PairSumRows>(pair_row_variants(), facts);
  args.what.length = pair_row_length(facts, rows);
  if (rows == PairSumRows::in_place) return;
  float* longer = steps.carve.floats(others_ * args.what.length);
  add_copy(steps,
           {{args.what.width, false, {}, {1, args.what.length}}, args.x, nullptr, 0, longer, nullptr, 0, others_});
  args.x = longer;
}

void GpuPairs::sum(StepList& steps, Sum args) const {
  if (steps.sizing()) return;
  const PackedSums& list = packed(args.range);
  const auto items = static_cast<int64_t>(list.items.size()), rows = static_cast<int64_t>(list.rows.size());
  const auto zeros = static_cast<int64_t>(list.zeros.size());
  const int64_t length = length_of(args.what);
  const int64_t per_block = cuda::typed_groups_of_block(length, args.what.tiles);
  const int64_t tiles = cuda::split_row(length, args.what.tiles).tiles;
  steps.launch(cuda::typed_sum(args.what), blocks_of(items * tiles, per_block), [&] {
    const Entries& own = args.entries;
    const bool by_edge = args.what.scaled && !args.by_entry;
    return cuda::TypedSumParams{
        .x = args.x,
        .other = own.other != nullptr ? own.other : context_.resident(pairs_->other),
        .edge = by_edge && own.edge == nullptr ? context_.resident(pairs_->edge) : own.edge,
        .scale = args.scale,
        .pair_of = own.pair != nullptr ? own.pair : pair_of_entry(),
        .cell_of = args.range.cells ? cell_of_pair() : nullptr,
        .items = context_.made(key("items of sums", args.range), list.items),
        .num_items = items,
        .partials = args.partials,
        .out = args.out,
        .first = args.range.first_cell,
    };
  });
  steps.launch(cuda::typed_join(args.what), blocks_of(rows * tiles, per_block), [&] {
    return cuda::TypedJoinParams{.partials = args.partials,
                                 .rows = context_.made(key("pairs in pieces", args.range), list.rows),
                                 .num_rows = rows,
                                 .out = args.out};
  });
  steps.launch(cuda::zero_rows(args.what), blocks_of(zeros * tiles, per_block), [&] {
    return cuda::ZeroRowsParams{
        .rows = context_.made(key("cells without a pair", args.range), list.zeros), .count = zeros, .out = args.out};
  });
}

void GpuPairs::sum_of_vertices(StepList& steps, const OfVertices& args, const std::vector<PairRange>& ranges) const {
  if (steps.sizing() || args.count == 0) return;
  const int64_t* shift = nullptr;
  if (!ranges.empty()) {
    std::vector<int64_t> moved(types_, 0);
    for (const PairRange& r : ranges) moved[r.type] = r.begin - r.offset;
    shift = context_.made(key("shift of pairs") + fmt::format(" {} {}", args.first, args.count), moved);
  }
  const int64_t tiles = cuda::split_row(args.width).tiles;
  steps.launch(cuda::sum_pairs(args.width), blocks_of(args.count * tiles, cuda::typed_groups_of_block(args.width)),
               [&] {
                 return cuda::SumPairsParams{.p = args.p,
                                             .vertex_ptr = context_.resident(pairs_->vertex_ptr),
                                             .pair = context_.resident(pairs_->pair),
                                             .type = context_.resident(pairs_->type),
                                             .shift = shift,
                                             .out = args.out,
                                             .first = args.first,
                                             .count = args.count};
               });
}

void add_copy(StepList& steps, const RowCopy& copy) {
  if (copy.count == 0) return;
  const int64_t groups =
      (copy.count + cuda::kCopyBatch - 1) / cuda::kCopyBatch * cuda::split_row(copy.what.width).tiles;
  steps.launch(cuda::copy_rows(copy.what), blocks_of(groups, cuda::typed_groups_of_block(copy.what.width)), [&] {
    return cuda::CopyRowsParams{.x = copy.x,
                                .map_in = copy.map_in,
                                .first_in = copy.first_in,
                                .out = copy.out,
                                .map_out = copy.map_out,
                                .first_out = copy.first_out,
                                .count = copy.count};
  });
}

void add_arrange(StepList& steps, cuda::Arrange how, const WeightShape& shape, const float* from, void* to, bool bf16) {
  if (steps.sizing()) return;
  const cuda::Source source = cuda::arrange_weights(how, shape.types, shape.k, shape.n, bf16, shape.ld);
  steps.launch(source, blocks_of(shape.types * shape.k * shape.n, source.threads),
               [&] { return cuda::ArrangeWeightsParams{.from = from, .to = to}; });
}

const float* matrices_of(StepList& steps, const WeightShape& shape, const float* w, bool transpose) {
  const int64_t along = transpose ? shape.n : shape.k, across = transpose ? shape.k : shape.n;
  const int64_t ld = cuda::matrix_ld(along);
  if (transpose && ld == along) return w;
  float* arranged = steps.carve.floats(shape.types * across * ld);
  const WeightShape longer = {shape.types, shape.k, shape.n, ld};
  add_arrange(steps, transpose ? cuda::Arrange::keep : cuda::Arrange::flip, longer, w, arranged, false);
  return arranged;
}

void zero_unused(StepList& steps, const std::vector<int64_t>& type_ptr, const WeightShape& shape, float* dw) {
  const int64_t size = shape.k * shape.n;
  for (size_t t = 0; t + 1 < type_ptr.size();) {
    size_t past = t;
    while (past + 1 < type_ptr.size() && type_ptr[past] == type_ptr[past + 1]) ++past;
    if (past > t) steps.zero(at(dw, static_cast<int64_t>(t) * size), static_cast<int64_t>(past - t) * size * 4);
    t = past + 1;
  }
}

}  // namespace nacre
