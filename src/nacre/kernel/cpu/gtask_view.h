// How a partition is run: the order of its edges, the units of work one thread runs alone, and
// where each unit's sums go.
//
// A unit's entries belong to whole gTasks, or to one piece of a large gTask. Inside a gTask entries
// are ordered by (type, row, position), whatever the table: equal types make long products and
// equal rows long sums. Units are run in windows of consecutive units. A row that only one unit of
// the window touches is summed in place. Any other row has one partial row per unit that touches
// it; a window's partial rows fit the cache together and are added up before the next window
// starts.
#pragma once

#include <memory>
#include <vector>

#include "nacre/kernel/cpu/gtask.h"

namespace nacre::cpu {

struct GTaskView {
  // Consecutive entries of a unit with the same row.
  struct Run {
    uint32_t begin : 30;   // entry, counted from the unit's first
    uint32_t partial : 1;  // target is a partial row of the unit
    uint32_t fresh : 1;    // nothing in the target yet
    uint32_t target;       // row, or partial row counted from the unit's first
  };
  struct Unit {
    int64_t piece_begin, piece_end;  // into piece_ptr
    int64_t run_begin, run_end;
    // its first partial row, counted from the window's first
    int64_t slot = 0;
    int64_t range_begin = 0, range_end = 0;  // into ranges: rows the unit finishes
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
  // The edges, in the order in which they are run.
  Array<EdgeId> edge;  // empty when it is the entry's own number
  Array<NodeId> src;
  Array<NodeId> dst;
  // Entries no matrix product reaches across: gTasks, pieces of large gTasks, pools of small ones.
  Array<int64_t> piece_ptr;
  std::vector<Unit> units;
  Array<Run> runs;
  bool ascending = true;  // what runs add to one target is met in the order of positions
  std::vector<Window> windows;
  int64_t max_slots = 0;  // of a window
  // What a window adds up: sum i is the partial rows sum_slot[sum_ptr[i]…], row sum_row[i].
  Array<NodeId> sum_row;
  Array<int64_t> sum_ptr;
  Array<NodeId> sum_slot;
  Array<uint8_t> sum_fresh;  // nothing in the row before this window
  Array<uint32_t> degree;    // edges of each row
  std::vector<RowRange> ranges;
  int64_t rest_begin = 0;  // ranges from here on are finished after the last window

  int64_t num_edges() const { return src.size(); }
  int64_t entry_begin(const Unit& unit) const { return piece_ptr[unit.piece_begin]; }
  int64_t entry_end(const Unit& unit) const { return piece_ptr[unit.piece_end]; }
};

// The entries in the order in which they are run, and the borders of gTasks and pools in it.
struct GTaskOrder {
  Array<EdgeId> edge;
  Array<NodeId> src;
  Array<NodeId> dst;
  std::vector<int64_t> span_ptr;
  std::vector<uint8_t> large;   // spans that are cut into pieces
  std::vector<uint8_t> pooled;  // spans of several small gTasks
};
GTaskOrder order_gtasks(const GTasks& tasks, const GTaskOptions& options);

// A row's last visitor: units mark the rows they have seen.
class Marks {
 public:
  explicit Marks(int64_t rows) : mark_(static_cast<size_t>(rows), kNobody) {}
  // Whether `visitor` sees the row for the first time.
  bool first(NodeId row, uint32_t visitor) {
    if (mark_[row] == visitor) return false;
    mark_[row] = visitor;
    return true;
  }

 private:
  static constexpr uint32_t kNobody = 0xFFFFFFFF;
  std::vector<uint32_t> mark_;
};

// Fills windows, runs and sums of a view that has its units; `row` is the row of every entry.
void plan_windows(GTaskView& view, const NodeId* row);

}  // namespace nacre::cpu
