#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {
namespace {

// Chunks are cut where entries + kRowWork · rows reaches a target that is small enough to balance
// the threads and large enough to hide the cost of starting a task. Small graphs get smaller
// chunks, so that they keep several threads busy, too.
constexpr int64_t kRowWork = 2;
constexpr int64_t kMinChunkWork = 512;
constexpr int64_t kMaxChunkWork = 8192;
constexpr int64_t kWantedChunks = 64;
// A row longer than this is cut into pieces of kPieceEntries.
constexpr int64_t kLongRow = 32768;
constexpr int64_t kPieceEntries = 8192;

void add_pieces(RowView& view, int64_t row) {
  const int64_t begin = view.row_ptr[row], end = view.row_ptr[row + 1];
  SplitRow split = {row, view.num_partials, 0};
  for (int64_t e = begin; e < end; e += kPieceEntries) {
    view.chunks.push_back({row, row + 1, e, std::min(end, e + kPieceEntries), view.num_partials++});
    ++split.num_partials;
  }
  view.split_rows.push_back(split);
}

void cut_chunks(RowView& view, RowSpan range) {
  const int64_t total = view.row_ptr[view.rows] + kRowWork * view.rows;
  const int64_t target = std::clamp(total / kWantedChunks, kMinChunkWork, kMaxChunkWork);
  int64_t first = range.begin, work = 0;
  const auto close = [&](int64_t end) {
    if (end > first) view.chunks.push_back({first, end, view.row_ptr[first], view.row_ptr[end], -1});
    first = end;
    work = 0;
  };
  for (int64_t row = range.begin; row < range.end; ++row) {
    const int64_t length = view.row_ptr[row + 1] - view.row_ptr[row];
    view.longest_row = std::max(view.longest_row, length);
    if (length > kLongRow) {
      close(row);
      add_pieces(view, row);
      first = row + 1;
      continue;
    }
    work += length + kRowWork;
    if (work >= target) close(row + 1);
  }
  close(range.end);
}

// Cuts chunks of equally many rows, about as many as cut_chunks makes.
void cut_alike(RowView& view, RowSpan range) {
  const int64_t total = view.row_ptr[view.rows] + kRowWork * view.rows;
  const int64_t target = std::clamp(total / kWantedChunks, kMinChunkWork, kMaxChunkWork);
  const int64_t step = std::max<int64_t>(1, view.rows / std::max<int64_t>(1, total / target));
  for (int64_t b = range.begin; b < range.end; b += step) {
    const int64_t e = std::min(range.end, b + step);
    view.chunks.push_back({b, e, view.row_ptr[b], view.row_ptr[e], -1});
  }
  for (int64_t r = range.begin; r < range.end; ++r)
    view.longest_row = std::max(view.longest_row, view.row_ptr[r + 1] - view.row_ptr[r]);
}

void set_rows(RowView& view) {
  const Graph& graph = view.graph;
  switch (view.direction) {
    case Direction::by_dst:
      view.rows = graph.num_dst();
      view.row_ptr = graph.row_ptr().data();
      view.col = graph.col_idx().data();
      return;
    case Direction::by_src: {
      const OutCsc& out = graph.out();
      view.rows = graph.num_src();
      view.row_ptr = out.row_ptr.data();
      view.col = out.dst.data();
      view.edge_id = out.edge_id.data();
      return;
    }
    case Direction::by_dst_pair:
    case Direction::by_src_pair: {
      const PairIndex& pairs = graph.pairs(view.direction == Direction::by_dst_pair ? End::dst : End::src);
      view.rows = pairs.num_pairs;
      view.row_ptr = pairs.edge_ptr.data();
      view.col = pairs.other.data();
      view.edge_id = pairs.edge.data();
      view.row_vertex = pairs.vertex.data();
      return;
    }
    case Direction::pairs_of_dst:
    case Direction::pairs_of_src: {
      const bool dst = view.direction == Direction::pairs_of_dst;
      const PairIndex& pairs = graph.pairs(dst ? End::dst : End::src);
      view.rows = dst ? graph.num_dst() : graph.num_src();
      view.row_ptr = pairs.vertex_ptr.data();
      view.col = pairs.pair.data();
      return;
    }
  }
}

std::shared_ptr<RowView> view_of(const Graph& graph, Direction direction) {
  auto view = std::make_shared<RowView>();
  view->graph = graph;
  view->direction = direction;
  set_rows(*view);
  return view;
}

}  // namespace

std::shared_ptr<const RowView> make_row_view(const Graph& graph, Direction direction, bool split_outliers,
                                             RowSpan range) {
  const auto view = view_of(graph, direction);
  if (view->rows > 0 && split_outliers) cut_chunks(*view, range.of(view->rows));
  if (view->rows > 0 && !split_outliers) cut_alike(*view, range.of(view->rows));
  return view;
}

std::shared_ptr<const RowView> make_uncut_view(const Graph& graph, Direction direction) {
  return view_of(graph, direction);
}

}  // namespace nacre::cpu
