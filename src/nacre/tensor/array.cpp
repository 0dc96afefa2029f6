#include "nacre/tensor/array.h"

#include <sys/mman.h>

#include <cstdlib>

#include "nacre/base/error.h"
#include "nacre/base/log.h"

namespace nacre {

std::shared_ptr<void> allocate_bytes(int64_t bytes) {
  NACRE_CHECK(bytes >= 0, "the size of an allocation is negative");
  constexpr int64_t huge_page = 2 << 20;
  const bool large = bytes >= huge_page;
  const size_t alignment = large ? huge_page : 64;
  const size_t size = (static_cast<size_t>(bytes) + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, size == 0 ? alignment : size);
  if (p == nullptr) throw RuntimeError("memory", "cannot allocate " + human_bytes(static_cast<double>(bytes)));
  // Gathering random rows misses the TLB on pages of 4 KiB, so large blocks ask for huge pages.
  if (large) madvise(p, size, MADV_HUGEPAGE);
  return {p, [](void* q) { std::free(q); }};
}

}  // namespace nacre
