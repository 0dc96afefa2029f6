// What the operating system says about this machine and this process.
#pragma once

#include <cstdint>
#include <string>

namespace nacre {

// Folders in which the system describes itself. Tests give folders of their own.
struct SystemFiles {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// How much more memory this process may take, and what sets that limit.
struct MemoryLeft {
  int64_t bytes = 0;
  std::string limited_by;  // "free memory", "the control group", "ulimit -v" or "ulimit -d"
};
// The smallest of: free memory; what the control group of this process and all groups around it leave (versions 1 and
// 2; file cache does not count as used); what RLIMIT_AS and RLIMIT_DATA leave.
MemoryLeft memory_left(const SystemFiles& files = {});
inline int64_t available_memory() { return memory_left().bytes; }

// Processors this process may keep busy: its affinity (taskset), and no more than the processor quotas of its control
// group and of all groups around it, rounded up. At least 1.
int usable_cpus(const SystemFiles& files = {});
// More threads than this help nobody: four for each usable processor, or 64 if that is more.
int most_threads();

// The largest memory of this process so far, in bytes: since its start, or since reset_peak_memory() where the system
// allows that. Pages of mapped files count.
int64_t peak_memory();
void reset_peak_memory();
// What this process holds now that is not a file's, in bytes.
int64_t held_memory();
// What this process holds now, with the pages of mapped files, in bytes.
int64_t resident_memory();

}  // namespace nacre
