// Copies long rows that this processor does not read soon. Only files of this room include this
// header.
#pragma once

#include <cstddef>

namespace nacre {

// Copies bytes as memcpy() does, but past the caches if the processor can: then it does not read
// cache lines before it overwrites them as a whole. Other threads may read the copy after this
// thread has called finish_copies().
void copy_past_caches(char* to, const char* from, size_t bytes);
void finish_copies();

}  // namespace nacre
