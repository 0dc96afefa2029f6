#include "nacre/engine/gpu/typed_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

// Pieces of long pairs: enough of them to keep a large device busy, long enough to be worth a group of threads.
constexpr int64_t kPiecesWanted = 16384;
constexpr int64_t kShortPiece = 64;
constexpr int64_t kLongPiece = 512;
constexpr int64_t kRowsBudget = int64_t{1} << 30;

int64_t piece_edges(int64_t edges) { return std::clamp(edges / kPiecesWanted, kShortPiece, kLongPiece); }

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
    // The last vertex whose pairs still fit.
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

std::vector<PairRange> merged(const std::vector<PairRange>& ranges) {
  std::vector<PairRange> joined;
  for (const PairRange& r : ranges) {
    const bool follows = !joined.empty() && joined.back().end == r.begin &&
                         joined.back().offset + joined.back().end - joined.back().begin == r.offset;
    if (follows) {
      joined.back().end = r.end;
    } else {
      joined.push_back(r);
    }
  }
  return joined;
}

int64_t long_pair(int64_t edges) { return piece_edges(edges) * 3 / 2; }

LongPairs long_pairs(const PairIndex& pairs, int types, bool slots, int64_t longest) {
  LongPairs list;
  const int64_t piece = piece_edges(pairs.edge.size());
  for (int64_t i = 0; i < pairs.num_pairs; ++i) {
    // By slot the pairs of a vertex follow on each other.
    const int64_t p = slots ? pairs.pair[i] : i;
    const int64_t begin = pairs.edge_ptr[p], end = pairs.edge_ptr[p + 1];
    if (end - begin <= longest) continue;
    const auto row = static_cast<uint32_t>(slots ? static_cast<int64_t>(pairs.vertex[p]) * types + pairs.type[p] : p);
    const auto first = static_cast<int32_t>(list.pieces.size());
    for (int64_t e = begin; e < end; e += piece) {
      list.pieces.push_back({row, static_cast<int32_t>(list.pieces.size()), e, std::min(end, e + piece)});
    }
    const auto count = static_cast<int32_t>(list.pieces.size()) - first;
    list.rows.push_back({row, first, count, static_cast<int32_t>(end - begin)});
  }
  return list;
}

std::vector<uint32_t> pairs_of_slots(const PairIndex& pairs, int64_t vertices, int types) {
  std::vector<uint32_t> slots(static_cast<size_t>(vertices * types), cuda::kNoRow);
  parallel_for(pairs.num_pairs, 1 << 16, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      slots[static_cast<size_t>(static_cast<int64_t>(pairs.vertex[p]) * types + pairs.type[p])] =
          static_cast<uint32_t>(p);
    }
  });
  return slots;
}

GpuPairs::GpuPairs(GpuContext& context, const Graph& graph, End end)
    : context_(context),
      pairs_(&graph.pairs(end)),
      graph_(graph.row_ptr().data()),
      end_(end),
      vertices_(end == End::dst ? graph.num_dst() : graph.num_src()),
      types_(graph.num_edge_types()) {}

std::string GpuPairs::key(const char* what) const {
  // The types of edges tell graphs over the same edges apart: their pairs differ.
  return fmt::format("{} {} {} {}", what, graph_, static_cast<const void*>(pairs_), static_cast<int>(end_));
}

bool GpuPairs::full() const {
  return num_pairs() > 0 && 2 * num_pairs() >= vertices_ * types_ && vertices_ * types_ < int64_t{cuda::kNoRow};
}

const uint32_t* GpuPairs::pair_of_slot() const {
  if (pair_of_slot_ == nullptr) {
    pair_of_slot_ = context_.made(key("pair of slot"), pairs_of_slots(*pairs_, vertices_, types_));
  }
  return pair_of_slot_;
}

const LongPairs& GpuPairs::long_ones(bool slots) const {
  auto& list = long_ones_[slots ? 1 : 0];
  if (!list) list = std::make_unique<LongPairs>(long_pairs(*pairs_, types_, slots, long_pair(pairs_->edge.size())));
  return *list;
}

int64_t GpuPairs::most_pieces(bool slots, int64_t count) const {
  const std::vector<GpuSegment>& pieces = long_ones(slots).pieces;
  size_t most = 0;
  for (size_t first = 0, past = 0; past < pieces.size(); ++past) {
    while (pieces[past].row - pieces[first].row >= count) ++first;
    most = std::max(most, past + 1 - first);
  }
  return static_cast<int64_t>(most);
}

void GpuPairs::sum(StepList& steps, Sum args) const {
  if (steps.sizing() || args.count == 0) return;
  const LongPairs& list = long_ones(args.slots);
  args.what.long_row = long_pair(pairs_->edge.size());
  const auto below = [](const auto& item, int64_t row) { return static_cast<int64_t>(item.row) < row; };
  const auto find = [&](const auto& items, int64_t row) {
    return std::lower_bound(items.begin(), items.end(), row, below) - items.begin();
  };
  const int64_t piece = find(list.pieces, args.first);
  const int64_t num_pieces = find(list.pieces, args.first + args.count) - piece;
  const int64_t row = find(list.rows, args.first);
  const int64_t num_rows = find(list.rows, args.first + args.count) - row;
  const GpuSegment* pieces = nullptr;
  const GpuSplitRow* rows = nullptr;
  if (!list.pieces.empty()) {
    pieces = context_.made(key(args.slots ? "pieces of slots" : "pieces of pairs"), list.pieces) + piece;
    rows = context_.made(key(args.slots ? "long slots" : "long pairs"), list.rows) + row;
  }
  const int64_t per_block = cuda::typed_groups_of_block(args.what.width);
  const int64_t tiles = cuda::split_row(args.what.width).tiles;
  steps.launch(cuda::typed_sum(args.what), blocks_of((num_pieces + args.count) * tiles, per_block), [&] {
    LaunchArgs a;
    a.add(args.x).add(context_.resident(pairs_->other));
    a.add(args.what.scaled ? context_.resident(pairs_->edge) : nullptr).add(args.scale);
    a.add(context_.resident(pairs_->edge_ptr)).add(args.slots ? pair_of_slot() : nullptr);
    a.add(pieces).add(num_pieces).add(args.partials).add(args.out).add(args.first).add(args.count);
    return a;
  });
  steps.launch(cuda::typed_join(args.what), blocks_of(num_rows * tiles, per_block), [&] {
    LaunchArgs a;
    a.add(args.partials).add(rows).add(num_rows).add(piece).add(args.out).add(args.first);
    return a;
  });
}

void GpuPairs::sum_of_vertices(StepList& steps, const OfVertices& args, const std::vector<PairRange>& ranges) const {
  if (steps.sizing() || args.count == 0) return;
  const int64_t* shift = nullptr;
  if (!ranges.empty()) {
    std::vector<int64_t> moved(static_cast<size_t>(types_), 0);
    for (const PairRange& r : ranges) moved[static_cast<size_t>(r.type)] = r.begin - r.offset;
    shift = context_.made(key("shift of pairs") + fmt::format(" {} {}", args.first, args.count), moved);
  }
  const int64_t tiles = cuda::split_row(args.width).tiles;
  steps.launch(cuda::sum_pairs(args.width), blocks_of(args.count * tiles, cuda::typed_groups_of_block(args.width)),
               [&] {
                 LaunchArgs a;
                 a.add(args.p).add(context_.resident(pairs_->vertex_ptr)).add(context_.resident(pairs_->pair));
                 a.add(context_.resident(pairs_->type)).add(shift).add(args.out).add(args.first).add(args.count);
                 return a;
               });
}

void add_copy(StepList& steps, const RowCopy& copy) {
  if (copy.count == 0) return;
  const int64_t groups =
      (copy.count + cuda::kCopyBatch - 1) / cuda::kCopyBatch * cuda::split_row(copy.what.width).tiles;
  steps.launch(cuda::copy_rows(copy.what), blocks_of(groups, cuda::typed_groups_of_block(copy.what.width)), [&] {
    LaunchArgs a;
    a.add(copy.x).add(copy.map_in).add(copy.first_in).add(copy.out).add(copy.map_out).add(copy.first_out);
    a.add(copy.count);
    return a;
  });
}

void add_arrange(StepList& steps, cuda::Arrange how, const WeightShape& shape, const float* from, void* to, bool bf16) {
  const cuda::Source source = cuda::arrange_weights(how, shape.types, shape.k, shape.n, bf16);
  steps.launch(source, blocks_of(shape.types * shape.k * shape.n, source.threads), [&] {
    LaunchArgs a;
    a.add(from).add(to);
    return a;
  });
}

int64_t rows_budget(GpuContext& context) { return std::min(kRowsBudget, context.device().info().memory_bytes / 16); }

}  // namespace nacre
