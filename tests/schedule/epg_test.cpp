// Tests how batches are written as execution plan graphs, placed and scheduled. On small cases,
// bounds and schedules are compared with all possible schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/schedule/epg/gantt.h"
#include "nacre/schedule/epg/named.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

// ---- EPGs

// Prices of a host and a device with simple speeds: the host takes a second for each unit of work.
class Prices : public EpgPrices {
 public:
  double speed = 8;    // speed of the device; the host has 1
  double link = 0.01;  // seconds for each byte that travels
  bool samples_on_device = true, gathers_on_device = false;

  double seconds(int device, EpgKind kind, const BatchShape& batch, int layer, bool combine_first) const override {
    const BatchShape::Layer& l = batch.layers[static_cast<size_t>(layer)];
    if (device != kHost && kind == EpgKind::sample && !samples_on_device) return -1;
    if (device != kHost && kind == EpgKind::gather && !gathers_on_device) return -1;
    return work(kind, l, combine_first) / (device == kHost ? 1 : speed);
  }
  double transfer(double bytes) const override { return link * bytes; }

 private:
  static double work(EpgKind kind, const BatchShape::Layer& l, bool combine_first) {
    const double width = combine_first ? l.width_out : l.width_in;
    const double rows = combine_first ? l.sources : l.destinations;
    switch (kind) {
      case EpgKind::sample:
        return l.edges;
      case EpgKind::gather:
        return l.sources;
      case EpgKind::aggregate:
      case EpgKind::aggregate_grad:
        return l.edges * width;
      case EpgKind::combine:
        return rows * l.width_in * l.width_out;
      case EpgKind::combine_grad:
        return 2 * rows * l.width_in * l.width_out;
      case EpgKind::update:
        return l.weights;
    }
    return 0;
  }
};

BatchShape shape_of(Rng& rng, int layers, bool free_order) {
  BatchShape shape;
  double sources = 8 + static_cast<double>(rng.below(16));
  double width = 1 + static_cast<double>(rng.below(6));
  for (int l = 0; l < layers; ++l) {
    BatchShape::Layer layer;
    layer.sources = sources;
    layer.destinations = std::floor(sources / 2);
    layer.edges = layer.destinations * (1 + static_cast<double>(rng.below(4)));
    layer.width_in = width;
    layer.width_out = 1 + static_cast<double>(rng.below(4));
    layer.weights = layer.width_in * layer.width_out;
    layer.may_combine_first = free_order;
    layer.reads_self = rng.below(2) == 0;
    shape.layers.push_back(layer);
    sources = layer.destinations;
    width = layer.width_out;
  }
  return shape;
}

ExecutionPlanGraph graph_of(const Prices& prices, Rng& rng, int batches, int layers, bool free_order, int devices = 2) {
  ExecutionPlanGraph graph;
  graph.devices = {"cpu", "gpu", "gpu 2"};
  graph.devices.resize(static_cast<size_t>(devices));
  for (int b = 0; b < batches; ++b)
    graph.batches.push_back(batch_graphs(shape_of(rng, layers, free_order), prices, devices));
  graph.validate();
  return graph;
}

std::vector<std::vector<Placing>> placings_of(const ExecutionPlanGraph& graph) {
  std::vector<std::vector<Placing>> all;
  for (int b = 0; b < graph.num_batches(); ++b) all.push_back(all_placings(graph, b));
  return all;
}

int operations_of(const BatchGraph& graph, EpgKind kind) {
  return static_cast<int>(std::count_if(graph.operations.begin(), graph.operations.end(),
                                        [&](const EpgOperation& op) { return op.kind == kind; }));
}

TEST(Epg, WritesEveryOrderOfABatch) {
  Rng rng(1);
  const Prices prices;
  const std::vector<BatchGraph> graphs = batch_graphs(shape_of(rng, 2, true), prices, 2);
  std::vector<std::string> names;
  for (const BatchGraph& g : graphs) {
    names.push_back(g.name);
    EXPECT_EQ(operations_of(g, EpgKind::combine), 2);
    EXPECT_EQ(operations_of(g, EpgKind::combine_grad), 2);
    EXPECT_EQ(operations_of(g, EpgKind::aggregate), 2);
    // If the features are summed before the first product, their gradient is not needed, so the
    // batch has no such operation.
    EXPECT_EQ(operations_of(g, EpgKind::aggregate_grad), g.name[0] == 'a' ? 1 : 2) << g.name;
    EXPECT_EQ(g.operations[static_cast<size_t>(g.update)].kind, EpgKind::update);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"aa", "ca", "ac", "cc"}));
  EXPECT_EQ(batch_graphs(shape_of(rng, 2, false), prices, 2).size(), 1U);
}

// One layer has four operations that may run on either of two devices. This test checks the
// transfers that each choice needs.
TEST(Epg, PutsTransfersWhereDevicesChange) {
  Rng rng(2);
  Prices prices;
  BatchShape shape = shape_of(rng, 1, false);
  shape.layers[0].reads_self = false;
  ExecutionPlanGraph graph;
  graph.devices = {"cpu", "gpu"};
  graph.batches.push_back(batch_graphs(shape, prices, 2));
  const BatchShape::Layer& l = shape.layers[0];
  // the operations are sample, gather, aggregate, combine, combine_grad, update
  const Placing host = place_batch(graph, 0, 0, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(host.work.size(), 6U);
  EXPECT_EQ(host.travelling(), 0);
  // With pre-aggregation (the host aggregates), only the sums travel.
  const Placing sums = place_batch(graph, 0, 0, {0, 0, 0, 1, 1, 1});
  EXPECT_EQ(sums.work.size(), 7U);
  EXPECT_NEAR(sums.travelling(), prices.link * 4 * l.destinations * l.width_in, 1e-9);
  // If the device aggregates and combines, the features and the block travel.
  const Placing device = place_batch(graph, 0, 0, {0, 0, 1, 1, 1, 1});
  EXPECT_EQ(device.work.size(), 8U);
  EXPECT_NEAR(device.travelling(), prices.link * (4 * l.sources * l.width_in + 4 * l.edges + 8 * l.destinations), 1e-9);
  // The weights lie where the update runs. They travel to the product, and their gradient travels
  // back.
  const Placing update = place_batch(graph, 0, 0, {0, 0, 0, 0, 0, 1});
  EXPECT_EQ(update.work.size(), 8U);
  EXPECT_NEAR(update.travelling(), 2 * prices.link * 4 * l.weights, 1e-9);
  // The device cannot gather.
  EXPECT_THROW(place_batch(graph, 0, 0, {0, 1, 1, 1, 1, 1}), InternalError);
  // Pre-transformation is the other order of the layer, with the product on the host.
  shape.layers[0].may_combine_first = true;
  graph.batches[0] = batch_graphs(shape, prices, 2);
  ASSERT_EQ(graph.batches[0][1].name, "c");
  // the operations are sample, gather, combine, aggregate, aggregate_grad, combine_grad, update
  const Placing transformed = place_batch(graph, 0, 1, {0, 0, 0, 1, 1, 0, 0});
  EXPECT_NEAR(transformed.load[2], prices.link * (4 * l.sources * l.width_out + 4 * l.edges + 8 * l.destinations),
              1e-9);
  EXPECT_NEAR(transformed.load[3], prices.link * 4 * l.sources * l.width_out, 1e-9);
}

TEST(Epg, EveryPlacingIsLegalAndRuns) {
  Rng rng(3);
  const Prices prices;
  for (const int devices : {1, 2, 3}) {
    const ExecutionPlanGraph graph = graph_of(prices, rng, 2, 2, true, devices);
    const auto all = placings_of(graph);
    EXPECT_EQ(all[0].size() > 100, devices > 1);
    for (const Placing& p : all[0]) {
      const auto second = std::find_if(all[1].begin(), all[1].end(), [&](const Placing& other) {
        return update_device(graph, 1, other) == update_device(graph, 0, p);
      });
      ASSERT_NE(second, all[1].end());
      const ScheduledBatch order[] = {{0, &p, 0}, {1, &*second, 0}};
      const Timeline timeline = run_schedule(graph, order);
      check_timeline(graph, order, timeline);
      EXPECT_GE(timeline.makespan, p.path - 1e-9);
      for (size_t u = 0; u < p.load.size(); ++u) EXPECT_GE(timeline.makespan, p.load[u] - 1e-9);
    }
  }
}

TEST(Epg, WorthTryingKeepsTheBestOfEverything) {
  Rng rng(4);
  const Prices prices;
  const ExecutionPlanGraph graph = graph_of(prices, rng, 1, 2, true);
  const std::vector<Placing> all = all_placings(graph, 0), some = worth_trying(all);
  EXPECT_LT(some.size(), all.size());
  EXPECT_DOUBLE_EQ(best_alone(some).path, best_alone(all).path);
  for (size_t u = 0; u < all[0].load.size(); ++u) {
    const auto least = [&](const std::vector<Placing>& list) {
      double load = list[0].load[u];
      for (const Placing& p : list) load = std::min(load, p.load[u]);
      return load;
    };
    EXPECT_DOUBLE_EQ(least(some), least(all));
  }
}

// Tries all placings and all active schedules. One of these schedules is a best one (Giffler and
// Thompson 1960). To list them, take the piece of work that would end first of all that can come
// next; the next piece on its unit is one of those that could start there before that end.
class Trial {
 public:
  Trial(const ExecutionPlanGraph& graph, const std::vector<std::vector<Placing>>& all)
      : graph_(graph), all_(all), chosen_(all.size()), turns_(all.size()), ends_(all.size()) {
    free_.assign(static_cast<size_t>(units_of(graph).count()), 0.0);
  }

  double best() {
    choose(0);
    return best_;
  }

 private:
  struct Next {
    size_t turn, work;
    double start, end;
    int unit;
  };

  void choose(size_t b) {
    if (b < all_.size()) {
      for (const Placing& p : all_[b]) {
        // All batches apply their gradients on one device.
        if (b > 0 && update_device(graph_, static_cast<int>(b), p) != update_device(graph_, 0, *chosen_[0])) continue;
        chosen_[b] = &p;
        choose(b + 1);
      }
      return;
    }
    std::iota(turns_.begin(), turns_.end(), size_t{0});
    do {
      for (size_t t = 0; t < turns_.size(); ++t) ends_[t].assign(chosen_[turns_[t]]->work.size(), -1.0);
      put(0);
    } while (std::next_permutation(turns_.begin(), turns_.end()));
  }

  // Returns whether the work can come next, and sets `start` to the time at which it would start.
  bool ready(size_t t, size_t w, double& start) const {
    const Placing& p = *chosen_[turns_[t]];
    const PlacedWork& work = p.work[w];
    start = free_[static_cast<size_t>(work.unit)];
    bool all = ends_[t][w] < 0;
    const auto after = [&](size_t turn, int before) {
      const double end = ends_[turn][static_cast<size_t>(before)];
      all = all && end >= 0;
      start = std::max(start, end);
    };
    for (const int before : work.after) after(t, before);
    const size_t stale = static_cast<size_t>(graph_.staleness) + 1;
    if (work.reads_weights && t >= stale) after(t - stale, chosen_[turns_[t - stale]]->update);
    if (static_cast<int>(w) == p.update && t > 0) after(t - 1, chosen_[turns_[t - 1]]->update);
    return all;
  }

  void put(double makespan) {
    std::vector<Next> next;
    for (size_t t = 0; t < turns_.size(); ++t) {
      const std::vector<PlacedWork>& work = chosen_[turns_[t]]->work;
      for (size_t w = 0; w < work.size(); ++w) {
        if (double start = 0; ready(t, w, start)) next.push_back({t, w, start, start + work[w].seconds, work[w].unit});
      }
    }
    if (next.empty()) {
      best_ = std::min(best_, makespan);
      return;
    }
    const Next first =
        *std::min_element(next.begin(), next.end(), [](const Next& a, const Next& b) { return a.end < b.end; });
    for (const Next& n : next) {
      const bool itself = n.turn == first.turn && n.work == first.work;
      if (n.unit != first.unit || (n.start >= first.end && !itself) || std::max(makespan, n.end) >= best_) continue;
      const double was = std::exchange(free_[static_cast<size_t>(n.unit)], n.end);
      ends_[n.turn][n.work] = n.end;
      put(std::max(makespan, n.end));
      ends_[n.turn][n.work] = -1;
      free_[static_cast<size_t>(n.unit)] = was;
    }
  }

  const ExecutionPlanGraph& graph_;
  const std::vector<std::vector<Placing>>& all_;
  std::vector<const Placing*> chosen_;
  std::vector<size_t> turns_;
  std::vector<std::vector<double>> ends_;
  std::vector<double> free_;
  double best_ = std::numeric_limits<double>::max();
};

TEST(Schedules, BoundsAreTrueOnEverySmallCase) {
  Rng rng(7);
  double tightest = 0;
  for (int i = 0; i < 16; ++i) {
    Prices prices;
    prices.speed = rng.uniform(0.5, 6);
    prices.link = rng.uniform(0.0, 0.05);
    prices.samples_on_device = i % 2 == 0;
    ExecutionPlanGraph graph = graph_of(prices, rng, 2, 1, false);
    graph.staleness = i % 3;
    auto all = placings_of(graph);
    for (std::vector<Placing>& list : all) list = worth_trying(list);
    const double best = Trial(graph, all).best();
    const LowerBound bound = lower_bound(graph, placings_of(graph));
    ASSERT_LE(bound.seconds, best * (1 + 1e-9)) << "instance " << i;
    // A bound that does not know all placings is weaker, but true.
    const LowerBound weaker = lower_bound(graph, {all_placings(graph, 0, 4), all_placings(graph, 1, 4)}, 4);
    ASSERT_GT(weaker.seconds, 0);
    ASSERT_LE(weaker.seconds, best * (1 + 1e-9)) << "instance " << i;
    const ScheduleComparison comparison = compare_schedules(graph);
    for (const NamedSchedule& s : comparison.schedules) {
      ASSERT_GE(s.timeline.makespan, best * (1 - 1e-9)) << s.name << " of instance " << i;
      ASSERT_GE(gap_of(s, comparison.bound), -1e-9);
    }
    ASSERT_GE(comparison.bound.seconds, bound.seconds * (1 - 1e-9)) << "instance " << i;
    ASSERT_LE(comparison.bound.seconds, best * (1 + 1e-9)) << "instance " << i;
    tightest = std::max(tightest, comparison.bound.seconds / best);
  }
  EXPECT_GT(tightest, 0.9);
}

// Batches of deep models have too many placings to list. The bound must hold for all of them.
TEST(Schedules, BoundsAreTrueForPlacingsThatAreNotListed) {
  Rng rng(13);
  for (int i = 0; i < 20; ++i) {
    Prices prices;
    prices.speed = rng.uniform(0.5, 2);  // so that it pays to divide the layers
    prices.link = i % 2 == 0 ? 0 : 1e-4;
    const ExecutionPlanGraph graph = graph_of(prices, rng, 1, 4, true);
    ASSERT_FALSE(lists_all_placings(graph, 0));
    const LowerBound bound = compare_schedules(graph).bound;
    EXPECT_GT(bound.seconds, 0);
    const auto ways = static_cast<int>(graph.batches[0].size());
    for (int trial = 0; trial < 200; ++trial) {
      const int way = static_cast<int>(rng.below(static_cast<uint64_t>(ways)));
      std::vector<int> devices;
      for (const EpgOperation& op : graph.batches[0][static_cast<size_t>(way)].operations) {
        const auto any = static_cast<int>(rng.below(2));
        devices.push_back(op.with >= 0 ? devices[static_cast<size_t>(op.with)] : op.may_run_on(any) ? any : kHost);
      }
      const Placing placing = place_batch(graph, 0, way, devices);
      const ScheduledBatch order[] = {{0, &placing, 0}};
      ASSERT_GE(run_schedule(graph, order).makespan, bound.seconds * (1 - 1e-9)) << "instance " << i;
    }
  }
}

// The blocks of two layers are different data, so both travel.
TEST(Epg, TheBlocksOfAllLayersTravel) {
  Rng rng(14);
  Prices prices;
  const BatchShape shape = shape_of(rng, 2, false);
  ExecutionPlanGraph graph;
  graph.devices = {"cpu", "gpu"};
  graph.batches.push_back(batch_graphs(shape, prices, 2));
  std::vector<int> devices;
  for (const EpgOperation& op : graph.batches[0][0].operations)
    devices.push_back(op.kind == EpgKind::sample || op.kind == EpgKind::gather ? kHost : 1);
  double bytes = 4 * shape.layers[0].sources * shape.layers[0].width_in;
  for (const BatchShape::Layer& l : shape.layers) bytes += 4 * l.edges + 8 * l.destinations;
  EXPECT_NEAR(place_batch(graph, 0, 0, devices).travelling(), prices.link * bytes, 1e-9);
}

// With whole batches, every schedule is one that a run can follow, `daha` is the fastest of them,
// and none beats the bound, which is no less than that of all placings.
TEST(Schedules, WholeBatchesAreNotDivided) {
  Rng rng(18);
  for (int i = 0; i < 8; ++i) {
    Prices prices;
    prices.speed = rng.uniform(0.5, 12);
    prices.link = std::pow(10, rng.uniform(-4, -1));
    ExecutionPlanGraph graph = graph_of(prices, rng, 6, 2, false);
    graph.staleness = i % 3;
    graph.host_workers = 1 + i % 3;
    const ScheduleComparison whole = compare_schedules(graph, {.grouping = {.trials = 60}, .whole_batches = true});
    ASSERT_FALSE(whole.schedules.empty());
    for (const NamedSchedule& s : whole.schedules) {
      const std::vector<ScheduledBatch> order = scheduled_batches(s.grouping, s.placings);
      check_timeline(graph, order, s.timeline);
      EXPECT_GE(s.timeline.makespan, whole.bound.seconds * (1 - 1e-9)) << s.name;
      EXPECT_GE(s.timeline.makespan, whole.schedules.front().timeline.makespan * (1 - 1e-9)) << s.name;
      for (const ScheduledBatch& b : order) {
        const std::vector<EpgOperation>& operations = graph.batches[b.batch][b.placing->way].operations;
        int computes = -1;
        for (size_t k = 0; k < operations.size(); ++k) {
          const int device = b.placing->devices[k];
          if (operations[k].kind == EpgKind::sample) continue;
          if (operations[k].kind == EpgKind::gather) {
            EXPECT_EQ(device, kHost);
          } else if (operations[k].kind == EpgKind::update) {
            EXPECT_EQ(device, 1);
          } else {
            if (computes < 0) computes = device;
            EXPECT_EQ(device, computes);
          }
        }
      }
    }
    EXPECT_GE(whole.bound.seconds, compare_schedules(graph, {.grouping = {.trials = 20}}).bound.seconds * (1 - 0.01));
  }
}

TEST(Schedules, GroupingIsNeverWorseThanInTurnAndEveryTimelineHolds) {
  Rng rng(8);
  int better = 0;
  for (int i = 0; i < 12; ++i) {
    Prices prices;
    prices.speed = rng.uniform(0.5, 12);
    prices.link = std::pow(10, rng.uniform(-4, -1));
    prices.gathers_on_device = i % 4 == 0;
    ExecutionPlanGraph graph = graph_of(prices, rng, 6, 2, i % 2 == 0);
    graph.staleness = i % 4;
    graph.host_workers = 1 + i % 3;
    auto all = placings_of(graph);
    for (std::vector<Placing>& list : all) list = worth_trying(list);
    const Grouping one = in_turn(graph, all), grouped = group_batches(graph, all, {.trials = 60});
    EXPECT_LE(grouped.seconds, one.seconds * (1 + 1e-12)) << "instance " << i;
    better += grouped.seconds < 0.98 * one.seconds ? 1 : 0;
    std::vector<int> seen;
    for (const auto& group : grouped.groups) seen.insert(seen.end(), group.begin(), group.end());
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4, 5}));
    const ScheduleComparison comparison = compare_schedules(graph, {.grouping = {.trials = 60}});
    const NamedSchedule* planned = comparison.find("daha");
    ASSERT_NE(planned, nullptr);
    for (const NamedSchedule& s : comparison.schedules) {
      EXPECT_LE(planned->timeline.makespan, s.timeline.makespan * (1 + 1e-12)) << s.name;
      check_timeline(graph, scheduled_batches(s.grouping, s.placings), s.timeline);
    }
    EXPECT_GE(planned->timeline.makespan, comparison.bound.seconds * (1 - 1e-9));
  }
  EXPECT_GT(better, 6);
}

TEST(Schedules, GroupsRunOneAfterTheOtherUnlessTheyStartEagerly) {
  Rng rng(9);
  const Prices prices;
  ExecutionPlanGraph graph = graph_of(prices, rng, 6, 1, false);
  graph.staleness = 2;
  auto all = placings_of(graph);
  Grouping grouping;
  grouping.groups = {{0, 1}, {2, 3}, {4, 5}};
  for (const std::vector<Placing>& list : all)
    grouping.placings.push_back(static_cast<size_t>(&best_alone(list) - list.data()));
  const std::vector<ScheduledBatch> order = scheduled_batches(grouping, all);
  const Timeline eager = run_schedule(graph, order), waiting = run_schedule(graph, order, {.eager = false});
  check_timeline(graph, order, waiting);
  EXPECT_LT(eager.makespan, waiting.makespan);
  std::vector<double> begins(3, 1e9), ends(3, 0.0);
  for (const TimelineSpan& s : waiting.spans) {
    const auto g = static_cast<size_t>(order[static_cast<size_t>(s.turn)].group);
    begins[g] = std::min(begins[g], s.begin);
    ends[g] = std::max(ends[g], s.end);
  }
  EXPECT_GE(begins[1], ends[0]);
  EXPECT_GE(begins[2], ends[1]);
  const Timeline together = run_schedule(graph, order, {.sampled_together = 6});
  check_timeline(graph, order, together);
  double sampled = 0, first = 1e9;
  for (const TimelineSpan& s : together.spans) {
    const PlacedWork& work = order[static_cast<size_t>(s.turn)].placing->work[static_cast<size_t>(s.work)];
    if (!work.transfer && work.operation == 0) {
      sampled = std::max(sampled, s.end);
    } else {
      first = std::min(first, s.begin);
    }
  }
  EXPECT_GE(first, sampled);
}

TEST(Schedules, StalenessOnlyShortensThem) {
  Rng rng(10);
  const Prices prices;
  ExecutionPlanGraph graph = graph_of(prices, rng, 5, 2, false);
  double before = std::numeric_limits<double>::max();
  for (const int staleness : {0, 1, 4}) {
    graph.staleness = staleness;
    const NamedSchedule s = make_schedule(graph, "salient");
    EXPECT_LE(s.timeline.makespan, before + 1e-9);
    before = s.timeline.makespan;
  }
}

TEST(Schedules, WithoutADeviceOnlyTheHostWorks) {
  Rng rng(11);
  const Prices prices;
  const ExecutionPlanGraph graph = graph_of(prices, rng, 3, 2, true, 1);
  const ScheduleComparison comparison = compare_schedules(graph);
  EXPECT_EQ(comparison.find("salient"), nullptr);
  EXPECT_EQ(comparison.find("bytegnn"), nullptr);
  ASSERT_NE(comparison.find("daha"), nullptr);
  ASSERT_NE(comparison.find("cpu-only"), nullptr);
  // One unit is busy all the time, so no schedule can be shorter.
  EXPECT_NEAR(gap_of(*comparison.find("daha"), comparison.bound), 0, 1e-9);
}

TEST(Schedules, ArePrinted) {
  Rng rng(12);
  const Prices prices;
  ExecutionPlanGraph graph = graph_of(prices, rng, 3, 1, true);
  graph.host_workers = 2;
  const ScheduleComparison comparison = compare_schedules(graph);
  const std::string text = schedules_text(graph, comparison, "daha");
  for (const ScheduleName& name : schedule_names()) EXPECT_NE(text.find(name.name), std::string::npos) << name.name;
  EXPECT_NE(text.find("no schedule takes less than"), std::string::npos);
  EXPECT_NE(text.find("to gpu"), std::string::npos);
  const std::string gantt = gantt_text(graph, *comparison.find("salient"), 40);
  EXPECT_NE(gantt.find('s'), std::string::npos);
  EXPECT_NE(gantt.find('>'), std::string::npos);
  const auto json = nlohmann::json::parse(schedule_json(graph, comparison, "salient"));
  EXPECT_EQ(json.at("name"), "salient");
  EXPECT_EQ(json.at("batches").size(), 3U);
  for (const auto& op : json.at("batches").at(0).at("operations"))
    EXPECT_EQ(op.at("device"), op.at("operation") == "sample" || op.at("operation") == "gather" ? "cpu" : "gpu");
  EXPECT_GT(json.at("bound_s").get<double>(), 0);
}

}  // namespace
}  // namespace nacre::test
