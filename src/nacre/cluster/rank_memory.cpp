#include "nacre/cluster/rank_memory.h"

#include "nacre/base/error.h"

namespace nacre {
namespace {

[[noreturn]] void not_offered() {
  throw InternalError(__FILE__, __LINE__, "memory that is shared was to be offered to other ranks");
}

}  // namespace

void RankMemory::copy(const Copy& copy) {
  if (copy.add) {
    add_rows(*copy.add, copy.from, copy.to, copy.begin, copy.end);
  } else {
    copy_rows(copy.from, copy.to, copy.begin, copy.end);
  }
}

void RankMemory::sum(SumType type, std::span<void* const> arrays, int64_t begin, int64_t end) {
  sum_in_place(type, arrays, begin, end);
}

std::shared_ptr<RankOffer> RankMemory::offer(int, int, const ConstRows&) { not_offered(); }

std::shared_ptr<RankOffer> RankMemory::offer_array(int, SumType, const void*, int64_t) { not_offered(); }

std::shared_ptr<RankTicket> RankMemory::take(int, const Copy&, RankOffer&) { not_offered(); }

std::shared_ptr<RankTicket> RankMemory::take_sum(int, SumType, std::span<const std::shared_ptr<RankOffer>>, void*,
                                                 int64_t) {
  not_offered();
}

void RankMemory::wait(int, RankTicket&) { not_offered(); }

}  // namespace nacre
