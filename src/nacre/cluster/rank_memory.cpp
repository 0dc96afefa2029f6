#include "nacre/cluster/rank_memory.h"

namespace nacre {

std::shared_ptr<CopyTicket> RankMemory::copy(const Copy& copy) {
  copy_rows(copy.from, copy.to, copy.begin, copy.end);
  return nullptr;
}

std::shared_ptr<CopyTicket> RankMemory::sum(SumType type, std::span<void* const> parts, int64_t begin, int64_t end) {
  sum_in_place(type, parts, begin, end);
  return nullptr;
}

}  // namespace nacre
