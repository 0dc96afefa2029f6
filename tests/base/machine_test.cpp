#include "nacre/base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = 1 << 20;

// A system that is described by files of the test.
class Machine : public testing::Test {
 protected:
  Machine() : root_(fs::path(testing::TempDir()) / "machine_test") {
    fs::remove_all(root_);
    files_ = {(root_ / "proc").string(), (root_ / "cgroup").string()};
    write("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable: 1048576 kB\n");
    write("proc/self/status", "Name: test\nVmSize: 2048 kB\nVmData: 1024 kB\n");
  }
  ~Machine() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void group(const std::string& folder, const std::string& limit, int64_t used, int64_t cache) {
    write(folder + "/memory.max", limit + "\n");
    write(folder + "/memory.current", std::to_string(used) + "\n");
    write(folder + "/memory.stat", "anon 5\nfile " + std::to_string(cache + 7 * kMiB) + "\ninactive_file " +
                                       std::to_string(cache) + "\nactive_file 0\n");
  }

  fs::path root_;
  SystemFiles files_;
};

int affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return CPU_COUNT(&set);
}

TEST_F(Machine, TheClockIsThatOfTheFastestProcessor) {
  EXPECT_EQ(clock_megahertz(files_), 0) << "the system does not tell it";
  write("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2400.500\nflags\t: avx\nprocessor\t: 1\ncpu MHz\t\t: 3100\n");
  EXPECT_EQ(clock_megahertz(files_), 3100);
}

TEST_F(Machine, FreeMemoryIsTheLimitWhereThereAreNoGroups) {
  EXPECT_EQ(memory_left(files_).bytes, 1024 * kMiB);
  EXPECT_EQ(memory_left(files_).limited_by, "free memory");
}

TEST_F(Machine, EveryGroupAroundTheProcessCounts) {
  write("proc/self/cgroup", "0::/outer/middle/own\n");
  group("cgroup/outer/middle/own", "max", 10 * kMiB, 0);
  EXPECT_EQ(memory_left(files_).bytes, 1024 * kMiB) << "no group sets a limit";
  group("cgroup/outer", std::to_string(300 * kMiB), 150 * kMiB, 50 * kMiB);
  EXPECT_EQ(memory_left(files_).bytes, 200 * kMiB) << "file cache does not count as used, shared memory does";
  EXPECT_EQ(memory_left(files_).limited_by, "the control group");
  group("cgroup/outer/middle", std::to_string(100 * kMiB), 20 * kMiB, 0);
  EXPECT_EQ(memory_left(files_).bytes, 80 * kMiB);
  group("cgroup/outer/middle/own", std::to_string(30 * kMiB), 40 * kMiB, 0);
  EXPECT_EQ(memory_left(files_).bytes, 0) << "a group that is over its limit leaves nothing";
}

TEST_F(Machine, ContainersSeeTheirGroupAsTheRoot) {
  // The name on the host, which is not a folder in the container.
  write("proc/self/cgroup", "0::/docker/0123456789\n");
  group("cgroup", std::to_string(64 * kMiB), 4 * kMiB, 0);
  EXPECT_EQ(memory_left(files_).bytes, 60 * kMiB);
}

TEST_F(Machine, GroupsOfVersionOneCount) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/a/b\n4:memory:/a/b\n1:name=systemd:/\n");
  write("cgroup/memory/a/memory.limit_in_bytes", std::to_string(90 * kMiB));
  write("cgroup/memory/a/memory.usage_in_bytes", std::to_string(50 * kMiB));
  write("cgroup/memory/a/memory.stat",
        "total_inactive_file " + std::to_string(10 * kMiB) + "\ntotal_active_file " + std::to_string(5 * kMiB) + "\n");
  // This is how version 1 writes that there is no limit.
  write("cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712");
  write("cgroup/memory/a/b/memory.usage_in_bytes", std::to_string(50 * kMiB));
  EXPECT_EQ(memory_left(files_).bytes, 55 * kMiB);
}

TEST_F(Machine, LimitsOfTheProcessCount) {
  // The limit is far above what this process takes, because under a sanitizer it takes terabytes of
  // addresses.
  constexpr int64_t kLimit = int64_t{1} << 50;
  write("proc/self/status", "VmSize: 2048 kB\nVmData: " + std::to_string((kLimit - 999 * kMiB) / 1024) + " kB\n");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit low{static_cast<rlim_t>(kLimit), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &low), 0);
  const MemoryLeft left = memory_left(files_);
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_EQ(left.bytes, 999 * kMiB) << "what VmData says is used already";
  EXPECT_EQ(left.limited_by, "ulimit -d");
}

TEST_F(Machine, ProcessorQuotasOfAllGroupsCount) {
  EXPECT_EQ(usable_cpus(files_), affinity());
  write("proc/self/cgroup", "0::/outer/own\n");
  write("cgroup/outer/own/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cpus(files_), affinity());
  write("cgroup/outer/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_cpus(files_), 1) << "half a processor is one thread";
  write("cgroup/outer/cpu.max", "150000 100000\n");
  EXPECT_EQ(usable_cpus(files_), std::min(2, affinity())) << "rounded up";
}

TEST_F(Machine, ProcessorQuotasOfVersionOneCount) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/a\n");
  write("cgroup/cpu/a/cpu.cfs_quota_us", "-1");  // -1 means that there is no limit
  write("cgroup/cpu/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(usable_cpus(files_), affinity());
  write("cgroup/cpu/a/cpu.cfs_quota_us", "100000");
  EXPECT_EQ(usable_cpus(files_), 1);
}

TEST_F(Machine, AffinityCounts) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(files_), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST_F(Machine, ThreadsAreBoundedByTheProcessors) {
  EXPECT_GE(most_threads(), 64);
  EXPECT_GE(most_threads(), 4 * usable_cpus());
}

TEST_F(Machine, PagesOfDataFilesThatAreNotReadYetAreCounted) {
  EXPECT_EQ(unread_file_bytes(files_), 0) << "the system does not tell";
  write("proc/self/smaps",
        "10-20 r-xp 00000000 08:01 77 /bin/program\nSize: 9000 kB\nRss: 10 kB\n"
        "20-30 rw-p 00000000 08:01 78 /data/a file.nacre\nSize: 3000 kB\nKernelPageSize: 4 kB\nRss: 1000 kB\n"
        "30-40 rw-p 00000000 00:00 0\nSize: 500 kB\nRss: 100 kB\n"
        "40-50 rw-p 00000000 08:01 79 /data/b.nacre\nSize: 64 kB\nRss: 0 kB\n");
  EXPECT_EQ(unread_file_bytes(files_), (3000 - 1000 + 64) * 1024);
}

TEST_F(Machine, ThisProcessHoldsSomething) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_GT(held_memory(), 0);
  EXPECT_GE(resident_memory(), held_memory());
  EXPECT_GE(unread_file_bytes(), 0);
  EXPECT_GE(peak_memory(), resident_memory() / 2);
}

}  // namespace
}  // namespace nacre
