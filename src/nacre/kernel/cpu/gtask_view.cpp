// Prepares the kernels over gTasks: units, and the rows that each unit finishes.
#include "nacre/kernel/cpu/gtask_view.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "nacre/base/error.h"

namespace nacre::cpu {
namespace {

// Approximate number of edges of a unit. Small graphs get smaller units, so that there are enough
// of them.
constexpr int64_t kMinUnitEdges = 512;
constexpr int64_t kMaxUnitEdges = 2048;
constexpr int64_t kWantedUnits = 64;
// The rows that a unit writes have together at most kUnitFloats floats, or are at most kMinUnitRows
// rows. A pool of small gTasks may have kPoolFloats, because the length of its products depends on
// its size.
constexpr int64_t kUnitFloats = 64 << 10;
constexpr int64_t kPoolFloats = 256 << 10;
constexpr int64_t kMinUnitRows = 64;
// A gTask with more edges than about this number is cut even if it is no outlier, because the
// rounding error of a sum grows with its length.
constexpr int64_t kMaxPieceEdges = 1 << 15;
// A unit finishes the rows that it alone touches, if the runs of neighbouring rows among them have
// at least this many rows on average.
constexpr int64_t kMinRangeRows = 8;
constexpr int64_t kRestRows = 1024;

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kShared = kNone - 1;

// Cuts the spans into pieces and gathers the pieces into units.
class UnitCutter {
 public:
  UnitCutter(const GTaskOrder& order, const NodeId* row, const GTaskView& view)
      : order_(order),
        row_(row),
        unit_edges_(std::clamp(view.num_edges() / kWantedUnits, kMinUnitEdges, kMaxUnitEdges)),
        width_(std::max<int64_t>(1, view.options.width)),
        seen_(view.rows) {}

  void run() {
    piece_ptr_.push_back(0);
    for (size_t s = 0; s + 1 < order_.span_ptr.size(); ++s) {
      const int64_t begin = order_.span_ptr[s], end = order_.span_ptr[s + 1];
      if (begin == end) continue;
      const bool full = edges() > 0 && edges() + (end - begin) > unit_edges_;
      if (full || order_.pooled[s] != pooled_) close_unit();
      pooled_ = order_.pooled[s];
      add_span(begin, end, order_.large[s] != 0 ? piece_edges(end - begin) : kMaxPieceEdges);
    }
    close_unit();
  }

  std::vector<int64_t> take_pieces() { return std::move(piece_ptr_); }
  std::vector<GTaskView::Unit> take_units() { return std::move(units_); }

 private:
  int64_t edges() const { return piece_ptr_.back() - piece_ptr_[first_piece_]; }
  int64_t row_limit() const { return std::max(kMinUnitRows, (pooled_ != 0 ? kPoolFloats : kUnitFloats) / width_); }
  // Returns the number of edges of each piece if a large gTask of `edges` edges is cut into equal
  // pieces.
  int64_t piece_edges(int64_t edges) const {
    const int64_t pieces = std::max<int64_t>(1, edges / unit_edges_);
    return (edges + pieces - 1) / pieces;
  }

  void close_unit() {
    const auto pieces = static_cast<int64_t>(piece_ptr_.size()) - 1;
    if (pieces > first_piece_) units_.push_back({first_piece_, pieces, 0, 0});
    first_piece_ = pieces;
    rows_ = 0;
  }

  // Adds a span to the current unit if it fits; otherwise to a new unit. A span that does not fit a
  // whole unit is added in pieces.
  void add_span(int64_t begin, int64_t end, int64_t piece_edges) {
    while (begin < end) {
      const int64_t stop = fit(begin, end, piece_edges);
      if (stop == end || edges() == 0) {
        piece_ptr_.push_back(stop);
        begin = stop;
      }
      if (begin < end) close_unit();
    }
  }

  // Returns where the piece of the current unit that begins at entry `begin` must end: at `end`,
  // where the unit has no room for another row, or where the piece is long. A long piece ends at
  // the end of a row if there is one nearby.
  int64_t fit(int64_t begin, int64_t end, int64_t piece_edges) {
    const auto unit = static_cast<uint32_t>(units_.size());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t length = i - begin;
      if (length >= piece_edges && (row_[i] != row_[i - 1] || length >= 2 * piece_edges)) return i;
      if (!seen_.first(row_[i], unit)) continue;
      if (rows_ == row_limit()) return i;
      ++rows_;
    }
    return end;
  }

  const GTaskOrder& order_;
  const NodeId* row_;
  int64_t unit_edges_;
  int64_t width_;
  Marks seen_;
  std::vector<int64_t> piece_ptr_;
  std::vector<GTaskView::Unit> units_;
  int64_t first_piece_ = 0;
  int64_t rows_ = 0;  // number of rows that the unit has seen
  uint8_t pooled_ = 0;
};

// Returns, for each row, the only unit that touches it; kShared if several units do, kNone if no
// unit does.
std::vector<uint32_t> find_owners(const GTaskView& view, const NodeId* row) {
  std::vector<uint32_t> owner(view.rows, kNone);
  for (size_t u = 0; u < view.units.size(); ++u) {
    for (int64_t i = view.entry_begin(view.units[u]); i < view.entry_end(view.units[u]); ++i) {
      uint32_t& mine = owner[row[i]];
      if (mine == kNone) mine = static_cast<uint32_t>(u);
      if (mine != u) mine = kShared;
    }
  }
  return owner;
}

// Decides which unit finishes which rows: runs of rows that only this unit touches, and the rows
// without edges that follow them. All other rows are finished after the last window.
void plan_ranges(GTaskView& view, std::vector<uint32_t> owner) {
  std::vector<int64_t> owned_rows(view.units.size(), 0), owned_ranges(view.units.size(), 0);
  for (size_t r = 0; r < owner.size(); ++r) {
    if (owner[r] == kNone) owner[r] = r == 0 ? kShared : owner[r - 1];
    if (owner[r] == kShared) continue;
    ++owned_rows[owner[r]];
    if (r == 0 || owner[r] != owner[r - 1]) ++owned_ranges[owner[r]];
  }
  const auto finishes = [&](uint32_t u) { return u != kShared && owned_rows[u] >= kMinRangeRows * owned_ranges[u]; };
  int64_t at = 0;
  for (size_t u = 0; u < view.units.size(); ++u) {
    view.units[u].range_begin = view.units[u].range_end = at;
    if (finishes(static_cast<uint32_t>(u))) at += owned_ranges[u];
  }
  view.rest_begin = at;
  view.ranges.resize(at);
  for (int64_t begin = 0; begin < view.rows;) {
    const auto of = [&](int64_t r) { return owner[r]; };
    const uint32_t u = of(begin);
    const bool own = finishes(u);
    int64_t end = begin + 1;
    while (end < view.rows && (own ? of(end) == u : !finishes(of(end)) && end - begin < kRestRows)) ++end;
    if (own) {
      view.ranges[view.units[u].range_end++] = {begin, end};
    } else {
      view.ranges.push_back({begin, end});
    }
    begin = end;
  }
}

Array<uint32_t> count_degrees(const NodeId* row, int64_t edges, int64_t rows) {
  std::vector<uint32_t> degree(rows, 0);
  for (int64_t i = 0; i < edges; ++i) ++degree[row[i]];
  return degree;
}

}  // namespace

std::shared_ptr<const GTaskView> make_gtask_view(std::shared_ptr<const GTasks> tasks, const GTaskOptions& options) {
  const bool by_dst = options.direction == Direction::by_dst;
  NACRE_CHECK(by_dst || options.direction == Direction::by_src,
              "a kernel over gTasks reduces only to sources or destinations");
  auto view = std::make_shared<GTaskView>();
  view->options = options;
  view->rows = by_dst ? tasks->graph.num_dst() : tasks->graph.num_src();
  view->num_types = tasks->graph.num_edge_types();
  const GTaskOrder order = order_gtasks(*tasks, options);
  view->tasks = std::move(tasks);
  view->edge = order.edge;
  view->src = order.src;
  view->dst = order.dst;
  const NodeId* row = (by_dst ? view->dst : view->src).data();
  UnitCutter cutter(order, row, *view);
  cutter.run();
  view->piece_ptr = cutter.take_pieces();
  view->units = cutter.take_units();
  view->degree = count_degrees(row, view->num_edges(), view->rows);
  plan_windows(*view, row);
  plan_ranges(*view, find_owners(*view, row));
  return view;
}

int64_t gtask_view_bytes(const GTaskView& view) {
  const bool shares = view.src.data() == view.tasks->src.data();
  const int64_t entries = shares ? 0 : view.edge.size() + view.src.size() + view.dst.size();
  return static_cast<int64_t>(
      (entries + view.sum_row.size() + view.sum_partial.size() + view.degree.size()) * sizeof(NodeId) +
      (view.piece_ptr.size() + view.sum_ptr.size()) * sizeof(int64_t) + view.sum_fresh.size() +
      view.runs.size() * sizeof(GTaskView::Run) + view.units.size() * sizeof(GTaskView::Unit) +
      view.windows.size() * sizeof(GTaskView::Window) + view.ranges.size() * sizeof(GTaskView::RowRange));
}

}  // namespace nacre::cpu
