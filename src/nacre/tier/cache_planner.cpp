#include "nacre/tier/cache_planner.h"

#include <algorithm>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {

CachePlanner::CachePlanner(int64_t rows, int64_t seats, std::span<const NodeId> contents, int64_t rows_ahead,
                           RowClasses classes)
    : book_(rows, seats, rows_ahead, std::move(classes)) {
  NACRE_CHECK(static_cast<int64_t>(contents.size()) <= seats, "there are more rows than seats");
  for (const NodeId row : contents) {
    const int32_t seat = book_.take_free_seat();
    book_.take_seat(row, seat);
    book_.enlist(seat);
  }
}

CachePlan CachePlanner::plan() {
  CachePlan plan;
  plan.seats.reserve(static_cast<size_t>(book_.ahead() > 0 ? book_.first_size() : 0));
  seen_.clear();
  missing_.clear();
  book_.take_batch([&](int64_t place, NodeId row, int32_t seat) {
    plan.seats.push_back(seat);
    if (seat != kNoSeat) {
      seen_.push_back(seat);
    } else {
      missing_.push_back({book_.next_use(row), {static_cast<uint32_t>(place), row, kNoSeat}});
    }
  });
  plan.hits = static_cast<int64_t>(seen_.size());
  for (const int32_t seat : seen_) book_.enlist(seat);
  // If a missing row and a row in a seat have the same next use, the row in the seat keeps its
  // seat.
  std::sort(missing_.begin(), missing_.end(), [](const Missing& a, const Missing& b) {
    return a.use != b.use ? a.use < b.use : a.keep.place < b.keep.place;
  });
  for (const Missing& m : missing_) {
    RowKeep keep = m.keep;
    if (book_.has_free_seat()) {
      keep.seat = book_.take_free_seat();
    } else if (book_.farthest() > m.use) {
      keep.seat = book_.give_up_farthest();
    } else {
      break;
    }
    book_.take_seat(keep.row, keep.seat);
    book_.enlist(keep.seat);
    plan.keeps.push_back(keep);
  }
  return plan;
}

}  // namespace nacre
