// Tests batches that are sampled in groups, and batches whose features are kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "loader_bench.h"
#include "nacre/base/parallel.h"

namespace nacre::test {
namespace {

class LoaderGroups : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(2); }
};

// A sampler that counts the samples it has finished, those of all threads together.
class CountingSampler : public BatchSampler {
 public:
  CountingSampler(std::unique_ptr<BatchSampler> inner, std::atomic<int64_t>& count, int milliseconds = 0)
      : inner_(std::move(inner)), count_(count), delay_(milliseconds) {}
  int hops() const override { return inner_->hops(); }
  void begin(std::span<const NodeId> seeds, const SampleKey& key) override { inner_->begin(seeds, key); }
  void pick(int hop) override { inner_->pick(hop); }
  void insert(int hop) override { inner_->insert(hop); }
  std::span<const NodeId> vertices() const override { return inner_->vertices(); }
  void reindex(int hop) override { inner_->reindex(hop); }
  Sample finish() override {
    ++count_;
    std::this_thread::sleep_for(delay_);
    return inner_->finish();
  }

 private:
  std::unique_ptr<BatchSampler> inner_;
  std::atomic<int64_t>& count_;
  std::chrono::milliseconds delay_;
};

// Batches are the same as without groups. A group is drawn when the batch after the group before it
// is asked for, and goes on into epochs that follow.
TEST_P(LoaderGroups, GroupsAreSampledInTurn) {
  for (LoaderOptions options : few_options()) {
    for (const int64_t group : {1, 3, 11, 1000}) {
      options.group = group;
      SCOPED_TRACE(text(options) + " group " + std::to_string(group));
      const Sampler plain(graph(), neighbours());
      Sampler sampler(graph(), neighbours());
      std::atomic<int64_t> drawn{0};
      sampler.draw_with([&] { return std::make_unique<CountingSampler>(plain.make_batch_sampler(), drawn); });
      Bench bench({.in_flight = 0});
      BatchLoader loader(sampler, Bench::order(), Bench::features(), bench.sink, options);
      const int64_t batches = loader.num_batches();
      int64_t taken = 0;
      for (const uint64_t epoch : {4, 5, 6}) {
        bench.sink.over();
        loader.begin_epoch(epoch, 0, 6 - static_cast<int64_t>(epoch));
        for (int64_t b = 0; b < batches; ++b) {
          bench.sink.over();
          bench.check(loader.next(), epoch, b);
          if (HasFatalFailure()) return;
          ++taken;
          const int64_t whole = (taken + group - 1) / group * group;
          ASSERT_EQ(drawn, std::min(whole, 3 * batches)) << "after batch " << b << " of epoch " << epoch;
        }
      }
    }
  }
}

// A slow device and the host beside it draw all batches together, each of them once.
TEST_P(LoaderGroups, TwoWaysToDrawShareAGroup) {
  const Sampler plain(graph(), neighbours());
  Sampler sampler(graph(), neighbours());
  std::atomic<int64_t> drawn{0};
  sampler.draw_with([&] { return std::make_unique<CountingSampler>(plain.make_batch_sampler(), drawn, 20); }, true);
  EXPECT_NE(sampler.make_second_sampler(), nullptr);
  EXPECT_EQ(plain.make_second_sampler(), nullptr);
  Bench bench({.in_flight = 0});
  BatchLoader loader(sampler, Bench::order(), Bench::features(), bench.sink, {.in_flight = 2, .group = 100});
  const int64_t batches = loader.num_batches();
  for (const uint64_t epoch : {0, 1, 2}) {
    bench.sink.over();
    loader.begin_epoch(epoch, 0, 2 - static_cast<int64_t>(epoch));
    for (int64_t b = 0; b < batches; ++b) {
      bench.sink.over();
      bench.check(loader.next(), epoch, b);
      if (HasFatalFailure()) return;
    }
  }
  // With one thread, the first of the two samplers draws all batches.
  EXPECT_LE(drawn, 3 * batches);
  EXPECT_EQ(drawn == 3 * batches, GetParam() == 1);
}

// Once it is known how long the samplers take, one that is much slower than the others draws
// nothing, whichever that is.
TEST_P(LoaderGroups, SamplersThatWouldEndLastDrawNothing) {
  if (GetParam() == 1) GTEST_SKIP() << "with one thread, there is one sampler";
  for (const bool slow_device : {false, true}) {
    SCOPED_TRACE(slow_device);
    const Sampler plain(graph(), neighbours());
    Sampler sampler(graph(), neighbours());
    std::atomic<int64_t> drawn{0};
    const int milliseconds = slow_device ? 200 : 0;
    sampler.draw_with(
        [&] { return std::make_unique<CountingSampler>(plain.make_batch_sampler(), drawn, milliseconds); }, true);
    Bench bench({.in_flight = 0});
    BatchLoader loader(sampler, Bench::order(), Bench::features(), bench.sink, {.in_flight = 2, .group = 100});
    const int64_t batches = loader.num_batches();
    constexpr uint64_t kEpochs = 6;
    for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      bench.sink.over();
      loader.begin_epoch(epoch, 0, static_cast<int64_t>(kEpochs - 1 - epoch));
      for (int64_t b = 0; b < batches; ++b) {
        bench.sink.over();
        loader.next();
      }
    }
    const LoaderTimes times = loader.times();
    EXPECT_EQ(times.drawn, drawn);
    EXPECT_EQ(times.drawn + times.drawn_second, static_cast<int64_t>(kEpochs) * batches);
    // Before its first sample is finished, a sampler may take further batches only in that epoch.
    if (slow_device) {
      EXPECT_LE(times.drawn, batches);
    } else {
      EXPECT_GT(times.drawn, 0);
    }
  }
}

// LoaderOptions::second says who draws each batch. Samples do not depend on it.
TEST_P(LoaderGroups, EachBatchIsDrawnByTheSamplerItAsksFor) {
  for (LoaderOptions options : few_options()) {
    SCOPED_TRACE(text(options));
    options.second = [](int64_t batch) { return batch % 3 == 1; };
    const Sampler plain(graph(), neighbours());
    Sampler sampler(graph(), neighbours());
    std::atomic<int64_t> drawn{0};
    sampler.draw_with([&] { return std::make_unique<CountingSampler>(plain.make_batch_sampler(), drawn); }, true);
    Bench bench({.in_flight = 0});
    BatchLoader loader(sampler, Bench::order(), Bench::features(), bench.sink, options);
    const int64_t batches = loader.num_batches();
    int64_t second = 0;
    for (const uint64_t epoch : {0, 1}) {
      bench.sink.over();
      loader.begin_epoch(epoch, 0, 1 - static_cast<int64_t>(epoch));
      for (int64_t b = 0; b < batches; ++b) {
        second += b % 3 == 1 ? 1 : 0;
        bench.sink.over();
        bench.check(loader.next(), epoch, b);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_EQ(drawn, 2 * batches - second);
    EXPECT_EQ(loader.times().drawn, drawn);
    EXPECT_EQ(loader.times().drawn_second, second);
  }
}

TEST_P(LoaderGroups, GroupsThatNobodyTakesAreDropped) {
  for (LoaderOptions options : few_options()) {
    options.group = 5;
    SCOPED_TRACE(text(options));
    Bench bench(options);
    bench.check_epoch(2, 0, 1);
    bench.check_epoch(7, 3, 0);
    bench.check_epoch(8, 0, 0);
    bench.sink.over();
    bench.loader.begin_epoch(9, 0, 2);
    for (int64_t b = 0; b < 2; ++b) bench.check(bench.next(), 9, b);
    bench.check_epoch(9, 1, 0);
    if (HasFatalFailure()) return;
  }
}

// Batches that compute beside the one that was taken last keep their features.
TEST_P(LoaderGroups, KeptBatchesStayUntilOthersTakeTheirPlaces) {
  for (const int kept : {1, 3}) {
    for (LoaderOptions options : few_options()) {
      options.kept = kept;
      SCOPED_TRACE(text(options) + " kept " + std::to_string(kept));
      Bench bench({.in_flight = 0});
      const auto sink = make_host_sink();
      BatchLoader loader(bench.sampler, Bench::order(), Bench::features(), *sink, options);
      std::vector<std::pair<uint64_t, Batch>> last;
      for (const uint64_t epoch : {4, 5, 9}) {
        loader.begin_epoch(epoch, 0, epoch == 4 ? 1 : 0);
        for (int64_t b = 0; b < loader.num_batches(); ++b) {
          last.emplace_back(epoch, loader.next());
          if (last.size() > static_cast<size_t>(kept) + 1) last.erase(last.begin());
          for (const auto& [of, batch] : last) bench.check(batch, of, batch.index);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, LoaderGroups, testing::Values(1, 2, 4));

}  // namespace
}  // namespace nacre::test
