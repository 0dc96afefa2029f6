#include "nacre/tier/seat_book.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {

SeatBook::SeatBook(int64_t rows, int64_t seats, int64_t rows_ahead, RowClasses classes)
    : classes_(std::move(classes)), lists_(kMostAhead + kClasses) {
  NACRE_CHECK(seats >= 0 && seats < INT32_MAX, "the number of seats is out of range");
  NACRE_CHECK(!classes_ || static_cast<int64_t>(classes_->size()) == rows, "a row has no class");
  first_use_.assign(static_cast<size_t>(rows), kNone);
  last_use_.assign(static_cast<size_t>(rows), kNone);
  seat_of_.assign(static_cast<size_t>(rows), kNoSeat);
  row_in_.assign(static_cast<size_t>(seats), 0);
  before_.assign(static_cast<size_t>(seats), kNotListed);
  after_.assign(static_cast<size_t>(seats), kNotListed);
  uses_.resize(std::bit_ceil(static_cast<size_t>(std::max<int64_t>(1, rows_ahead))));
}

int64_t SeatBook::table_bytes(int64_t rows, int64_t seats) {
  constexpr int64_t per_row = sizeof(uint32_t) * 2 + sizeof(int32_t);
  constexpr int64_t per_seat = sizeof(NodeId) + sizeof(int32_t) * 2;
  return rows * per_row + seats * per_seat;
}

// Enlarges the ring uses_ so that it has room for `more` uses. The uses get other places in the
// ring, so everything that refers to these places is written anew.
void SeatBook::make_room(int64_t more) {
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
    // This loop goes forwards, so last_use_ ends with the last use of each row.
    last_use_[use.row] = static_cast<uint32_t>(static_cast<size_t>(i) & mask);
  }
  // This loop goes backwards, so first_use_ ends with the first use of each row.
  for (int64_t i = end_; i-- > begin_;)
    first_use_[use_at(i).row] = static_cast<uint32_t>(static_cast<size_t>(i) & mask);
  uses_ = std::move(larger);
}

void SeatBook::add(std::span<const NodeId> rows) {
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

void SeatBook::take_batch(FunctionRef<void(int64_t, NodeId, int32_t)> visit) {
  NACRE_CHECK(ahead() > 0, "the look-ahead is empty");
  ++taken_;
  const int64_t size = sizes_.front();
  sizes_.pop_front();
  for (int64_t i = 0; i < size; ++i) {
    const Use use = use_at(begin_ + i);
    const int32_t seat = seat_of_[use.row];
    if (seat != kNoSeat && listed(seat)) delist(seat);
    first_use_[use.row] = use.next;
    if (use.next == kNone) last_use_[use.row] = kNone;
    visit(i, use.row, seat);
  }
  begin_ += size;
}

// ---- The lists of seats whose rows may be given up.

void SeatBook::enlist(int32_t seat) {
  const int64_t use = next_use(row_in_[seat]);
  if (use < kNever) farthest_ = std::max(farthest_, use);
  List& list = list_of(use);
  before_[seat] = list.last;
  after_[seat] = kNoSeat;
  (list.last == kNoSeat ? list.first : after_[list.last]) = seat;
  list.last = seat;
}

void SeatBook::delist(int32_t seat) {
  List& list = list_of(next_use(row_in_[seat]));
  (before_[seat] == kNoSeat ? list.first : after_[before_[seat]]) = after_[seat];
  (after_[seat] == kNoSeat ? list.last : before_[after_[seat]]) = before_[seat];
  before_[seat] = after_[seat] = kNotListed;
}

int64_t SeatBook::farthest() {
  for (int64_t use = kNever + kClasses; use-- > kNever;) {
    if (list_of(use).first != kNoSeat) return use;
  }
  while (farthest_ >= taken_ && list_of(farthest_).first == kNoSeat) --farthest_;
  return farthest_ >= taken_ ? farthest_ : -1;
}

int32_t SeatBook::give_up_farthest() {
  const int32_t seat = list_of(farthest()).first;
  delist(seat);
  seat_of_[row_in_[seat]] = kNoSeat;
  return seat;
}

}  // namespace nacre
