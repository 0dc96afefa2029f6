// Compares the memory that the disk tier takes with what it says that it takes, in random settings.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "nacre/tier/disk_rows.h"
#include "support/rng.h"
#include "support/sanitized.h"

namespace nacre::test {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int kSettings = 40;

struct Setting {
  RowLayout layout;
  int64_t budget = 0, batch_rows = 0, batches = 0;
  PackOptions pack;
  TierSizes sizes;

  int64_t bill() const { return budget + DiskRows::table_bytes(layout, sizes, batch_rows, 1); }
};

Setting draw_setting(Rng& rng) {
  Setting s;
  const auto between = [&](double low, double high) { return low + rng.uniform() * (high - low); };
  const int64_t widths[] = {256, 400, 512, 1024, 2000, 4096, 6000};
  const bool packs = rng.uniform() < 0.5;
  // Only short rows are packed. The budgets are small, so that some groups of batches are packed.
  const int64_t width = widths[static_cast<size_t>(rng.uniform() * (packs ? 3 : 7))];
  s.budget = static_cast<int64_t>((packs ? between(8, 16) : between(16, 48)) * static_cast<double>(kMiB));
  s.layout = {4096, width, static_cast<int64_t>(between(3, 10) * static_cast<double>(s.budget)) / width, 4096};
  if (packs) s.pack = {Packing::on, ".", s.budget / 4};
  const int64_t left = s.budget - s.pack.memory;
  s.batch_rows = static_cast<int64_t>(between(0.05, 0.3) * static_cast<double>(left)) / width;
  s.sizes = divide_budget(left, width, s.batch_rows);
  const int64_t group = DiskRows::pack_bytes(s.pack, 1) / 3;  // the most rows of a group
  s.batches = std::max<int64_t>(24, (4 * s.sizes.seats + 5 * group) / s.batch_rows);
  return s;
}

// A file without content takes no space and reads as zeros.
class EmptyFile {
 public:
  explicit EmptyFile(const RowLayout& layout) : path_("tier_memory_" + std::to_string(getpid())) {
    std::ofstream(path_).put('\0');
    std::filesystem::resize_file(path_, static_cast<uintmax_t>(layout.end(layout.rows - 1)));
  }
  ~EmptyFile() { std::filesystem::remove(path_); }
  EmptyFile(const EmptyFile&) = delete;
  EmptyFile& operator=(const EmptyFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns the bytes of this process that belong to no file.
int64_t own_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0, of_files = 0;
  file >> all >> resident >> of_files;
  return (resident - of_files) * sysconf(_SC_PAGESIZE);
}

// Draws the rows of a batch: one out of each stretch of rows, so that they differ without a list of
// all rows.
void draw_rows(const Setting& s, int64_t batch, std::vector<NodeId>& rows) {
  Rng rng(static_cast<uint64_t>(batch) + 1);
  const int64_t step = s.layout.rows / s.batch_rows;
  rows.clear();
  for (int64_t i = 0; i < s.batch_rows; ++i)
    rows.push_back(static_cast<NodeId>(i * step + static_cast<int64_t>(rng.uniform() * static_cast<double>(step))));
}

struct Measured {
  int64_t most = 0;    // the most bytes that this process held for reading
  int64_t packed = 0;  // rows that were read from packs
};

// Reads the rows of all batches, and returns what this took.
Measured measure(const Setting& s, const std::string& path) {
  std::vector<NodeId> rows;
  draw_rows(s, 0, rows);
  std::vector<char> out(static_cast<size_t>(s.batch_rows * s.layout.row_bytes), 'x');
  const auto file = std::make_shared<RowFile>(path, s.layout);
  malloc_trim(0);  // what earlier tests have freed counts again if it is used
  const int64_t before = own_bytes();
  DiskRows source(file, listed_batches(s.batches, [&](int64_t i, std::vector<NodeId>& list) { draw_rows(s, i, list); }),
                  s.sizes, s.pack);
  source.begin({0, 0}, false);
  Measured measured;
  std::jthread watch([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      measured.most = std::max(measured.most, own_bytes() - before);
  });
  for (int64_t i = 0; i < s.batches; ++i) {
    draw_rows(s, i, rows);
    source.wait({0, i});
    source.look_up({0, i}, 0, rows, out.data(), s.layout.row_bytes);
    source.release({0, i});
  }
  watch.request_stop();
  watch.join();
  measured.packed = source.counters().packed;
  return measured;
}

// Measures in a process of its own, so that nothing that was freed before is used again.
Measured measure_apart(const Setting& s, const std::string& path) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Measured measured = measure(s, path);
    _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  EXPECT_EQ(read(ends[0], &measured, sizeof measured), static_cast<ssize_t>(sizeof measured));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return measured;
}

TEST(TierMemory, IsThatOfTheBill) {
  if (sanitized()) GTEST_SKIP() << "sanitizers take memory of their own";
  Rng rng(7);
  double least = 10, largest = 0;
  for (int i = 0; i < kSettings; ++i) {
    const Setting s = draw_setting(rng);
    const EmptyFile file(s.layout);
    const Measured measured = measure_apart(s, file.path());
    const double ratio = static_cast<double>(measured.most) / static_cast<double>(s.bill());
    std::printf("rows of %ld bytes, budget %.1f MiB, batches of %ld rows%s: bill %.2f MiB, most %.2f MiB (%.3f)\n",
                s.layout.row_bytes, static_cast<double>(s.budget) / kMiB, s.batch_rows,
                s.pack.memory > 0 ? ", packed" : "", static_cast<double>(s.bill()) / kMiB,
                static_cast<double>(measured.most) / kMiB, ratio);
    EXPECT_EQ(measured.packed > 0, s.pack.memory > 0);
    EXPECT_LE(ratio, 1.2);  // what is held varies with the timing of threads: up to 1.07 was seen
    least = std::min(least, ratio);
    largest = std::max(largest, ratio);
  }
  std::printf("peak / bill: %.3f to %.3f\n", least, largest);
}

}  // namespace
}  // namespace nacre::test
