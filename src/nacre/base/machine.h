// Reads what the operating system says about this machine and this process.
#pragma once

#include <cstdint>
#include <string>

namespace nacre {

// The folders in which the system describes itself. Tests give folders of their own.
struct SystemFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// The number of bytes that this process may still take, and the limit that gives this number.
struct MemoryLeft {
  int64_t bytes = 0;
  std::string limited_by;  // "free memory", "the control group", "ulimit -v" or "ulimit -d"
};
// Returns the smallest of three numbers: free memory; what the control group of this process and
// all groups around it leave (versions 1 and 2; file cache does not count as used); and what
// RLIMIT_AS and RLIMIT_DATA leave.
MemoryLeft memory_left(const SystemFiles& files = {});
inline int64_t available_memory() { return memory_left().bytes; }

// Returns the number of processors that this process may keep busy: those of its affinity
// (taskset), but no more than the processor quotas of its control group and of all groups around
// it, rounded up. The result is at least 1.
int usable_cpus(const SystemFiles& files = {});
// Returns the highest clock of the processors in MHz, as the system reports it now; 0 if it reports
// none.
double clock_megahertz(const SystemFiles& files = {});
// Returns the largest number of threads that can be useful: four per usable processor, but at least
// 64.
int most_threads();

// Returns the largest resident memory of this process in bytes since its start, or since
// reset_peak_memory() if the system supports that. Pages of mapped files count.
int64_t peak_memory();
void reset_peak_memory();
// Returns the resident memory of this process in bytes without the pages of mapped files.
int64_t held_memory();
// Returns the resident memory of this process in bytes including the pages of mapped files.
int64_t resident_memory();
// Returns the bytes of mapped data files that are not in memory yet. They come into memory when
// they are read.
int64_t unread_file_bytes(const SystemFiles& files = {});

}  // namespace nacre
