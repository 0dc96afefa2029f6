// CachePlanner: decides which rows a device keeps in its seats from batch to batch. A batch reads
// every row from its seat or, if the row has none, from further away. After the batch, seats go to
// the rows that are used again soonest, among the rows in seats and those that the batch has just
// read (Belady's rule, seat_book.h). Unlike a row on disk (row_planner.h), a row need not have a
// seat to be read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/tier/seat_book.h"

namespace nacre {

// Names a row that gets a seat when its batch has been read, and the seat.
struct RowKeep {
  uint32_t place = 0;  // position of the row in the batch
  NodeId row = 0;
  int32_t seat = kNoSeat;
};

struct CachePlan {
  // For each row of the batch, in the order of the batch: the seat in which it is read. kNoSeat: it
  // is read from further away.
  std::vector<int32_t> seats;
  // What to write to seats when all rows of the batch have been read. The seats are distinct, and
  // the batch may have read some of them.
  std::vector<RowKeep> keeps;
  int64_t hits = 0;  // rows of the batch that had a seat

  int64_t misses() const { return static_cast<int64_t>(seats.size()) - hits; }
};

class CachePlanner {
 public:
  // At first, seat i holds row contents[i]. Seats without contents are free. The last parameters
  // are those of SeatBook.
  CachePlanner(int64_t rows, int64_t seats, std::span<const NodeId> contents, int64_t rows_ahead,
               RowClasses classes = nullptr);

  // Adds a batch to the end of the look-ahead. Its rows must be distinct.
  void add(std::span<const NodeId> rows) { book_.add(rows); }
  // Returns the number of batches that were added and not planned yet.
  int64_t ahead() const { return book_.ahead(); }
  // Plans the first batch of the look-ahead and removes it from the look-ahead.
  CachePlan plan();

 private:
  struct Missing {
    int64_t use;  // the next use after the batch
    RowKeep keep;
  };

  SeatBook book_;
  std::vector<int32_t> seen_;     // seats that the batch being planned reads
  std::vector<Missing> missing_;  // rows of that batch that have no seat
};

}  // namespace nacre
