// Copies of long rows that nobody on this processor reads soon. Internal to the room.
#pragma once

#include <cstddef>

namespace nacre {

// As memcpy, but past the caches where the processor can: lines that are overwritten whole are not read before.
// Finished (visible to others) after finish_copies() of the same thread.
void copy_past_caches(char* to, const char* from, size_t bytes);
void finish_copies();

}  // namespace nacre
