#include "nacre/data/convert/pages.h"

#include <sys/mman.h>

#include <algorithm>

namespace nacre {

void drop_pages(const MappedFile& file, const void* begin, int64_t bytes) {
  constexpr uintptr_t page = 4096;
  const auto first = reinterpret_cast<uintptr_t>(file.bytes().data());
  const auto last = first + static_cast<uintptr_t>(file.size());
  // One access may map a whole large folio, and with it pages before these that were dropped already.
  constexpr uintptr_t folio = 2 << 20;
  const auto wanted = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  const auto from = std::max(first, wanted > folio ? wanted - folio : 0);
  const auto to = std::min(last, reinterpret_cast<uintptr_t>(begin) + static_cast<uintptr_t>(bytes)) / page * page;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace nacre
