// Keeping files that are read once, front to back, from filling memory.
#pragma once

#include <cstdint>

#include "nacre/data/mapped_file.h"

namespace nacre {

// The pages of `file` that lie wholly in these bytes, and some before them, leave this process's memory; they are read
// again when needed.
// Only for files that were opened, and that nobody has written to in memory.
void drop_pages(const MappedFile& file, const void* begin, int64_t bytes);

}  // namespace nacre
