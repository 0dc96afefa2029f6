#include "nacre/base/machine.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace nacre {
namespace {

// The number behind `key` in a file of "key number" lines, or the file's first number with an empty key; -1 if there is
// none.
int64_t read_number(const char* path, const std::string& key) {
  std::ifstream file(path);
  int64_t value = -1;
  if (key.empty()) return file >> value ? value : -1;
  for (std::string word; file >> word;) {
    if (word == key) return file >> value ? value : -1;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return -1;
}

}  // namespace

int64_t available_memory() {
  int64_t available = std::numeric_limits<int64_t>::max();
  if (const int64_t kib = read_number("/proc/meminfo", "MemAvailable:"); kib >= 0) available = kib * 1024;
  const int64_t limit = read_number("/sys/fs/cgroup/memory.max", "");
  const int64_t used = read_number("/sys/fs/cgroup/memory.current", "");
  const int64_t cache = std::max<int64_t>(0, read_number("/sys/fs/cgroup/memory.stat", "file"));
  if (limit >= 0 && used >= 0) available = std::min(available, std::max<int64_t>(0, limit - used + cache));
  return available;
}

int64_t peak_memory() { return std::max<int64_t>(0, read_number("/proc/self/status", "VmHWM:")) * 1024; }

int64_t held_memory() { return std::max<int64_t>(0, read_number("/proc/self/status", "RssAnon:")) * 1024; }

void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace nacre
