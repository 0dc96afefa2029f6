#include "nacre/tier/row_planner.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {

RowPlanner::RowPlanner(const RowLayout& layout, const RowPlannerOptions& options)
    : layout_(layout),
      options_(options),
      book_(layout.rows, options.seats, options.rows_ahead),
      used_by_(static_cast<size_t>(options.seats), -1) {
  NACRE_CHECK(options.lead >= 1, "the lead must be at least one batch");
}

int64_t RowPlanner::batch_bytes(int64_t rows, int lead) {
  // This assumes that planning a batch gives seats to at most as many rows of later batches as the
  // batch itself has rows.
  return rows * static_cast<int64_t>(sizeof(Missing) + 2 * sizeof(int32_t) * (1 + lead) + 2 * sizeof(found_[0]));
}

int64_t RowPlanner::table_bytes(int64_t rows, int64_t seats) {
  return SeatBook::table_bytes(rows, seats) + seats * static_cast<int64_t>(sizeof(used_by_[0]));
}

void RowPlanner::unpin_oldest() {
  const Pinned oldest = std::move(pinned_.front());
  pinned_.pop_front();
  for (const int32_t seat : oldest.seats) {
    if (used_by_[seat] == oldest.batch && !book_.listed(seat)) book_.enlist(seat);
  }
}

// Returns a seat for a row that must have one, or kNoSeat. `wait` is raised to the number of the
// batch that must be over before the seat is written to.
int32_t RowPlanner::find_seat(int64_t& wait) {
  if (book_.has_free_seat()) return book_.take_free_seat();
  while (book_.farthest() < 0 && !pinned_.empty()) unpin_oldest();
  if (book_.farthest() < 0) return kNoSeat;
  const int32_t seat = book_.give_up_farthest();
  wait = std::max(wait, used_by_[seat]);
  return seat;
}

void RowPlanner::take_seat(int64_t row, int32_t seat) {
  book_.take_seat(row, seat);
  used_by_[seat] = planned_ - 1;
  taken_.push_back(seat);
}

// ---- The planning of a batch.

BatchPlan RowPlanner::plan() {
  NACRE_CHECK(ahead() > 0, "the look-ahead is empty");
  BatchPlan plan;
  plan.number = planned_++;
  while (!pinned_.empty() && pinned_.front().batch <= plan.number - options_.lead) unpin_oldest();
  taken_.clear();
  find_hits(plan);
  seat_missing(plan);
  add_neighbours(plan);
  pinned_.push_back({plan.number, taken_});
  return plan;
}

void RowPlanner::find_hits(BatchPlan& plan) {
  plan.seats.assign(static_cast<size_t>(book_.first_size()), kNoSeat);
  missing_.clear();
  book_.take_batch([&](int64_t place, NodeId row, int32_t seat) {
    if (seat == kNoSeat) {
      missing_.push_back({row, static_cast<uint32_t>(place)});
      return;
    }
    plan.seats[static_cast<size_t>(place)] = seat;
    used_by_[seat] = plan.number;
    taken_.push_back(seat);
    ++plan.from_memory;
  });
}

void RowPlanner::seat_missing(BatchPlan& plan) {
  std::sort(missing_.begin(), missing_.end(), [](const Missing& a, const Missing& b) { return a.row < b.row; });
  plan.fetches.reserve(missing_.size());
  int64_t last_page = -1;
  for (const Missing& m : missing_) {
    plan.pages += layout_.last_page(m.row) - std::max(last_page, layout_.first_page(m.row) - 1);
    last_page = layout_.last_page(m.row);
    const int32_t seat = find_seat(plan.after);
    if (seat == kNoSeat) continue;
    take_seat(m.row, seat);
    plan.seats[m.place] = seat;
    plan.fetches.push_back({m.row, seat});
  }
}

// Looks at the other rows of the pages that are read. To read such a row now costs nothing, so it
// gets a seat if it is used earlier than the row that would lose its seat.
void RowPlanner::add_neighbours(BatchPlan& plan) {
  if (!takes_neighbours_ || layout_.row_bytes >= layout_.page || plan.fetches.empty()) return;
  found_.clear();
  const int64_t latest = book_.has_free_seat() ? SeatBook::kNever : book_.farthest();
  const size_t own = plan.fetches.size();
  for (size_t i = 0; i < own;) {
    const int64_t first = layout_.first_page(plan.fetches[i].row);
    int64_t last = layout_.last_page(plan.fetches[i].row);
    for (++i; i < own && layout_.first_page(plan.fetches[i].row) <= last + 1; ++i)
      last = std::max(last, layout_.last_page(plan.fetches[i].row));
    const int64_t bytes_before = std::max<int64_t>(0, first * layout_.page - layout_.offset);
    const int64_t bytes_end = (last + 1) * layout_.page - layout_.offset;
    const int64_t end = std::min(layout_.rows, bytes_end / layout_.row_bytes);
    for (int64_t row = (bytes_before + layout_.row_bytes - 1) / layout_.row_bytes; row < end; ++row) {
      const int64_t use = book_.next_use(row);
      if (book_.seat_of(row) == kNoSeat && use < latest) found_.emplace_back(use, static_cast<NodeId>(row));
    }
  }
  std::sort(found_.begin(), found_.end());
  for (const auto& [use, row] : found_) {
    if (!book_.has_free_seat() && book_.farthest() <= use) break;
    const int32_t seat = find_seat(plan.after);
    take_seat(row, seat);
    plan.fetches.push_back({row, seat});
  }
  std::sort(plan.fetches.begin(), plan.fetches.end(),
            [](const RowFetch& a, const RowFetch& b) { return a.row < b.row; });
}

}  // namespace nacre
