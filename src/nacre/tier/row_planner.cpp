#include "nacre/tier/row_planner.h"

#include <algorithm>
#include <bit>

#include "nacre/base/error.h"

namespace nacre {

RowPlanner::RowPlanner(const RowLayout& layout, const RowPlannerOptions& options)
    : layout_(layout), options_(options), lists_(kMostAhead + 1) {
  NACRE_CHECK(options.seats >= 0 && options.seats < INT32_MAX, "the number of seats is out of range");
  NACRE_CHECK(options.lead >= 1, "the lead must be at least one batch");
  const auto rows = static_cast<size_t>(layout.rows);
  const auto seats = static_cast<size_t>(options.seats);
  first_use_.assign(rows, kNone);
  last_use_.assign(rows, kNone);
  seat_of_.assign(rows, kNoSeat);
  row_in_.assign(seats, 0);
  used_by_.assign(seats, -1);
  before_.assign(seats, kNotListed);
  after_.assign(seats, kNotListed);
  uses_.resize(std::bit_ceil(static_cast<size_t>(std::max<int64_t>(1, options.rows_ahead))));
}

int64_t RowPlanner::batch_bytes(int64_t rows, int lead) {
  // A batch may give seats to as many rows of later batches as it has itself.
  return rows * static_cast<int64_t>(sizeof(Missing) + 2 * sizeof(int32_t) * (1 + lead) + 2 * sizeof(found_[0]));
}

int64_t RowPlanner::table_bytes(int64_t rows, int64_t seats) {
  constexpr int64_t per_row = sizeof(uint32_t) * 2 + sizeof(int32_t);
  constexpr int64_t per_seat = sizeof(NodeId) + sizeof(int64_t) + sizeof(int32_t) * 2;
  return rows * per_row + seats * per_seat;
}

// Enlarges the ring. Places of uses change, so everything that refers to them is written anew.
void RowPlanner::make_room(int64_t more) {
  const int64_t wanted = end_ - begin_ + more;
  if (wanted <= static_cast<int64_t>(uses_.size())) return;
  std::vector<Use> larger(std::bit_ceil(static_cast<size_t>(wanted)));
  const size_t old_mask = uses_.size() - 1, mask = larger.size() - 1;
  const auto moved = [&](uint32_t place) {
    if (place == kNone) return kNone;
    const auto since_begin = (place - static_cast<size_t>(begin_)) & old_mask;
    return static_cast<uint32_t>((static_cast<size_t>(begin_) + since_begin) & mask);
  };
  for (int64_t i = begin_; i < end_; ++i) {
    Use use = use_at(i);
    use.next = moved(use.next);
    larger[static_cast<size_t>(i) & mask] = use;
    // Later uses replace earlier ones, so the last use stays.
    last_use_[use.row] = static_cast<uint32_t>(static_cast<size_t>(i) & mask);
  }
  // This loop goes from the last use to the first one, so the first use of each row stays.
  for (int64_t i = end_; i-- > begin_;)
    first_use_[use_at(i).row] = static_cast<uint32_t>(static_cast<size_t>(i) & mask);
  uses_ = std::move(larger);
}

void RowPlanner::add(std::span<const NodeId> rows) {
  NACRE_CHECK(ahead() < kMostAhead - 1, "the look-ahead is full");
  make_room(static_cast<int64_t>(rows.size()));
  const auto batch = static_cast<uint32_t>(added_++);
  for (const NodeId row : rows) {
    const auto place = static_cast<uint32_t>(static_cast<size_t>(end_) & (uses_.size() - 1));
    use_at(end_++) = {row, kNone, batch};
    if (last_use_[row] != kNone) {
      uses_[last_use_[row]].next = place;
    } else {
      const int32_t seat = seat_of_[row];
      const bool waits = seat != kNoSeat && listed(seat);
      if (waits) delist(seat);
      first_use_[row] = place;
      if (waits) enlist(seat);
    }
    last_use_[row] = place;
  }
  sizes_.push_back(static_cast<int64_t>(rows.size()));
}

// ---- The lists of seats whose rows may be given up.

void RowPlanner::enlist(int32_t seat) {
  const int64_t batch = next_use(row_in_[seat]);
  if (batch != kNever) farthest_ = std::max(farthest_, batch);
  List& list = lists_[list_of(batch)];
  before_[seat] = list.last;
  after_[seat] = kNoSeat;
  (list.last == kNoSeat ? list.first : after_[list.last]) = seat;
  list.last = seat;
}

void RowPlanner::delist(int32_t seat) {
  List& list = lists_[list_of(next_use(row_in_[seat]))];
  (before_[seat] == kNoSeat ? list.first : after_[before_[seat]]) = after_[seat];
  (after_[seat] == kNoSeat ? list.last : before_[after_[seat]]) = before_[seat];
  before_[seat] = after_[seat] = kNotListed;
}

void RowPlanner::unpin_oldest() {
  const Pinned oldest = std::move(pinned_.front());
  pinned_.pop_front();
  for (const int32_t seat : oldest.seats) {
    if (used_by_[seat] == oldest.batch && !listed(seat)) enlist(seat);
  }
}

// Returns the batch of the farthest next use among the listed seats; -1 if no seat is listed.
int64_t RowPlanner::farthest() {
  if (lists_.back().first != kNoSeat) return kNever;
  while (farthest_ >= planned_ && lists_[list_of(farthest_)].first == kNoSeat) --farthest_;
  return farthest_ >= planned_ ? farthest_ : -1;
}

int32_t RowPlanner::give_up_farthest() {
  const int32_t seat = lists_[list_of(farthest())].first;
  delist(seat);
  seat_of_[row_in_[seat]] = kNoSeat;
  return seat;
}

// Returns a seat for a row that must have one, or kNoSeat. `wait` is raised to the number of the
// batch that must be over before the seat is written to.
int32_t RowPlanner::find_seat(int64_t& wait) {
  if (free_ < options_.seats) return static_cast<int32_t>(free_++);
  while (farthest() < 0 && !pinned_.empty()) unpin_oldest();
  if (farthest() < 0) return kNoSeat;
  const int32_t seat = give_up_farthest();
  wait = std::max(wait, used_by_[seat]);
  return seat;
}

void RowPlanner::take_seat(int64_t row, int32_t seat) {
  row_in_[seat] = static_cast<NodeId>(row);
  seat_of_[row] = seat;
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
  const int64_t size = sizes_.front();
  sizes_.pop_front();
  plan.seats.assign(static_cast<size_t>(size), kNoSeat);
  missing_.clear();
  for (int64_t i = 0; i < size; ++i) {
    const Use use = use_at(begin_ + i);
    const int32_t seat = seat_of_[use.row];
    if (seat != kNoSeat && listed(seat)) delist(seat);
    first_use_[use.row] = use.next;
    if (use.next == kNone) last_use_[use.row] = kNone;
    if (seat == kNoSeat) {
      missing_.push_back({use.row, static_cast<uint32_t>(i)});
      continue;
    }
    plan.seats[static_cast<size_t>(i)] = seat;
    used_by_[seat] = plan.number;
    taken_.push_back(seat);
    ++plan.from_memory;
  }
  begin_ += size;
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
  const int64_t latest = free_ < options_.seats ? kNever : farthest();
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
      if (seat_of_[row] == kNoSeat && first_use_[row] != kNone && next_use(row) < latest)
        found_.emplace_back(uses_[first_use_[row]].batch, static_cast<NodeId>(row));
    }
  }
  std::sort(found_.begin(), found_.end());
  for (const auto& [use, row] : found_) {
    if (free_ >= options_.seats && farthest() <= use) break;
    const int32_t seat = find_seat(plan.after);
    take_seat(row, seat);
    plan.fetches.push_back({row, seat});
  }
  std::sort(plan.fetches.begin(), plan.fetches.end(),
            [](const RowFetch& a, const RowFetch& b) { return a.row < b.row; });
}

}  // namespace nacre
