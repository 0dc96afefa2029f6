// RowPlanner: decides which rows of a table on disk are in memory at which time. Memory is divided
// into seats, each of which holds one row. The batches to come are known (the look-ahead), so the
// planner follows Belady's rule: if a row needs a seat, it takes the seat of the row that is used
// again last. The planner only counts: it neither reads nor copies.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/tier/row_layout.h"

namespace nacre {

constexpr int32_t kNoSeat = -1;

// A row that must be read from the file, and the seat that it is read into.
struct RowFetch {
  NodeId row = 0;
  int32_t seat = kNoSeat;
};

struct BatchPlan {
  int64_t number = 0;  // batches are numbered from 0 in the order in which they were added
  // For each row of the batch, in the order of the batch: its seat. kNoSeat: there was no seat for
  // the row, so it is read when it is looked up.
  std::vector<int32_t> seats;
  // Rows to read before the batch can be looked up, in ascending order. Rows of later batches are
  // among them if they lie on pages that are read anyway and are used soon enough.
  std::vector<RowFetch> fetches;
  // The batches up to this number must be over before the seats of `fetches` may be written to; -1:
  // they may be written to at once.
  int64_t after = -1;
  int64_t from_memory = 0;  // rows of the batch that had a seat
  int64_t pages = 0;        // pages that hold the rows to read
};

struct RowPlannerOptions {
  int64_t seats = 0;
  // A batch is read while the `lead` batches before it may still be looked up. So the seats of
  // these batches stay as they are if there are enough other seats.
  int lead = 2;
  // The look-ahead has memory for this many rows from the start on. More rows make it grow.
  int64_t rows_ahead = 1 << 10;
};

class RowPlanner {
 public:
  // The most batches that the look-ahead can hold.
  static constexpr int64_t kMostAhead = 4096;

  RowPlanner(const RowLayout& layout, const RowPlannerOptions& options);

  // Adds a batch to the end of the look-ahead. Its rows must be distinct.
  void add(std::span<const NodeId> rows);
  // Return the number of batches that were added and not planned yet, and the number of rows in
  // them.
  int64_t ahead() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t rows_ahead() const { return end_ - begin_; }
  // Sets whether plans also read other rows of the pages that a batch reads. At first they do.
  void take_neighbours(bool take) { takes_neighbours_ = take; }
  // Plans the first batch of the look-ahead and removes it from the look-ahead.
  BatchPlan plan();

  // Returns the bytes that the planner takes for a table of `rows` rows and `seats` seats.
  static int64_t table_bytes(int64_t rows, int64_t seats);
  // Returns the bytes that the planner takes while it plans a batch of `rows` rows.
  static int64_t batch_bytes(int64_t rows, int lead);
  // The bytes that the planner takes for one row of a batch in the look-ahead.
  static constexpr int64_t kUseBytes = 12;

 private:
  // Says that a batch in the look-ahead uses a row.
  struct Use {
    NodeId row;
    uint32_t next;  // place in uses_ of the row's next use, or kNone
    uint32_t batch;
  };
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr int32_t kNotListed = -2;
  static constexpr int64_t kNever = INT64_MAX;

  Use& use_at(int64_t number) { return uses_[static_cast<size_t>(number) & (uses_.size() - 1)]; }
  void make_room(int64_t more);
  // Returns the number of the batch that uses the row next; kNever if none in the look-ahead does.
  int64_t next_use(int64_t row) const { return first_use_[row] == kNone ? kNever : uses_[first_use_[row]].batch; }
  size_t list_of(int64_t batch) const {
    return batch == kNever ? lists_.size() - 1 : static_cast<size_t>(batch % kMostAhead);
  }
  bool listed(int32_t seat) const { return after_[seat] != kNotListed; }
  void enlist(int32_t seat);
  void delist(int32_t seat);
  void unpin_oldest();
  int64_t farthest();
  int32_t give_up_farthest();
  int32_t find_seat(int64_t& wait);
  void take_seat(int64_t row, int32_t seat);
  void find_hits(BatchPlan& plan);
  void seat_missing(BatchPlan& plan);
  void add_neighbours(BatchPlan& plan);

  struct Missing {
    NodeId row;
    uint32_t place;  // position of the row in the batch
  };
  struct Pinned {
    int64_t batch;
    std::vector<int32_t> seats;
  };
  // A list of seats whose rows are used next by the same batch. The seat that was enlisted first
  // comes first.
  struct List {
    int32_t first = kNoSeat, last = kNoSeat;
  };

  RowLayout layout_;
  RowPlannerOptions options_;
  bool takes_neighbours_ = true;
  int64_t added_ = 0, planned_ = 0;
  std::vector<Use> uses_;  // a ring; its size is a power of two
  int64_t begin_ = 0, end_ = 0;
  std::deque<int64_t> sizes_;                   // for each batch in the look-ahead: its number of
                                                // rows
  std::vector<uint32_t> first_use_, last_use_;  // for each row: places in uses_, or kNone
  std::vector<int32_t> seat_of_;                // for each row: its seat, or kNoSeat
  std::vector<NodeId> row_in_;                  // for each seat: its row
  std::vector<int64_t> used_by_;                // for each seat: the last batch that uses it
  std::vector<int32_t> before_, after_;         // for each seat: its neighbours in its list
  std::vector<List> lists_;                     // lists by the batch of the next use; the last
                                                // list: never used
  int64_t farthest_ = -1;                       // the lists of batches after this one are empty
  int64_t free_ = 0;                            // the seats from this one on were never used
  std::deque<Pinned> pinned_;                   // seats of the last planned batches
  std::vector<Missing> missing_;                // rows of the batch being planned that have no seat
                                                // yet
  std::vector<int32_t> taken_;                  // seats of the batch being planned

  // Neighbours of the rows of the batch being planned, behind the batches that use them next.
  std::vector<std::pair<uint32_t, NodeId>> found_;
};

}  // namespace nacre
