// SeatBook: records which rows of a table have a seat, and which of the next batches use them.
// Memory is divided into seats, each of which holds one row. The batches to come are known (the
// look-ahead), so the book names the seat that Belady's rule gives up: that of the row which is
// used again last. It only counts; planners (row_planner.h, cache_planner.h) decide what to do.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/graph/graph.h"

namespace nacre {

constexpr int32_t kNoSeat = -1;

// For each row, a number below SeatBook::kClasses: of the rows that no batch of the look-ahead
// uses, those with the largest number give up their seats first. Null: all rows have number 0.
using RowClasses = std::shared_ptr<const std::vector<uint8_t>>;

class SeatBook {
 public:
  // The most batches that the look-ahead can hold.
  static constexpr int64_t kMostAhead = 4096;
  static constexpr int kClasses = 16;
  // The next use of a row that no batch of the look-ahead uses is this number plus the class of the
  // row.
  static constexpr int64_t kNever = INT64_MAX - kClasses;
  // The bytes that the book takes for one row of a batch in the look-ahead.
  static constexpr int64_t kUseBytes = 12;

  // The look-ahead has memory for `rows_ahead` rows from the start on. More rows make it grow.
  SeatBook(int64_t rows, int64_t seats, int64_t rows_ahead, RowClasses classes = nullptr);

  // Adds a batch to the end of the look-ahead. Its rows must be distinct.
  void add(std::span<const NodeId> rows);
  // Return the number of batches in the look-ahead and the number of rows in them.
  int64_t ahead() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t rows_ahead() const { return end_ - begin_; }
  int64_t first_size() const { return sizes_.front(); }
  // Removes the first batch from the look-ahead. Calls visit(place, row, seat) for each of its rows
  // in the order of the batch. The seat is not listed any more, or it is kNoSeat; next_use(row) is
  // the use after this batch.
  void take_batch(FunctionRef<void(int64_t place, NodeId row, int32_t seat)> visit);
  // Returns the number of the batch that uses the row next. Batches are numbered from 0 in the
  // order in which they were added.
  int64_t next_use(int64_t row) const {
    return first_use_[row] != kNone ? uses_[first_use_[row]].batch : kNever + (classes_ ? (*classes_)[row] : 0);
  }

  int32_t seat_of(int64_t row) const { return seat_of_[row]; }
  bool has_free_seat() const { return free_ < static_cast<int64_t>(row_in_.size()); }
  // Returns a seat that was never used.
  int32_t take_free_seat() { return static_cast<int32_t>(free_++); }
  void take_seat(int64_t row, int32_t seat) {
    row_in_[seat] = static_cast<NodeId>(row);
    seat_of_[row] = seat;
  }
  // listed() returns whether the seat may be given up; enlist() lists it. enlist() must be called
  // when the row is in its seat. When the next use of the row changes, the book moves the seat to
  // the right list by itself.
  bool listed(int32_t seat) const { return after_[seat] != kNotListed; }
  void enlist(int32_t seat);
  // Returns the farthest next use of the rows in listed seats; -1 if no seat is listed.
  int64_t farthest();
  // Takes the seat of the row with the farthest next use from its row and from its list. If several
  // rows have this next use, it is the seat that was enlisted first.
  int32_t give_up_farthest();

  // Returns the bytes that the book takes for a table of `rows` rows and `seats` seats, without
  // their classes.
  static int64_t table_bytes(int64_t rows, int64_t seats);

 private:
  // Says that a batch in the look-ahead uses a row.
  struct Use {
    NodeId row;
    uint32_t next;  // place in uses_ of the row's next use, or kNone
    uint32_t batch;
  };
  // Names the ends of a list of seats whose rows are used next by the same batch. The seat that was
  // enlisted first comes first.
  struct List {
    int32_t first = kNoSeat, last = kNoSeat;
  };
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr int32_t kNotListed = -2;

  Use& use_at(int64_t number) { return uses_[static_cast<size_t>(number) & (uses_.size() - 1)]; }
  void make_room(int64_t more);
  List& list_of(int64_t use) {
    return lists_[static_cast<size_t>(use >= kNever ? kMostAhead + (use - kNever) : use % kMostAhead)];
  }
  void delist(int32_t seat);

  RowClasses classes_;
  int64_t added_ = 0, taken_ = 0;  // batches that were added, and those that were taken
  std::vector<Use> uses_;          // a ring; its size is a power of two
  int64_t begin_ = 0, end_ = 0;
  std::deque<int64_t> sizes_;                   // for each batch in the look-ahead: its rows
  std::vector<uint32_t> first_use_, last_use_;  // for each row: places in uses_, or kNone
  std::vector<int32_t> seat_of_;                // for each row: its seat, or kNoSeat
  std::vector<NodeId> row_in_;                  // for each seat: its row
  std::vector<int32_t> before_, after_;         // for each seat: its neighbours in its list
  std::vector<List> lists_;                     // lists by the batch of the next use, and by the
                                                // class of rows that are not used
  int64_t farthest_ = -1;                       // the lists of batches after this one are empty
  int64_t free_ = 0;                            // the seats from this one on were never used
};

}  // namespace nacre
