#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/kernel/cpu/sparse.h"

namespace nacre::cpu {
namespace {

// Chunks are cut where entries + kRowWork · rows reach the target: small enough to balance, large enough that a task's
// overhead vanishes. Small graphs get smaller chunks, so that they too keep several threads busy.
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

void cut_chunks(RowView& view) {
  const int64_t total = view.row_ptr[view.rows] + kRowWork * view.rows;
  const int64_t target = std::clamp(total / kWantedChunks, kMinChunkWork, kMaxChunkWork);
  int64_t first = 0, work = 0;
  const auto close = [&](int64_t end) {
    if (end > first) view.chunks.push_back({first, end, view.row_ptr[first], view.row_ptr[end], -1});
    first = end;
    work = 0;
  };
  for (int64_t row = 0; row < view.rows; ++row) {
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
  close(view.rows);
}

}  // namespace

std::shared_ptr<const RowView> make_row_view(const Graph& graph, Direction direction) {
  auto view = std::make_shared<RowView>();
  view->graph = graph;
  view->direction = direction;
  if (direction == Direction::by_dst) {
    view->rows = graph.num_dst();
    view->row_ptr = view->graph.row_ptr().data();
    view->col = view->graph.col_idx().data();
  } else {
    const OutCsc& out = view->graph.out();
    view->rows = graph.num_src();
    view->row_ptr = out.row_ptr.data();
    view->col = out.dst.data();
    view->edge_id = out.edge_id.data();
  }
  if (view->rows > 0) cut_chunks(*view);
  return view;
}

}  // namespace nacre::cpu
