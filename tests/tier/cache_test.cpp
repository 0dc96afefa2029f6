// Tests the rows that a device caches with a look-ahead: the planner against Belady's rule and
// against the best rows that never change, and the batches that are drawn ahead by several threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "nacre/tier/cached_batches.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

using Batches = std::vector<std::vector<NodeId>>;

Batches draw_batches(Rng& rng, int64_t rows, int64_t batches) {
  Batches list(static_cast<size_t>(batches));
  for (auto& batch : list) {
    std::vector<NodeId> all(static_cast<size_t>(rows));
    std::iota(all.begin(), all.end(), NodeId{0});
    const auto size = static_cast<size_t>(rng.below(rows + 1));  // 0 and all rows, too
    for (size_t i = 0; i < size; ++i) {
      // The first rows are drawn more often.
      const double u = rng.uniform();
      const auto left = static_cast<double>(all.size() - i);
      std::swap(all[i], all[i + std::min(static_cast<size_t>(left * u * u), all.size() - i - 1)]);
    }
    batch.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
  }
  return list;
}

// Returns how many rows are read from further away if, after each batch, the rows with the nearest
// next use stay, of those that were there and those that the batch has read.
int64_t belady_misses(const Batches& batches, const std::vector<NodeId>& contents, size_t seats) {
  std::set<NodeId> held(contents.begin(), contents.end());
  int64_t misses = 0;
  for (size_t b = 0; b < batches.size(); ++b) {
    for (const NodeId row : batches[b]) misses += held.contains(row) ? 0 : 1;
    held.insert(batches[b].begin(), batches[b].end());
    const auto next_use = [&](NodeId row) {
      for (size_t later = b + 1; later < batches.size(); ++later) {
        if (std::find(batches[later].begin(), batches[later].end(), row) != batches[later].end()) return later;
      }
      return SIZE_MAX;
    };
    std::vector<std::pair<size_t, NodeId>> next;
    for (const NodeId row : held) next.emplace_back(next_use(row), row);
    std::sort(next.begin(), next.end());
    if (next.size() > seats) next.resize(seats);
    held.clear();
    for (const auto& [use, row] : next) held.insert(row);
  }
  return misses;
}

int64_t static_misses(const Batches& batches, const std::vector<NodeId>& held) {
  int64_t misses = 0;
  for (const auto& batch : batches) {
    for (const NodeId row : batch) misses += std::find(held.begin(), held.end(), row) == held.end() ? 1 : 0;
  }
  return misses;
}

// Returns the rows that most batches read.
std::vector<NodeId> best_rows(const Batches& batches, int64_t rows, size_t seats) {
  std::vector<int64_t> reads(static_cast<size_t>(rows), 0);
  for (const auto& batch : batches) {
    for (const NodeId row : batch) ++reads[row];
  }
  std::vector<NodeId> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), NodeId{0});
  std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return reads[a] > reads[b]; });
  order.resize(seats);
  return order;
}

// What the seats of a device hold. It does what plans say, and checks that every row is where they
// say.
class DeviceSeats {
 public:
  explicit DeviceSeats(const std::vector<NodeId>& contents) : rows_(contents) {}
  void follow(const CachePlan& plan, std::span<const NodeId> batch) {
    ASSERT_EQ(plan.seats.size(), batch.size());
    int64_t hits = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      const bool held = std::find(rows_.begin(), rows_.end(), batch[i]) != rows_.end();
      ASSERT_EQ(held, plan.seats[i] != kNoSeat) << "row " << batch[i];
      if (!held) continue;
      ++hits;
      ASSERT_EQ(rows_[static_cast<size_t>(plan.seats[i])], batch[i]);
    }
    ASSERT_EQ(hits, plan.hits);
    misses_ += plan.misses();
    std::set<int32_t> written;
    for (const RowKeep& keep : plan.keeps) {
      ASSERT_EQ(batch[keep.place], keep.row);
      ASSERT_EQ(plan.seats[keep.place], kNoSeat);
      ASSERT_TRUE(written.insert(keep.seat).second) << "seat " << keep.seat << " is written twice";
      rows_.at(static_cast<size_t>(keep.seat)) = keep.row;
    }
  }
  int64_t misses() const { return misses_; }

 private:
  std::vector<NodeId> rows_;
  int64_t misses_ = 0;
};

int64_t planned_misses(const Batches& batches, int64_t rows, const std::vector<NodeId>& contents, size_t ahead,
                       const RowClasses& classes) {
  CachePlanner planner(rows, static_cast<int64_t>(contents.size()), contents, 1, classes);
  DeviceSeats seats(contents);
  for (size_t b = 0, added = 0; b < batches.size(); ++b) {
    while (added < std::min(batches.size(), b + ahead)) planner.add(batches[added++]);
    seats.follow(planner.plan(), batches[b]);
  }
  return seats.misses();
}

RowClasses first_class(int64_t rows, const std::vector<NodeId>& members) {
  auto classes = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(rows), uint8_t{1});
  for (const NodeId row : members) (*classes)[row] = 0;
  return classes;
}

TEST(CachePlanner, MissesWhatBeladyMissesAndNoMoreThanTheBestRows) {
  int64_t saved = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const int64_t rows = 1 + rng.below(30);
    const auto seats = static_cast<size_t>(rng.below(rows + 1));
    const Batches batches = draw_batches(rng, rows, 1 + rng.below(25));
    const std::vector<NodeId> best = best_rows(batches, rows, seats);
    const int64_t misses = planned_misses(batches, rows, best, batches.size(), nullptr);
    EXPECT_EQ(misses, belady_misses(batches, best, seats));
    EXPECT_LE(misses, static_misses(batches, best));
    saved += static_misses(batches, best) - misses;
    // Whatever the seats hold at first, Belady's rule misses the fewest rows.
    std::vector<NodeId> any(static_cast<size_t>(rows));
    std::iota(any.begin(), any.end(), NodeId{0});
    for (size_t i = any.size(); i > 1; --i)
      std::swap(any[i - 1], any[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
    any.resize(seats);
    EXPECT_EQ(planned_misses(batches, rows, any, batches.size(), first_class(rows, best)),
              belady_misses(batches, any, seats));
  }
  EXPECT_GT(saved, 4000);
}

// With a short look-ahead, rows of the first class come back when no batch of the look-ahead needs
// their seats. So a row that is given up costs no more than what was gained for it.
TEST(CachePlanner, AShortLookAheadMissesNoMoreThanRowsThatStay) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Rng rng(seed);
    const int64_t rows = 1 + rng.below(30);
    const auto seats = static_cast<size_t>(rng.below(rows + 1));
    const Batches batches = draw_batches(rng, rows, 1 + rng.below(40));
    std::vector<NodeId> held = best_rows(batches, rows, static_cast<size_t>(rows));
    if (seed % 2 == 1) std::reverse(held.begin(), held.end());
    held.resize(seats);
    for (const size_t ahead : {1, 2, 3, 7}) {
      EXPECT_LE(planned_misses(batches, rows, held, ahead, first_class(rows, held)), static_misses(batches, held))
          << "seed " << seed << ", " << ahead << " ahead";
    }
  }
}

TEST(CachePlanner, FreeSeatsAreTaken) {
  CachePlanner planner(4, 3, std::vector<NodeId>{2}, 1);
  const std::vector<NodeId> first = {0, 1, 2, 3}, second = {1, 3};
  planner.add(first);
  planner.add(second);
  const CachePlan plan = planner.plan();
  EXPECT_EQ(plan.hits, 1);
  EXPECT_EQ(plan.seats, (std::vector<int32_t>{kNoSeat, kNoSeat, 0, kNoSeat}));
  EXPECT_EQ(plan.keeps.size(), 2U);
  EXPECT_EQ(planner.plan().hits, 2);
}

struct Drawn {
  Graph graph;
  std::vector<NodeId> train;
  std::unique_ptr<Sampler> sampler;
};

std::vector<SampleOptions> samplers_for(const Graph& graph) {
  std::vector<SampleOptions> list(3);
  list[0].fanout = {3, 2};
  list[1].sampler = "layer";
  list[1].fanout = {6, 6};
  list[2].sampler = "saint-vertex";
  list[2].budget = 5;
  list[2].layers = 2;
  for (SampleOptions& options : list) options.seed = 5;
  if (graph.num_edges() == 0) list.resize(1);
  return list;
}

// Takes the batches [begin, end) of the sequence with several threads, in their order, and queues
// each of them as soon as it is taken.
void load(CachedBatches& batches, const Sampler& sampler, const BatchOrder& order, DeviceSeats& seats, uint64_t epoch,
          int64_t first, int64_t count, int threads, Batches& read) {
  std::mutex mutex;
  int64_t next = 0;
  std::vector<std::thread> team;
  const auto work = [&] {
    while (true) {
      int64_t i = 0;
      {
        const std::lock_guard lock(mutex);
        if (next == count) return;
        i = next++;
      }
      const int64_t all = order.num_batches(), turn = first + i;
      BatchOrder mine = order;
      const SampleKey key{epoch + static_cast<uint64_t>(turn / all), static_cast<uint64_t>(mine.number(turn % all))};
      mine.begin_epoch(key.epoch);
      std::vector<NodeId> wanted;
      const Sample sample = batches.take(key, wanted);
      const Sample expected =
          sampler.sample(sampler.draws_seeds() ? std::span<const NodeId>() : mine.batch(turn % all), key);
      ASSERT_TRUE(std::ranges::equal(sample.vertices.span(), expected.vertices.span()));
      const std::shared_ptr<const CachePlan> plan = batches.plan(key);
      std::vector<NodeId> missing;
      for (size_t v = 0; v < plan->seats.size(); ++v) {
        if (plan->seats[v] == kNoSeat) missing.push_back(sample.vertices[static_cast<int64_t>(v)]);
      }
      EXPECT_EQ(wanted, missing);
      std::vector<NodeId> rows(sample.vertices.begin(), sample.vertices.end());
      batches.queue_in_turn(key, [&seats, &read, rows](const CachePlan& turned) {
        seats.follow(turned, rows);
        read.push_back(rows);
      });
    }
  };
  for (int t = 0; t < threads; ++t) team.emplace_back(work);
  for (std::thread& t : team) t.join();
}

TEST(CachedBatches, MissWhatBeladyMissesOnRandomGraphs) {
  for (const GraphCase& graph : random_graphs(3, 40)) {
    for (const SampleOptions& options : samplers_for(graph.graph)) {
      const int64_t rows = graph.graph.num_nodes();
      std::vector<NodeId> train(static_cast<size_t>(rows));
      std::iota(train.begin(), train.end(), NodeId{0});
      const Sampler sampler(graph.graph, options);
      for (const BatchPart part : {BatchPart{}, BatchPart{3, 1, 2}}) {
        const BatchOrder order(train, 3, 9, true, part);
        if (order.num_batches() == 0) continue;
        std::vector<int64_t> counts;
        for (const int threads : {1, 4}) {
          SCOPED_TRACE(graph.name + ", " + options.sampler + ", " + std::to_string(threads) + " threads");
          std::vector<NodeId> contents;
          for (NodeId v = 0; v < rows; v += 3) contents.push_back(v);
          CachedBatches batches(sampler, order, {contents, nullptr, 4000});
          DeviceSeats seats(contents);
          Batches read;
          batches.begin(4, 0, 2);
          const int64_t count = 3 * order.num_batches();
          load(batches, sampler, order, seats, 4, 0, count, threads, read);
          ASSERT_EQ(static_cast<int64_t>(read.size()), count);
          // The first batches have shorter windows, which are as long as these epochs.
          const int64_t belady = belady_misses(read, contents, contents.size());
          if (count <= 16) {
            EXPECT_EQ(seats.misses(), belady);
          }
          EXPECT_GE(seats.misses(), belady);
          counts.push_back(seats.misses());
        }
        EXPECT_EQ(counts[0], counts[1]) << "the misses must not depend on the threads";
      }
    }
  }
}

// A small graph whose vertices are all trained on, and its sampler.
struct SmallSet {
  Graph graph = random_graphs(8, 60).front().graph;
  Sampler sampler = make_sampler(graph);
  std::vector<NodeId> train = all_vertices(graph);

 private:
  static Sampler make_sampler(const Graph& graph) {
    SampleOptions options;
    options.fanout = {4, 3};
    return Sampler(graph, options);
  }
  static std::vector<NodeId> all_vertices(const Graph& graph) {
    std::vector<NodeId> all(graph.num_nodes());
    std::iota(all.begin(), all.end(), NodeId{0});
    return all;
  }
};

// A run may begin an epoch anew in the middle (another order, other shares), while batches of the
// old one were drawn, planned and even taken. The seats then hold what was queued.
TEST(CachedBatches, BeginAnewWithWhatTheSeatsHold) {
  const SmallSet set;
  const Sampler& sampler = set.sampler;
  const BatchOrder order(set.train, 4, 1, true), other(set.train, 4, 2, true);
  std::vector<NodeId> contents = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CachedBatches batches(sampler, order, {contents, nullptr, 5});
  DeviceSeats seats(contents);
  Batches read;
  batches.begin(0, 2, 0);
  load(batches, sampler, order, seats, 0, 2, 5, 3, read);
  // These batches are taken, but their turn never comes.
  std::vector<NodeId> wanted;
  batches.take({0, 7}, wanted);
  batches.queue_in_turn({0, 8}, [](const CachePlan&) { FAIL() << "this batch was dropped"; });
  batches.begin(0, 9, 1);
  load(batches, sampler, order, seats, 0, 9, 3, 2, read);
  batches.reorder(other);
  batches.begin(1, 0, 0);
  load(batches, sampler, other, seats, 1, 0, other.num_batches(), 2, read);
  // An epoch that follows goes on with the plans.
  batches.begin(2, 0, 0);
  load(batches, sampler, other, seats, 2, 0, other.num_batches(), 2, read);
  EXPECT_EQ(static_cast<int64_t>(read.size()), 8 + 2 * other.num_batches());
  EXPECT_ANY_THROW(batches.take({3, 0}, wanted)) << "this epoch was not announced";
}

TEST(CachedBatches, AForecastCountsWhatARunMisses) {
  const SmallSet set;
  const Sampler& sampler = set.sampler;
  const BatchOrder order(set.train, 4, 1, true);
  const CacheOptions cache{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, nullptr, 6};
  const CacheForecast forecast = forecast_cache(sampler, order, cache, 1000);
  CachedBatches batches(sampler, order, cache);
  DeviceSeats seats(cache.contents);
  Batches read;
  batches.begin(0, 0, 0);
  load(batches, sampler, order, seats, 0, 0, order.num_batches(), 1, read);
  EXPECT_EQ(forecast.batches, order.num_batches());
  EXPECT_EQ(forecast.misses, seats.misses());
  EXPECT_EQ(forecast.static_misses, static_misses(read, cache.contents));
  EXPECT_LT(forecast.misses, forecast.static_misses);
  EXPECT_EQ(forecast_cache(sampler, order, cache, 2).batches, 2);
}

}  // namespace
}  // namespace nacre::test
