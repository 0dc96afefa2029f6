// Prepares the kernels over gTasks: windows, and where the sums of each unit go.
#include <algorithm>
#include <utility>

#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gtask_view.h"

namespace nacre::cpu {
namespace {

// A window ends when its partial rows have this many floats, but not before it has kWindowUnits
// units to run in parallel.
constexpr int64_t kWindowFloats = 512 << 10;
constexpr int64_t kWindowUnits = 8;

// Cuts the list of units (GTaskView::Unit) into windows. A run is the consecutive entries of a row
// in a unit. For each run, the planner decides whether it is summed into the row itself or into a
// partial row of the unit.
class WindowPlanner {
 public:
  WindowPlanner(GTaskView& view, const NodeId* row)
      : view_(view),
        row_(row),
        wanted_partials_(std::max<int64_t>(1, kWindowFloats / std::max<int64_t>(1, view.options.width))),
        in_unit_(view.rows),
        again_(view.rows),
        in_window_(view.rows),
        state_(static_cast<size_t>(view.rows)) {}

  void run() {
    const auto units = static_cast<int64_t>(view_.units.size());
    partial_ptr_.assign(1, 0);
    for (int64_t begin = 0; begin < units;) {
      const int64_t end = window_end(begin);
      const int64_t first_partial = partial_ptr_.back();
      for (int64_t u = begin; u < end; ++u) {
        view_.units[u].first_partial = partial_ptr_.back() - first_partial;
        add_runs(u);
      }
      view_.windows.push_back({begin, end, 0, 0});
      view_.max_partials = std::max(view_.max_partials, partial_ptr_.back() - first_partial);
      begin = end;
    }
    view_.runs = std::move(runs_);
  }

  // Return lists with an element for each partial row, unit by unit: the row it belongs to, and
  // whether no earlier window touched that row.
  const std::vector<NodeId>& partial_row() const { return partial_row_; }
  const std::vector<uint8_t>& partial_fresh() const { return partial_fresh_; }
  // Returns where the elements of each unit begin in the lists partial_row() and partial_fresh().
  const std::vector<int64_t>& partial_ptr() const { return partial_ptr_; }

 private:
  struct RowState {
    int64_t last_in_unit = -1;  // last position seen in the current unit
    int64_t last = -1;          // greatest position seen
    uint32_t partial = 0;       // partial row of the unit
    bool shared = false;        // whether several units of the window touch the row
    bool touched = false;       // whether an earlier window touches the row
    bool touched_now = false;
  };
  int64_t entries(int64_t u) const { return view_.entry_end(view_.units[u]); }

  // Returns the end of the window that begins with unit `begin`. The window takes units until they
  // have wanted_partials_ partial rows, but at least kWindowUnits units if there are as many. Sets
  // `shared` in the state of each row that several units of the window touch.
  int64_t window_end(int64_t begin) {
    const auto window = static_cast<uint32_t>(view_.windows.size());
    int64_t partials = 0;
    int64_t u = begin;
    for (; u < static_cast<int64_t>(view_.units.size()); ++u) {
      if (partials >= wanted_partials_ && u - begin >= kWindowUnits) break;
      for (int64_t i = view_.entry_begin(view_.units[u]); i < entries(u); ++i) {
        if (!in_unit_.first(row_[i], static_cast<uint32_t>(u))) continue;
        RowState& state = state_[row_[i]];
        if (in_window_.first(row_[i], window)) {
          state.shared = false;
          state.touched = state.touched_now;
          state.touched_now = true;
        } else {
          partials += state.shared ? 1 : 2;
          state.shared = true;
        }
      }
    }
    return u;
  }

  void add_runs(int64_t u) {
    GTaskView::Unit& unit = view_.units[u];
    const int64_t begin = view_.entry_begin(unit);
    unit.run_begin = static_cast<int64_t>(runs_.size());
    for (int64_t i = begin; i < entries(u); ++i) {
      const NodeId r = row_[i];
      RowState& state = state_[r];
      const bool first = again_.first(r, static_cast<uint32_t>(u));
      if (first && state.shared) {
        state.partial = static_cast<uint32_t>(static_cast<int64_t>(partial_row_.size()) - partial_ptr_.back());
        partial_row_.push_back(r);
        partial_fresh_.push_back(state.touched ? 0 : 1);
      }
      note_position(i, first, state);
      if (i > begin && r == row_[i - 1]) continue;
      const bool fresh = first && (state.shared || !state.touched);
      runs_.push_back({static_cast<uint32_t>(i - begin), state.shared, fresh, state.shared ? state.partial : r});
    }
    unit.run_end = static_cast<int64_t>(runs_.size());
    partial_ptr_.push_back(static_cast<int64_t>(partial_row_.size()));
  }

  void note_position(int64_t i, bool first, RowState& state) {
    const int64_t position = view_.edge.empty() ? i : view_.edge[i];
    const int64_t before = !state.shared ? state.last : first ? -1 : state.last_in_unit;
    view_.ascending &= position > before;
    state.last_in_unit = position;
    state.last = std::max(state.last, position);
  }

  GTaskView& view_;
  const NodeId* row_;
  int64_t wanted_partials_;
  Marks in_unit_, again_, in_window_;
  std::vector<RowState> state_;
  std::vector<GTaskView::Run> runs_;
  std::vector<NodeId> partial_row_;
  std::vector<uint8_t> partial_fresh_;
  std::vector<int64_t> partial_ptr_;
};

// Groups the partial rows of every window by row.
void plan_sums(GTaskView& view, const WindowPlanner& planner) {
  const std::vector<int64_t>& partial_ptr = planner.partial_ptr();
  Buffer<NodeId> sum_partial(partial_ptr.back());
  std::vector<std::vector<int64_t>> begin(view.windows.size());
  // The row of each element of sum_partial.
  std::vector<NodeId> row_at(partial_ptr.back());
  parallel_tasks(static_cast<int64_t>(view.windows.size()), [&](int64_t w) {
    const GTaskView::Window& window = view.windows[w];
    const int64_t first = partial_ptr[window.unit_begin];
    const int64_t last = partial_ptr[window.unit_end];
    std::vector<uint64_t> sorted;
    for (int64_t s = first; s < last; ++s) {
      sorted.push_back(uint64_t{planner.partial_row()[s]} << 32 | static_cast<uint64_t>(s - first));
    }
    std::sort(sorted.begin(), sorted.end());
    for (int64_t s = first; s < last; ++s) {
      const uint64_t row_and_partial = sorted[s - first];
      const auto r = static_cast<NodeId>(row_and_partial >> 32);
      if (s == first || r != row_at[s - 1]) begin[w].push_back(s);
      row_at[s] = r;
      sum_partial[s] = static_cast<NodeId>(row_and_partial);
    }
  });
  std::vector<NodeId> sum_row;
  std::vector<int64_t> sum_ptr;
  std::vector<uint8_t> fresh;
  for (size_t w = 0; w < begin.size(); ++w) {
    GTaskView::Window& window = view.windows[w];
    const int64_t first = partial_ptr[window.unit_begin];
    window.sum_begin = static_cast<int64_t>(sum_row.size());
    for (const int64_t s : begin[w]) {
      sum_row.push_back(row_at[s]);
      sum_ptr.push_back(s);
      fresh.push_back(planner.partial_fresh()[first + sum_partial[s]]);
    }
    window.sum_end = static_cast<int64_t>(sum_row.size());
  }
  sum_ptr.push_back(partial_ptr.back());
  view.sum_row = std::move(sum_row);
  view.sum_ptr = std::move(sum_ptr);
  view.sum_partial = std::move(sum_partial).freeze();
  view.sum_fresh = std::move(fresh);
}

}  // namespace

void plan_windows(GTaskView& view, const NodeId* row) {
  WindowPlanner planner(view, row);
  planner.run();
  plan_sums(view, planner);
}

}  // namespace nacre::cpu
