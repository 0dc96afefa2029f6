// RowPlanner: decides which rows of a table on disk are in memory at which time. Every row of a
// batch needs a seat. By Belady's rule (seat_book.h), a row without a seat takes the seat of the
// row that is used again last. The planner only counts: it neither reads nor copies.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/tier/row_layout.h"
#include "nacre/tier/seat_book.h"

namespace nacre {

// Names a row that must be read from the file, and the seat that it is read into.
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
  // The rows of a batch are read while the `lead` batches before it may still be looked up. So the
  // seats of those batches are not given to other rows as long as there are enough other seats.
  int lead = 2;
  // The look-ahead has memory for this many rows from the start on. More rows make it grow.
  int64_t rows_ahead = 1 << 10;
};

class RowPlanner {
 public:
  static constexpr int64_t kMostAhead = SeatBook::kMostAhead;

  RowPlanner(const RowLayout& layout, const RowPlannerOptions& options);

  // Adds a batch to the end of the look-ahead. Its rows must be distinct.
  void add(std::span<const NodeId> rows) { book_.add(rows); }
  // Return the number of batches that were added and not planned yet, and the number of rows in
  // them.
  int64_t ahead() const { return book_.ahead(); }
  int64_t rows_ahead() const { return book_.rows_ahead(); }
  // Sets whether plans also read other rows of the pages that a batch reads. At first they do.
  void take_neighbours(bool take) { takes_neighbours_ = take; }
  // Plans the first batch of the look-ahead and removes it from the look-ahead.
  BatchPlan plan();

  // Returns the bytes that the planner takes for a table of `rows` rows and `seats` seats.
  static int64_t table_bytes(int64_t rows, int64_t seats);
  // Returns the bytes that the planner takes while it plans a batch of `rows` rows.
  static int64_t batch_bytes(int64_t rows, int lead);
  static constexpr int64_t kUseBytes = SeatBook::kUseBytes;

 private:
  void unpin_oldest();
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

  RowLayout layout_;
  RowPlannerOptions options_;
  SeatBook book_;
  bool takes_neighbours_ = true;
  int64_t planned_ = 0;
  std::vector<int64_t> used_by_;  // for each seat: the last batch that uses it
  std::deque<Pinned> pinned_;     // seats of the last planned batches
  std::vector<Missing> missing_;  // rows of the batch being planned that have no seat yet
  std::vector<int32_t> taken_;    // seats of the batch being planned

  // Lists the rows that lie on the same pages as the missing rows and have no seat, each after the
  // number of the batch that uses it next.
  std::vector<std::pair<int64_t, NodeId>> found_;
};

}  // namespace nacre
