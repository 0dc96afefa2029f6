// How a partition is run: the order of its edges, the units of work that one thread runs alone, and
// where the sums of each unit go.
//
// The entries of a unit belong to whole gTasks, or to one piece of a large gTask. Inside a gTask,
// the entries are ordered by (type, row, position) whatever the table says: equal types give long
// products and equal rows give long sums. Units run in windows of consecutive units. A row that
// only one unit of the window touches is summed in place. Every other row has one partial row for
// each unit that touches it. The partial rows of a window fit the cache together and are added up
// before the next window starts.
#pragma once

#include <memory>
#include <vector>

#include "nacre/kernel/cpu/gtask.h"

namespace nacre::cpu {

struct GTaskView {
  // Consecutive entries of a unit that have the same row.
  struct Run {
    uint32_t begin : 30;   // entry, counted from the unit's first
    uint32_t partial : 1;  // whether target is a partial row of the unit
    uint32_t fresh : 1;    // whether the target holds nothing yet
    uint32_t target;       // row, or partial row counted from the unit's first
  };
  struct Unit {
    int64_t piece_begin, piece_end;  // range of piece_ptr
    int64_t run_begin, run_end;
    // The unit's first partial row, counted from the window's first.
    int64_t first_partial = 0;
    int64_t range_begin = 0, range_end = 0;  // range of `ranges`: the rows that the unit finishes
  };
  struct Window {
    int64_t unit_begin, unit_end;
    int64_t sum_begin, sum_end;
  };
  struct RowRange {
    int64_t begin, end;
  };

  std::shared_ptr<const GTasks> tasks;
  GTaskOptions options;
  int64_t rows = 0;
  int num_types = 1;
  // The edges, in the order in which they run.
  Array<EdgeId> edge;  // empty if each entry's edge number is the entry's own number
  Array<NodeId> src;
  Array<NodeId> dst;
  // The borders that no matrix product crosses: those of gTasks, of pieces of large gTasks, and of
  // pools of small gTasks.
  Array<int64_t> piece_ptr;
  std::vector<Unit> units;
  Array<Run> runs;
  // Whether the entries that are added to one target come in the order of their positions.
  bool ascending = true;
  std::vector<Window> windows;
  int64_t max_partials = 0;  // number of partial rows of the largest window
  // The sums that a window adds up: sum i adds the partial rows sum_partial[sum_ptr[i]…] into row
  // sum_row[i].
  Array<NodeId> sum_row;
  Array<int64_t> sum_ptr;
  Array<NodeId> sum_partial;
  Array<uint8_t> sum_fresh;  // whether the row holds nothing before this window
  Array<uint32_t> degree;    // number of edges of each row
  std::vector<RowRange> ranges;
  int64_t rest_begin = 0;  // the ranges from here on are finished after the last window

  int64_t num_edges() const { return src.size(); }
  int64_t entry_begin(const Unit& unit) const { return piece_ptr[unit.piece_begin]; }
  int64_t entry_end(const Unit& unit) const { return piece_ptr[unit.piece_end]; }
};

// The entries in the order in which they run, and the borders of gTasks and pools among them.
struct GTaskOrder {
  Array<EdgeId> edge;
  Array<NodeId> src;
  Array<NodeId> dst;
  std::vector<int64_t> span_ptr;
  std::vector<uint8_t> large;   // whether the span is cut into pieces
  std::vector<uint8_t> pooled;  // whether the span is a pool of several small gTasks
};
GTaskOrder order_gtasks(const GTasks& tasks, const GTaskOptions& options);

// Remembers the last visitor of each row, so that a unit can tell which rows it has seen.
class Marks {
 public:
  explicit Marks(int64_t rows) : mark_(static_cast<size_t>(rows), kNobody) {}
  // Returns whether `visitor` sees the row for the first time.
  bool first(NodeId row, uint32_t visitor) {
    if (mark_[row] == visitor) return false;
    mark_[row] = visitor;
    return true;
  }

 private:
  static constexpr uint32_t kNobody = 0xFFFFFFFF;
  std::vector<uint32_t> mark_;
};

// Fills in the windows, runs and sums of a view that already has its units; `row` is the row of
// every entry.
void plan_windows(GTaskView& view, const NodeId* row);

}  // namespace nacre::cpu
