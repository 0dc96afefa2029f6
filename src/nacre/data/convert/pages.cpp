#include "nacre/data/convert/pages.h"

#include <sys/mman.h>

#include <algorithm>

namespace nacre {

void drop_pages(const MappedFile& file, const void* begin, int64_t bytes) {
  constexpr int64_t page = 4096;
  // One access may map a whole large folio, including pages before this range that were dropped
  // earlier. Therefore pages up to one folio before the range are dropped, too.
  constexpr int64_t folio = 2 << 20;
  auto* mapping = static_cast<char*>(file.memory().get());
  const int64_t offset = static_cast<const char*>(begin) - mapping;
  const int64_t from = std::max<int64_t>(0, offset - folio) / page * page;
  const int64_t to = std::min(file.size(), offset + bytes) / page * page;
  if (from < to) madvise(mapping + from, static_cast<size_t>(to - from), MADV_DONTNEED);
}

}  // namespace nacre
