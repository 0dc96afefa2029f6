#include "nacre/tier/disk_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "nacre/base/parallel.h"
#include "nacre/schedule/batch_loader.h"
#include "row_files.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

using Queues = DiskRows::MakeQueue;

Queues queues(const std::string& name) {
  return [name](int depth) { return name == "auto" ? make_read_queue(depth) : make_queue(name, depth); };
}

std::vector<std::vector<NodeId>> draw_lists(uint64_t seed, int64_t rows, int64_t count, int64_t size) {
  Rng rng(seed);
  std::vector<std::vector<NodeId>> lists(static_cast<size_t>(count));
  std::vector<NodeId> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), NodeId{0});
  for (auto& list : lists) {
    for (int64_t i = 0; i < size; ++i) {
      const double u = rng.uniform();
      std::swap(all[static_cast<size_t>(i)],
                all[static_cast<size_t>(i + static_cast<int64_t>(u * u * static_cast<double>(rows - i)))]);
    }
    list.assign(all.begin(), all.begin() + size);
    std::iota(all.begin(), all.end(), NodeId{0});
  }
  return lists;
}

struct Table {
  Table(int64_t rows, int64_t width, int64_t batches, int64_t size)
      : layout{4096, width, rows, 4096},
        file(5, layout),
        opened(std::make_shared<RowFile>(file.path(), layout)),
        lists(draw_lists(9, rows, batches, size)) {}

  std::unique_ptr<BatchSequence> sequence() {
    return listed_batches(static_cast<int64_t>(lists.size()),
                          [this](int64_t i, std::vector<NodeId>& rows) { rows = lists[static_cast<size_t>(i)]; });
  }
  std::unique_ptr<DiskRows> rows(int64_t budget, const Queues& make = make_read_queue, const PackOptions& pack = {}) {
    const auto size = static_cast<int64_t>(lists.front().size());
    return std::make_unique<DiskRows>(opened, sequence(), divide_budget(budget, layout.row_bytes, size), pack, make);
  }
  // Looks up a batch and compares it with the file.
  void look_up(DiskRows& source, BatchTurn turn) {
    const auto& ids = lists[static_cast<size_t>(turn.index)];
    std::vector<char> got(ids.size() * static_cast<size_t>(layout.row_bytes));
    source.wait(turn);
    ASSERT_TRUE(source.ready(turn));
    const auto half = static_cast<int64_t>(ids.size() / 2);
    const std::span<const NodeId> all(ids);
    source.look_up(turn, 0, all.first(ids.size() / 2), got.data(), layout.row_bytes);
    source.look_up(turn, half, all.subspan(ids.size() / 2), got.data() + half * layout.row_bytes, layout.row_bytes);
    source.release(turn);
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(std::memcmp(got.data() + i * static_cast<size_t>(layout.row_bytes), file.row(ids[i]),
                            static_cast<size_t>(layout.row_bytes)),
                0);
    }
  }

  RowLayout layout;
  FileOfRows file;
  std::shared_ptr<const RowFile> opened;
  std::vector<std::vector<NodeId>> lists;
};

class DiskRowsByQueue : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!make_queue(GetParam(), 4)) GTEST_SKIP() << "io_uring is not available";
  }
};

TEST_P(DiskRowsByQueue, EveryBatchFindsItsRows) {
  for (const int64_t width : {100, 4096, 6000}) {
    Table table(2000, width, 12, 150);
    for (const int64_t budget : {least_budget(width, 150), 600 * width + (1 << 20), 100 * width}) {
      const auto source = table.rows(budget, queues(GetParam()));
      source->begin({3, 4}, true);
      for (int64_t i = 4; i < 12; ++i) table.look_up(*source, {3, i});
      source->go_on(true);
      for (int64_t i = 0; i < 12; ++i) table.look_up(*source, {4, i});
      source->go_on(false);
      for (int64_t i = 0; i < 12; ++i) table.look_up(*source, {5, i});
      const DiskCounters counts = source->counters();
      EXPECT_EQ(counts.batches, 32);
      EXPECT_EQ(counts.from_memory + counts.from_disk, 32 * 150);
      EXPECT_EQ(counts.not_seated > 0, budget < least_budget(width, 150));
      // Begins in the middle of another epoch while batches of this one are under way.
      source->begin({0, 5}, false);
      table.look_up(*source, {0, 5});
      source->begin({7, 8}, false);
      for (int64_t i = 8; i < 12; ++i) table.look_up(*source, {7, i});
    }
  }
}

TEST_P(DiskRowsByQueue, AFailedReadIsTold) {
  for (const int64_t nth : {0, 3, 200}) {
    Table table(2000, 4096, 30, 100);
    const auto source = table.rows(400 * 4096, [&](int depth) {
      return std::make_unique<FaultyQueue>(make_queue(GetParam(), depth), [nth](int64_t number, ReadResult& result) {
        if (number == nth) result.error = EIO;
      });
    });
    std::atomic<int> told{0};
    source->listen([&] { ++told; });
    source->begin({0, 0}, false);
    std::string message;
    try {
      for (int64_t i = 0; i < 30; ++i) table.look_up(*source, {0, i});
    } catch (const ReadFailure& failure) {
      message = failure.what();
    }
    EXPECT_NE(message.find("features cannot be read: Input/output error"), std::string::npos) << message;
    for (int i = 0; i < 1000 && told == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(told.load(), 0);
    source->listen({});
  }
}

INSTANTIATE_TEST_SUITE_P(Queue, DiskRowsByQueue, testing::Values("io_uring", "threads"));

TEST(DiskRows, AFileThatChangesIsNoticed) {
  for (const bool shorter : {false, true}) {
    Table table(3000, 4096, 60, 100);
    const auto source = table.rows(300 * 4096);
    source->begin({0, 0}, false);
    table.look_up(*source, {0, 0});
    if (shorter) {
      std::filesystem::resize_file(table.file.path(), 64 * 4096);
    } else {
      // Waits until the clock of the file system has ticked, so that the time of the change
      // differs.
      std::this_thread::sleep_for(std::chrono::milliseconds(12));
      std::fstream(table.file.path(), std::ios::in | std::ios::out | std::ios::binary).write("changed", 7);
    }
    std::string message;
    try {
      for (int64_t i = 1; i < 60; ++i) table.look_up(*source, {0, i});
    } catch (const ReadFailure& failure) {
      message = failure.what();
    }
    EXPECT_NE(message.find(shorter ? "was cut short" : "was changed"), std::string::npos) << message;
  }
}

// If reading takes less time than computing, only the first batch waits; otherwise the disk is
// always busy.
TEST(DiskRows, BatchesWaitLittleLongerThanWithPerfectPrefetch) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kBatches = 16, kRows = 100, kWidth = 4096;
  constexpr double kRate = kRows * kWidth / 0.024;  // a batch whose rows are all read takes 24 ms
  for (const double step : {0.04, 0.004}) {
    double best = 1e9;
    for (int attempt = 0; attempt < 4 && best > 1.15; ++attempt) {
      Table table(20000, kWidth, kBatches, kRows);
      TierSizes sizes = divide_budget(600 * kWidth, kWidth, kRows);
      sizes.depth = 64;  // many reads are under way, so that a thread that wakes up late does not
                         // leave the disk idle
      const auto source =
          std::make_unique<DiskRows>(table.opened, table.sequence(), sizes, PackOptions(),
                                     [&](int depth) { return std::make_unique<SlowQueue>(table.file, depth, kRate); });
      const auto start = Clock::now();
      source->begin({0, 0}, false);
      double read_by = 0, end = 0;  // times of perfect prefetch
      for (int64_t i = 0; i < kBatches; ++i) {
        table.look_up(*source, {0, i});
        std::this_thread::sleep_for(std::chrono::duration<double>(step));
      }
      const double taken = std::chrono::duration<double>(Clock::now() - start).count();
      const int64_t bytes = source->counters().read.bytes;
      for (int64_t i = 0; i < kBatches; ++i) {
        read_by += static_cast<double>(bytes) / kRate / kBatches;
        end = std::max(end, read_by) + step;
      }
      best = std::min(best, taken / end);
    }
    EXPECT_LE(best, 1.15) << "steps of " << step << " s";
  }
}

// The loader's batches have the same rows as with all features in memory, with every option of the
// loader.
TEST(DiskRows, TheLoaderFindsItsRows) {
  int graphs = 0;
  for (const auto& g : random_graphs(3, 150)) {
    if (g.graph.num_nodes() < 50 || ++graphs > 2) continue;
    const int64_t vertices = g.graph.num_nodes();
    const RowLayout layout{4096, 400, vertices, 4096};
    const FileOfRows file(1, layout);
    const auto opened = std::make_shared<RowFile>(file.path(), layout);
    SampleOptions options;
    options.fanout = {3, 2};
    const Sampler sampler(g.graph, options);
    std::vector<NodeId> ids(static_cast<size_t>(vertices));
    std::iota(ids.begin(), ids.end(), NodeId{0});
    const BatchOrder order(ids, 11, 4, true);
    for (const int in_flight : {0, 3}) {
      for (const bool subtasks : {true, false}) {
        DiskRows source(opened, sampled_batches(sampler, sampler.make_batch_sampler(), order),
                        divide_budget(100 << 10, layout.row_bytes, 50));
        const auto sink = make_host_sink();
        LoaderOptions how;
        how.in_flight = in_flight;
        how.subtasks = subtasks;
        LoaderFeatures features = Tensor(DType::f32, {vertices, 100});
        features.source = &source;
        BatchLoader loader(sampler, order, features, *sink, how);
        for (uint64_t epoch = 0; epoch < 3; ++epoch) {
          const int64_t first = epoch == 0 ? 1 : 0;
          loader.begin_epoch(epoch, first, epoch < 2);
          for (int64_t i = first; i < loader.num_batches(); ++i) {
            const Batch batch = loader.next();
            for (int64_t v = 0; v < batch.sample.vertices.size(); ++v) {
              ASSERT_EQ(std::memcmp(static_cast<const char*>(batch.features) + v * layout.row_bytes,
                                    file.row(batch.sample.vertices[v]), static_cast<size_t>(layout.row_bytes)),
                        0);
            }
          }
        }
        loader.begin_epoch(9, 0, 1);
        loader.next();
        loader.begin_epoch(4, 2, 1);  // the batches that were announced before are dropped
        loader.next();
      }
    }
  }
}

// Reading packed rows reads hardly any bytes besides these rows.
TEST(DiskRows, PackedBatchesFindTheirRows) {
  for (const int64_t width : {100, 600, 5000}) {
    for (const Packing how : {Packing::on, Packing::automatic}) {
      Table table(4000, width, 20, 200);
      const auto source = table.rows(600 * width + (1 << 20), make_read_queue, {how, ".", 1 << 18});
      source->begin({0, 3}, true);
      for (int64_t i = 3; i < 20; ++i) table.look_up(*source, {0, i});
      source->go_on(false);
      for (int64_t i = 0; i < 20; ++i) table.look_up(*source, {1, i});
      const DiskCounters counts = source->counters();
      EXPECT_EQ(counts.from_memory + counts.from_disk, 37 * 200);
      if (how == Packing::automatic) continue;
      EXPECT_GT(counts.packed, 0);
      EXPECT_GE(counts.written, counts.packed * width);
      const int64_t in_place = counts.from_disk - counts.packed;
      EXPECT_LE(counts.read.bytes, counts.packed * width + 37 * 8192 + in_place * (width + 8192));
    }
  }
}

TEST(DiskRows, WithoutRoomForPacksRowsAreReadWhereTheyLie) {
  Table table(2000, 400, 6, 100);
  const auto source = table.rows(1 << 20, make_read_queue, {Packing::on, "/nonexistent", 1 << 18});
  source->begin({0, 0}, false);
  for (int64_t i = 0; i < 6; ++i) table.look_up(*source, {0, i});
  EXPECT_EQ(source->counters().packed, 0);
}

TEST(PackCost, PackingPaysIfRowsAreShortAndReadOften) {
  const RowLayout layout{0, 400, 1000000, 4096};
  const DiskRates rates{400e6, 2e9, 1e9};
  // Every row is on a page of its own, and every page is read for 20 batches.
  const GroupReads often{2000000, 2000000, 97000};
  EXPECT_LT(seconds_packed(often, layout, rates), seconds_in_place(often, layout, rates) / 4);
  // Every page is read once.
  const GroupReads once{20000, 20000, 20000};
  EXPECT_GT(seconds_packed(once, layout, rates), seconds_in_place(once, layout, rates));
  EXPECT_GT(seconds_packed(often, layout, {400e6, 2e9, 0}), 1e300);
}

TEST(DiskRows, ABudgetIsDividedSoThatItIsKept) {
  for (const int64_t width : {16, 400, 4096, 65536}) {
    for (const int64_t budget : {int64_t{1} << 20, int64_t{20} << 20, int64_t{4} << 30}) {
      const TierSizes sizes = divide_budget(budget, width, 1000);
      EXPECT_LE(sizes.bytes(width), budget);
      EXPECT_GE(sizes.bytes(width), budget * 8 / 10) << width << " " << budget;
    }
    const int64_t least = least_budget(width, 1000);
    EXPECT_GE(divide_budget(least, width, 1000).seats, 1000);
  }
}

}  // namespace
}  // namespace nacre::test
