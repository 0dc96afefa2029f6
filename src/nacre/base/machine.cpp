#include "nacre/base/machine.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <thread>

namespace nacre {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Returns the number behind `key` in a file of "key number" lines or, if `key` is empty, the first
// number of the file. Returns -1 if there is none.
int64_t read_number(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  int64_t value = -1;
  if (key.empty()) return file >> value ? value : -1;
  for (std::string word; file >> word;) {
    if (word == key) return file >> value ? value : -1;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return -1;
}

int64_t status_kib(const char* key) { return std::max<int64_t>(0, read_number("/proc/self/status", key)) * 1024; }

bool has_controller(const std::string& list, const std::string& name) {
  std::istringstream names(list);
  for (std::string one; std::getline(names, one, ',');) {
    if (one == name) return true;
  }
  return false;
}

// Calls `look` with the folder of this process's control group and with the folders of all groups
// around it. `controller` is empty for control groups of version 2 and names a controller of
// version 1 otherwise. A container may see its own group as the root, under another name than /proc
// gives, so some of the folders may not exist; reading a limit there finds nothing.
void for_each_group(const SystemFiles& files, const std::string& controller,
                    const std::function<void(const std::string& folder)>& look) {
  std::ifstream groups(files.proc + "/self/cgroup");
  std::string path;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : has_controller(controllers, controller))
      path = line.substr(second + 1);
  }
  const std::string root = files.cgroup + (controller.empty() ? "" : "/" + controller);
  while (!path.empty() && path != "/") {
    look(root + path);
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
  look(root);
}

struct GroupFiles {
  const char* controller;
  const char* limit;
  const char* used;
  const char* inactive;  // the name of the inactive file cache in memory.stat
  // The name of the active file cache in memory.stat.
  const char* active;
};

int64_t left_in_groups(const SystemFiles& files) {
  int64_t left = kUnlimited;
  for (const GroupFiles& f : {GroupFiles{"", "memory.max", "memory.current", "inactive_file", "active_file"},
                              GroupFiles{"memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                         "total_inactive_file", "total_active_file"}}) {
    for_each_group(files, f.controller, [&](const std::string& folder) {
      // A file without a limit holds "max", for which read_number() returns -1.
      const int64_t limit = read_number(folder + "/" + f.limit, "");
      const int64_t used = read_number(folder + "/" + f.used, "");
      if (limit < 0 || used < 0) return;
      const int64_t cache = std::max<int64_t>(0, read_number(folder + "/memory.stat", f.inactive)) +
                            std::max<int64_t>(0, read_number(folder + "/memory.stat", f.active));
      left = std::min(left, std::max<int64_t>(0, limit - std::max<int64_t>(0, used - cache)));
    });
  }
  return left;
}

int64_t left_of(decltype(RLIMIT_AS) resource, const SystemFiles& files, const char* used) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const int64_t kib = std::max<int64_t>(0, read_number(files.proc + "/self/status", used));
  const auto most = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(kUnlimited)));
  return std::max<int64_t>(0, most - kib * 1024);
}

}  // namespace

MemoryLeft memory_left(const SystemFiles& files) {
  const int64_t free_kib = read_number(files.proc + "/meminfo", "MemAvailable:");
  MemoryLeft left{free_kib < 0 ? kUnlimited : free_kib * 1024, "free memory"};
  const auto limit = [&](int64_t bytes, const char* by) {
    if (bytes < left.bytes) left = {bytes, by};
  };
  limit(left_in_groups(files), "the control group");
  limit(left_of(RLIMIT_AS, files, "VmSize:"), "ulimit -v");
  limit(left_of(RLIMIT_DATA, files, "VmData:"), "ulimit -d");
  return left;
}

int usable_cpus(const SystemFiles& files) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  // sched_getaffinity() fails if the machine has more processors than the set has room for.
  if (cpus < 1) cpus = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const auto limit = [&](int64_t quota, int64_t period) {
    if (quota <= 0 || period <= 0) return;
    cpus = static_cast<int>(std::min<int64_t>(cpus, std::max<int64_t>(1, (quota + period - 1) / period)));
  };
  for_each_group(files, "", [&](const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    int64_t quota = 0, period = 0;
    if (file >> quota >> period) limit(quota, period);  // "max" (no limit) is not a number
  });
  for_each_group(files, "cpu", [&](const std::string& folder) {
    limit(read_number(folder + "/cpu.cfs_quota_us", ""), read_number(folder + "/cpu.cfs_period_us", ""));
  });
  return cpus;
}

int most_threads() { return std::max(64, 4 * usable_cpus()); }

int64_t peak_memory() { return status_kib("VmHWM:"); }

double clock_megahertz(const SystemFiles& files) {
  std::ifstream file(files.proc + "/cpuinfo");
  double highest = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with("cpu MHz") || colon == std::string::npos) continue;
    double megahertz = 0;
    if (std::istringstream(line.substr(colon + 1)) >> megahertz) highest = std::max(highest, megahertz);
  }
  return highest;
}

int64_t held_memory() { return status_kib("RssAnon:"); }

int64_t resident_memory() { return status_kib("VmRSS:"); }

int64_t unread_file_bytes(const SystemFiles& files) {
  std::ifstream file(files.proc + "/self/smaps");
  int64_t unread = 0;
  bool data = false;  // whether the lines are about a mapped data file
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first, second;
    int64_t inode = 0, kib = 0;
    words >> first >> second;
    if (!first.ends_with(":")) {  // "begin-end rw-p offset device inode path"
      std::string offset, device;
      words >> offset >> device >> inode;
      // Nacre maps data files as "rw-p". Executables and libraries have only a few pages mapped so.
      data = inode != 0 && second == "rw-p";
    } else if (data && (first == "Size:" || first == "Rss:")) {
      std::from_chars(second.data(), second.data() + second.size(), kib);
      unread += (first == "Size:" ? kib : -kib) * 1024;
    }
  }
  return unread;
}

void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace nacre
