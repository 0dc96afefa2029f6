// Prevents files that are read once, front to back, from filling memory.
#pragma once

#include <cstdint>

#include "nacre/data/mapped_file.h"

namespace nacre {

// Drops the pages of `file` that lie wholly in these bytes, and some before them, from the memory
// of this process. The system reads them again when they are needed. Use this only for files that
// were opened and whose mapping nobody has written to, because such changes would be lost.
void drop_pages(const MappedFile& file, const void* begin, int64_t bytes);

}  // namespace nacre
