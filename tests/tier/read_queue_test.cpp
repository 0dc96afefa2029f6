#include "nacre/tier/read_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "nacre/tier/row_reader.h"
#include "row_files.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

class EveryQueue : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    queue_ = make_queue(GetParam(), 8);
    if (!queue_) GTEST_SKIP() << "io_uring is not available";
  }
  std::unique_ptr<ReadQueue> queue_;
};

TEST_P(EveryQueue, ReadsWhatIsInTheFile) {
  const FileOfRows file(100, {0, 4096, 64, 4096});
  const RowFile rows(file.path(), file.layout());
  const auto memory = page_memory(8 * 4096);
  std::vector<FileRead> reads;
  for (uint64_t i = 0; i < 8; ++i)
    reads.push_back({rows.descriptor(), static_cast<int64_t>(i * 5) * 4096, 4096, memory.get() + i * 4096, i});
  queue_->submit(reads);
  std::vector<ReadResult> results(3);
  uint64_t seen = 0;
  for (size_t done = 0; done < 8;) {
    const size_t count = queue_->collect(results);
    ASSERT_GE(count, 1U);
    for (size_t k = 0; k < count; ++k) {
      EXPECT_EQ(results[k].bytes, 4096);
      EXPECT_EQ(results[k].error, 0);
      seen |= uint64_t{1} << results[k].tag;
    }
    done += count;
  }
  EXPECT_EQ(seen, 0xFFU);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(std::memcmp(memory.get() + i * 4096, file.row(i * 5), 4096), 0);
}

TEST_P(EveryQueue, TellsErrorsAndTheEndOfAFile) {
  const FileOfRows file(100, {0, 4096, 4, 4096});
  const RowFile rows(file.path(), file.layout());
  const auto memory = page_memory(2 * 8192);
  const int written_only = open(file.path().c_str(), O_WRONLY);
  queue_->submit(std::vector<FileRead>{{rows.descriptor(), 3 * 4096, 8192, memory.get(), 0},
                                       {written_only, 0, 4096, memory.get() + 8192, 1}});
  std::vector<ReadResult> results(2);
  for (size_t done = 0; done < 2;) {
    const size_t count = queue_->collect(results);
    for (size_t k = 0; k < count; ++k) {
      EXPECT_EQ(results[k].bytes, results[k].tag == 0 ? 4096 : 0);
      EXPECT_EQ(results[k].error, results[k].tag == 0 ? 0 : EBADF);
    }
    done += count;
  }
  close(written_only);
}

TEST_P(EveryQueue, RowsOfAnyWidthComeToTheirSeats) {
  for (const int64_t width : {4, 100, 1000, 4096, 5000, 70000}) {
    for (const int64_t offset : {0, 4096, 4096 + 52}) {
      const RowLayout layout{offset, width, 300, 4096};
      const FileOfRows file(3, layout);
      const RowFile rows(file.path(), layout);
      Rng rng(static_cast<uint64_t>(width + offset));
      const Seats seats{page_memory(300 * width), width};
      RowReader reader(make_queue(GetParam(), 8), seats);
      std::vector<std::pair<int64_t, int32_t>> want;
      int32_t seat = 0;
      for (int64_t list = 0; list < 3; ++list) {
        std::vector<RowFetch> fetches;
        for (int64_t row = static_cast<int64_t>(rng.below(20)); row < 300;
             row += 1 + static_cast<int64_t>(rng.below(9))) {
          fetches.push_back({static_cast<NodeId>(row), seat});
          want.emplace_back(row, seat++);
        }
        reader.add(list, rows, layout, fetches);
      }
      std::vector<int64_t> done;
      while (reader.busy()) reader.work(done);
      EXPECT_EQ(done, (std::vector<int64_t>{0, 1, 2}));
      for (const auto& [row, place] : want)
        ASSERT_EQ(std::memcmp(seats.at(place), file.row(row), static_cast<size_t>(width)), 0) << width << " " << row;
      // No page is read twice for one list.
      EXPECT_LE(reader.counts().bytes, 3 * ((300 * width + 2 * 4096) / 4096 + 1) * 4096);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Queue, EveryQueue, testing::Values("io_uring", "threads"));

}  // namespace
}  // namespace nacre::test
