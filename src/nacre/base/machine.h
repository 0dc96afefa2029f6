// What the operating system says about this machine and this process.
#pragma once

#include <cstdint>

namespace nacre {

// Memory a program could take now, in bytes; in a container, what its limit leaves (file cache not counted as used).
int64_t available_memory();
// High-water mark of this process, in bytes: since its start, or since reset_peak_memory() where the system allows
// that.
int64_t peak_memory();
void reset_peak_memory();
// What this process holds now that is not a file's, in bytes.
int64_t held_memory();

}  // namespace nacre
