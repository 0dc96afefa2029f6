#include "nacre/schedule/batch_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <thread>

#include "loader_bench.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"
#include "nacre/schedule/row_copy.h"
#include "nacre/tensor/narrow_floats.h"

namespace nacre::test {
namespace {

std::vector<LoaderOptions> all_options(std::initializer_list<int> in_flight) {
  std::vector<LoaderOptions> list;
  for (const int n : in_flight) {
    for (int bits = 0; bits < (n == 0 ? 1 : 8); ++bits)
      list.push_back({n, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
  }
  return list;
}

class Loader : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override { set_num_threads(2); }
};

TEST_P(Loader, BatchesAreThoseOfTheSerialOrder) {
  for (const LoaderOptions& options : all_options({0, 1, 3})) {
    SCOPED_TRACE(text(options));
    Bench bench(options);
    ASSERT_GT(bench.loader.num_batches(), 4);
    bench.check_epoch(0);
    bench.check_epoch(7);
    if (HasFatalFailure()) return;
    EXPECT_LE(bench.sink.slots_used, options.in_flight + 1);
    EXPECT_LE(bench.sink.most_at_once, std::max(1, options.in_flight + 1));
  }
}

TEST_P(Loader, MoreInFlightThanThereAreBatches) {
  Bench bench({.in_flight = 40});
  bench.check_epoch(1);
  bench.check_epoch(2, bench.loader.num_batches() - 1);
  bench.check_epoch(3, bench.loader.num_batches());
}

// Epochs follow each other, and batches in flight cross their borders.
TEST_P(Loader, GoesOnIntoTheNextEpoch) {
  for (const LoaderOptions& options : few_options()) {
    SCOPED_TRACE(text(options));
    Bench bench(options);
    bench.check_epoch(4, 2, 1);
    bench.check_epoch(5, 0, 1);
    bench.check_epoch(6, 0, 1);
    bench.check_epoch(7);
    bench.check_epoch(8);
    if (HasFatalFailure()) return;
    EXPECT_LE(bench.sink.slots_used, options.in_flight + 1);
    EXPECT_LE(bench.sink.most_at_once, options.in_flight + 1);
    EXPECT_ANY_THROW(bench.next());
  }
}

TEST_P(Loader, AnotherEpochThanTheOneAhead) {
  for (const LoaderOptions& options : few_options()) {
    SCOPED_TRACE(text(options));
    Bench bench(options);
    bench.check_epoch(4, 0, 1);
    bench.check_epoch(4, 0, 1);  // loads the same epoch again
    bench.check_epoch(5, 3, 1);  // begins with batch 3
    bench.check_epoch(9, 0, 1);
    bench.check_epoch(8, 0, 1);
    for (const int64_t taken : {1, 7}) {  // the epoch is left after this many batches
      bench.loader.begin_epoch(9, 0, 1);
      for (int64_t b = 0; b < std::min(taken, bench.loader.num_batches() - 1); ++b) bench.check(bench.next(), 9, b);
      bench.check_epoch(10, 0, 1);
    }
    if (HasFatalFailure()) return;
    bench.sink.over();
    bench.loader.begin_epoch(11, 0, 1);  // this epoch is prepared and never asked for
  }
}

// The computation of a batch need not have ended when the next epoch begins.
TEST_P(Loader, TheLastBatchTakenStaysWhenAnotherEpochBegins) {
  for (const LoaderOptions& options : few_options()) {
    SCOPED_TRACE(text(options));
    std::atomic<int64_t> prepared{0};
    Bench bench(options, neighbours(), [&](const Sample&, const SampleKey&) {
      ++prepared;
      return nullptr;
    });
    for (const int64_t taken : {1, 2, 3, 4}) {
      bench.sink.over();
      bench.loader.begin_epoch(3);
      for (int64_t b = 0; b + 1 < taken; ++b) bench.check(bench.next(), 3, b);
      const Batch last = bench.next();
      prepared = 0;
      bench.loader.begin_epoch(9, 1);
      const auto ahead = std::min<int64_t>(options.in_flight, bench.loader.num_batches() - 1);
      for (int i = 0; i < 5000 && GetParam() > 1 && prepared < ahead; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      bench.check(last, 3, taken - 1);
      bench.check(bench.next(), 9, 1);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Loader, TheNextEpochIsMadeReadyWhereOneFollows) {
  if (GetParam() == 1) return;
  for (const bool more : {false, true}) {
    std::atomic<int> prepared{0};
    Bench bench({.in_flight = 2}, neighbours(), [&](const Sample&, const SampleKey&) {
      ++prepared;
      return nullptr;
    });
    bench.check_epoch(1, 0, more);
    const auto want = static_cast<int>(bench.loader.num_batches()) + (more ? 2 : 0);
    for (int i = 0; i < 5000 && prepared < want; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(prepared, want);
    bench.check_epoch(2);
    EXPECT_EQ(prepared, 2 * bench.loader.num_batches());  // none of them was prepared twice
  }
}

TEST_P(Loader, ErrorsOfTheNextEpochWaitForTheirTurn) {
  for (const LoaderOptions& options : few_options()) {
    SCOPED_TRACE(text(options));
    Bench bench(options, neighbours(), [](const Sample& sample, const SampleKey&) -> std::shared_ptr<PreparedBatch> {
      BatchOrder seeds = Bench::order();
      seeds.begin_epoch(3);
      const auto wrong = seeds.batch(1);
      if (std::equal(wrong.begin(), wrong.end(), sample.vertices.data())) throw std::runtime_error("batch 1");
      return nullptr;
    });
    bench.check_epoch(2, 0, 1);
    bench.sink.over();
    bench.loader.begin_epoch(3, 0, 1);
    bench.check(bench.next(), 3, 0);
    EXPECT_THROW(bench.next(), std::runtime_error);
    bench.check(bench.next(), 3, 2);
    bench.check_epoch(2, 0, 1);
    bench.check_epoch(4);  // errors that nobody asked for are dropped
    if (HasFatalFailure()) return;
  }
}

TEST_P(Loader, SubgraphsOfTheSamplersThatDrawSeeds) {
  for (const std::string kind : {"saint-vertex", "saint-edge", "saint-walk", "layer"}) {
    SampleOptions options = neighbours();
    options.sampler = kind;
    if (kind != "layer") {
      options.fanout.clear();
      options.layers = 2;
      options.budget = 60;
      options.norm_samples = 4;
    }
    for (const LoaderOptions& how : all_options({0, 2})) {
      SCOPED_TRACE(kind + " " + text(how));
      Bench bench(how, options);
      bench.check_epoch(5);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Loader, AnEpochCanEndAnywhere) {
  for (const LoaderOptions& options : all_options({0, 3})) {
    SCOPED_TRACE(text(options));
    Bench bench(options);
    for (int64_t taken = 0; taken < 4; ++taken) {
      bench.loader.begin_epoch(static_cast<uint64_t>(taken));
      for (int64_t b = 0; b < taken; ++b) bench.check(bench.next(), static_cast<uint64_t>(taken), b);
      bench.sink.over();
    }
    bench.check_epoch(9, 2);
    bench.loader.begin_epoch(10);  // this epoch is never asked for
  }
}

TEST_P(Loader, SlowSinksHoldNothingUpButThemselves) {
  for (const bool stream : {false, true}) {
    Bench bench({.in_flight = 2, .stream = stream});
    bench.sink.delay = std::chrono::microseconds(500);
    bench.check_epoch(1);
    EXPECT_GE(bench.sink.sends, bench.loader.num_batches());
    if (!stream) {
      EXPECT_EQ(bench.sink.sends, bench.loader.num_batches());
    }
    EXPECT_GT(bench.loader.times().transfer, 0.0004 * static_cast<double>(bench.loader.num_batches()));
  }
}

TEST_P(Loader, WorkersPrepareWhatNobodyAskedForYet) {
  if (GetParam() == 1) return;
  std::atomic<int> prepared{0};
  Bench bench({.in_flight = 2}, neighbours(), [&](const Sample&, const SampleKey&) {
    ++prepared;
    return nullptr;
  });
  bench.loader.begin_epoch(1);
  for (int i = 0; i < 5000 && prepared < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(prepared, 2);  // no further batch was prepared
  bench.check(bench.next(), 1, 0);
}

// The hook of these tests makes the sum of the numbers of a sample's vertices.
struct Summed : PreparedBatch {
  explicit Summed(int64_t s) : sum(s) {}
  void run(const Batch&, int64_t, Finish) override {}
  int64_t sum;
};

TEST_P(Loader, TheHookSeesEverySampleOnce) {
  for (const LoaderOptions& options : all_options({0, 3})) {
    SCOPED_TRACE(text(options));
    std::mutex mutex;
    std::multiset<int64_t> seen;
    Bench bench(options, neighbours(), [&](const Sample& sample, const SampleKey&) -> std::shared_ptr<PreparedBatch> {
      int64_t sum = 0;
      // Loops inside the hook run on several threads.
      std::atomic<int64_t> parallel_sum{0};
      parallel_for(sample.vertices.size(), 16, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) parallel_sum += sample.vertices[i];
      });
      sum = parallel_sum;
      const std::lock_guard lock(mutex);
      seen.insert(sum);
      return std::make_shared<Summed>(sum);
    });
    bench.loader.begin_epoch(2);
    std::multiset<int64_t> got;
    for (int64_t b = 0; b < bench.loader.num_batches(); ++b) {
      const Batch batch = bench.next();
      const auto span = batch.sample.vertices.span();
      const int64_t sum = std::accumulate(span.begin(), span.end(), int64_t{0});
      ASSERT_NE(batch.prepared, nullptr);
      EXPECT_EQ(dynamic_cast<const Summed&>(*batch.prepared).sum, sum);
      got.insert(sum);
    }
    EXPECT_EQ(seen, got);
  }
}

TEST_P(Loader, ErrorsReachTheCallerInOrder) {
  for (const LoaderOptions& options : all_options({0, 3})) {
    SCOPED_TRACE(text(options));
    Bench bench(options, neighbours(), [](const Sample& sample, const SampleKey&) -> std::shared_ptr<PreparedBatch> {
      // The hook fails for every batch of the first epoch but its first one. It recognises them by
      // their seeds.
      BatchOrder seeds = Bench::order();
      seeds.begin_epoch(0);
      for (int64_t b = 1; b < seeds.num_batches(); ++b) {
        if (sample.vertices[0] == seeds.batch(b)[0]) throw std::runtime_error("batch " + std::to_string(b));
      }
      return nullptr;
    });
    bench.loader.begin_epoch(0);
    bench.check(bench.next(), 0, 0);
    for (const char* want : {"batch 1", "batch 2"}) {
      try {
        bench.next();
        ADD_FAILURE() << "no error";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), want);
      }
    }
  }
}

TEST_P(Loader, AfterAnErrorAnEpochCanBeginAgain) {
  for (const LoaderOptions& options : all_options({0, 2})) {
    SCOPED_TRACE(text(options));
    Bench bench(options);
    bench.sink.fail_send_after = 1;
    bench.loader.begin_epoch(4);
    EXPECT_THROW(
        {
          for (int64_t b = 0; b < bench.loader.num_batches(); ++b) bench.next();
        },
        std::runtime_error);
    bench.sink.over();
    bench.check_epoch(4);
  }
}

TEST_P(Loader, NothingToLoad) {
  const Sampler sampler(graph(), neighbours());
  for (const LoaderOptions& options : all_options({0, 2})) {
    SCOPED_TRACE(text(options));
    const auto sink = make_host_sink();
    BatchLoader empty(sampler, BatchOrder({}, 8, 1, false), Bench::features(), *sink, options);
    empty.begin_epoch(0);
    EXPECT_EQ(empty.num_batches(), 0);
    EXPECT_ANY_THROW(empty.next());
    // Without features, batches are samples alone.
    BatchLoader bare(sampler, Bench::order(), Tensor(DType::f32, {graph().num_nodes(), 0}), *sink, options);
    bare.begin_epoch(0);
    for (int64_t b = 0; b < bare.num_batches(); ++b) EXPECT_EQ(bare.next().index, b);
    EXPECT_ANY_THROW(bare.next());
  }
}

TEST_P(Loader, AwkwardGraphs) {
  for (const auto& [name, g] : random_graphs(21, 30)) {
    SCOPED_TRACE(name);
    SampleOptions sampling = neighbours();
    sampling.fanout = {-1, 2};
    const Sampler sampler(g, sampling);
    const Tensor x = features_of(g.num_nodes(), 3);
    const auto sink = make_host_sink();
    BatchLoader loader(sampler, BatchOrder(all_ids(g), 4, 1, true), x, *sink, {});
    BatchOrder seeds(all_ids(g), 4, 1, true);
    loader.begin_epoch(3);
    seeds.begin_epoch(3);
    for (int64_t b = 0; b < loader.num_batches(); ++b) {
      const Batch batch = loader.next();
      expect_equal(batch.sample, sampler.sample(seeds.batch(b), {3, static_cast<uint64_t>(b)}));
      for (int64_t i = 0; i < batch.sample.vertices.size(); ++i) {
        const float* row = x.data<float>() + static_cast<int64_t>(batch.sample.vertices[i]) * 3;
        ASSERT_TRUE(std::equal(row, row + 3, static_cast<const float*>(batch.features) + i * 3));
      }
    }
  }
}

// Rows of 16-bit floats are sent as they are or as f32, with gaps between them, and only those that
// are wanted.
TEST_P(Loader, SomeRowsOfNarrowFeatures) {
  constexpr int64_t width = 37;
  const int64_t nodes = graph().num_nodes();
  Tensor table(DType::bf16, {nodes, width});
  auto* bits = static_cast<uint16_t*>(table.raw());
  for (int64_t i = 0; i < table.size(); ++i) bits[i] = static_cast<uint16_t>(i * 7 % 0x7f00);
  auto some = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(nodes), uint8_t{2});
  for (size_t v = 0; v < some->size(); v += 3) (*some)[v] = LoaderFeatures::kWanted;
  const auto none = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(nodes), uint8_t{0});
  for (const LoaderOptions& options : few_options()) {
    for (const bool as_stored : {false, true}) {
      for (const auto& wanted : {std::shared_ptr<const std::vector<uint8_t>>(), {some}, {none}}) {
        SCOPED_TRACE(text(options) + (as_stored ? ", as stored" : ", widened"));
        LoaderFeatures features = table;
        features.as_stored = as_stored;
        features.stride = as_stored ? 80 : 160;
        features.wanted = wanted;
        EXPECT_EQ(features.sent_bytes(), features.stride);
        CheckedSink sink;
        const Sampler sampler(graph(), neighbours());
        BatchLoader loader(sampler, Bench::order(), features, sink, options);
        loader.begin_epoch(1);
        for (int64_t b = 0; b < loader.num_batches(); ++b) {
          sink.over();
          const Batch batch = loader.next();
          const auto* sent = static_cast<const char*>(batch.features);
          for (const NodeId v : batch.sample.vertices) {
            if (wanted && (*wanted)[v] != LoaderFeatures::kWanted) continue;
            const uint16_t* row = bits + static_cast<int64_t>(v) * width;
            std::vector<float> as_f32(width);
            widen(DType::bf16, row, as_f32.data(), width);
            const void* want = as_stored ? static_cast<const void*>(row) : as_f32.data();
            ASSERT_EQ(std::memcmp(sent, want, width * (as_stored ? 2 : 4)), 0);
            sent += features.stride;
          }
        }
      }
    }
  }
}

TEST_P(Loader, ComputationGoesOnBesideIt) {
  Bench bench({.in_flight = 3});
  bench.loader.begin_epoch(0);
  std::vector<int64_t> sums(64);
  for (int64_t b = 0; b < bench.loader.num_batches(); ++b) {
    const Batch batch = bench.next();
    for (int round = 0; round < 20; ++round) {
      parallel_tasks(64, [&](int64_t i) {
        ASSERT_LT(thread_index(), num_threads());
        for (int64_t v = i; v < batch.sample.vertices.size(); v += 64) sums[static_cast<size_t>(i)] += v;
      });
    }
    bench.check(batch, 0, b);
  }
}

TEST_P(Loader, TimesAreKept) {
  for (const LoaderOptions& options : all_options({0, 3})) {
    SCOPED_TRACE(text(options));
    Bench bench(options, neighbours(), [](const Sample&, const SampleKey&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return nullptr;
    });
    bench.check_epoch(0);
    const LoaderTimes t = bench.loader.times();
    for (const double seconds : {t.sample_pick, t.sample_insert, t.reindex, t.lookup, t.waited}) EXPECT_GT(seconds, 0);
    EXPECT_GT(t.prepare, 0.001 * static_cast<double>(bench.loader.num_batches()));
  }
}

TEST(RowCopy, AnyLengthAndAlignment) {
  std::vector<char> from(700);
  std::iota(from.begin(), from.end(), '\1');
  for (const size_t bytes : {0U, 1U, 63U, 64U, 65U, 127U, 128U, 600U}) {
    for (const size_t offset : {0U, 4U, 16U, 60U, 63U}) {
      std::vector<char> to(800, '\0');
      copy_past_caches(to.data() + offset, from.data() + 3, bytes);
      finish_copies();
      EXPECT_TRUE(std::equal(from.begin() + 3, from.begin() + 3 + static_cast<int64_t>(bytes), to.data() + offset));
      EXPECT_EQ(std::count(to.data() + offset + bytes, to.data() + to.size(), '\0'),
                static_cast<int64_t>(to.size() - offset - bytes));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Loader, testing::Values(1, 2, 4));

}  // namespace
}  // namespace nacre::test
