#include "nacre/data/convert/pages.h"

#include <sys/mman.h>

#include <algorithm>

namespace nacre {

void drop_pages(const MappedFile& file, const void* begin, int64_t bytes) {
  constexpr uintptr_t page = 4096;
  const auto first = reinterpret_cast<uintptr_t>(file.bytes().data());
  const auto last = first + static_cast<uintptr_t>(file.size());
  const auto from = std::max(first, (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page);
  const auto to = std::min(last, reinterpret_cast<uintptr_t>(begin) + static_cast<uintptr_t>(bytes)) / page * page;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace nacre
