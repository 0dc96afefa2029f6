// Tests the timing of operations of mini-batches: every kernel belongs to an operation, every stage
// is timed, and EPGs are built from the costs.
#include "nacre/train/operation_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "nacre/data/twin.h"
#include "nacre/schedule/epg/named.h"
#include "nacre/schedule/epg/prices.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

RunConfig timed_run(const std::string& model, const std::string& sampler = "neighbor") {
  RunConfig config = small_run(model);
  config.mode = "minibatch";
  config.plan = "off";
  config.batch_size = 16;
  config.sampling.sampler = sampler;
  if (sampler == "neighbor") config.sampling.fanout = {3, 3};
  return config;
}

class TimedOperations : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(TimedOperations, CoverEveryStageAndKernel) {
  const auto& [model, sampler] = GetParam();
  BatchSession session(make_twin("cora@0.3", 1), timed_run(model, sampler), {.evaluation = false});
  session.start();
  const std::vector<KernelPart> parts = kernel_parts(session.plan(), 2);
  ASSERT_EQ(parts.size(), session.plan().kernels.size());
  std::set<std::string> kinds;
  for (const KernelPart& part : parts) {
    kinds.insert(part.operation);
    EXPECT_TRUE(part.layer == 0 || part.layer == 1);
  }
  for (const char* kind : {"aggregate", "combine", "combine_grad", "aggregate_grad"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;

  const OperationTimes times = time_operations(session, {.seconds = 0});
  std::set<std::pair<std::string, int>> timed;
  std::set<std::string> orders;
  std::map<int, std::string> order_of;
  std::set<std::pair<OperationKey, int>> once_each;
  for (const TimedOperation& t : times.all) {
    EXPECT_EQ(t.key.device, "cpu");
    EXPECT_GE(t.timing.seconds, 0);
    timed.insert({t.key.operation, t.key.layer});
    if (t.key.operation == "update") continue;
    EXPECT_TRUE(once_each.emplace(t.key, t.batch).second) << t.key.operation << " of batch " << t.batch;
    if (t.key.order.empty()) continue;
    orders.insert(t.key.order);
    EXPECT_EQ(order_of.emplace(t.batch, t.key.order).first->second, t.key.order);
  }
  // Each batch is computed in one order, and each order has the same number of batches.
  EXPECT_TRUE(orders.contains("plan"));
  for (const std::string& order : orders) {
    const auto batches =
        std::count_if(order_of.begin(), order_of.end(), [&](const auto& b) { return b.second == order; });
    EXPECT_EQ(batches * static_cast<int64_t>(orders.size()), static_cast<int64_t>(order_of.size())) << order;
  }
  for (const char* both : {"sample", "reindex", "aggregate", "combine", "combine_grad"}) {
    EXPECT_TRUE(timed.contains({both, 0})) << both;
    EXPECT_TRUE(timed.contains({both, 1})) << both;
  }
  for (const char* once : {"gather", "prepare", "bind", "update"}) EXPECT_TRUE(timed.contains({once, 0})) << once;

  const OperationCosts costs = OperationCosts::fitted(times.all);
  const std::vector<Sample> batches = session.trial_batches(3);
  const FittedPrices prices(costs, {"cpu"});
  ExecutionPlanGraph graph;
  graph.devices = {"cpu"};
  for (const Sample& sample : batches) {
    const BatchShape shape = batch_shape(session, sample);
    ASSERT_EQ(shape.layers.size(), 2U);
    EXPECT_EQ(shape.layers[0].sources, static_cast<double>(sample.vertices.size()));
    EXPECT_EQ(shape.layers[0].width_out, shape.layers[1].width_in);
    EXPECT_GT(shape.layers[1].weights, 0);
    graph.batches.push_back(batch_graphs(shape, prices, 1));
    const BatchSeconds seconds = batch_seconds(costs, "cpu", shape, 10);
    EXPECT_GT(seconds.sample, 0);
    EXPECT_GT(seconds.compute, 0);
    EXPECT_EQ(seconds.transfer, 0);
    EXPECT_LT(epoch_seconds(seconds, 10, 2, true, true), epoch_seconds(seconds, 10, 2, true, false));
  }
  const ScheduleComparison comparison = compare_schedules(graph);
  ASSERT_NE(comparison.find("daha"), nullptr);
  EXPECT_GE(comparison.find("daha")->timeline.makespan, comparison.bound.seconds * (1 - 1e-9));
}

INSTANTIATE_TEST_SUITE_P(Models, TimedOperations,
                         testing::Values(std::pair("sage", "neighbor"), std::pair("gcn", "neighbor"),
                                         std::pair("gat", "neighbor"), std::pair("sage", "saint-vertex")));

// For a GPU that is not in this machine, costs are computed from counted work.
TEST(CountedOperations, MakeSchedulesOfTwoDevices) {
  BatchSession session(make_twin("cora@0.3", 1), timed_run("gcn"), {.evaluation = false});
  session.start();
  OperationCosts costs = OperationCosts::fitted(time_operations(session, {.seconds = 0}).all);
  costs.add(OperationCosts::fitted(count_operations(session, random_batches(session, 6, {}), "gpu")));
  const FittedPrices prices(costs, {"cpu", "gpu"});
  ExecutionPlanGraph graph;
  graph.devices = {"cpu", "gpu"};
  for (const Sample& sample : session.trial_batches(3)) {
    const BatchShape shape = batch_shape(session, sample);
    EXPECT_TRUE(shape.layers[0].may_combine_first);
    graph.batches.push_back(batch_graphs(shape, prices, 2));
    EXPECT_EQ(graph.batches.back().size(), 4U);
  }
  const ScheduleComparison comparison = compare_schedules(graph);
  EXPECT_EQ(comparison.schedules.size(), schedule_names().size());
  for (const NamedSchedule& s : comparison.schedules) {
    check_timeline(graph, scheduled_batches(s.grouping, s.placings), s.timeline);
    EXPECT_GE(gap_of(s, comparison.bound), -1e-9) << s.name;
    EXPECT_LE(comparison.find("daha")->timeline.makespan, s.timeline.makespan * (1 + 1e-12)) << s.name;
  }
}

// The host draws the samples of such runs, so no schedule may have the GPU draw them.
TEST(CountedOperations, LeaveSamplingToTheHostIfGpusCannotDraw) {
  const Dataset data = make_twin("cora@0.3", 1);
  for (const std::string sampler : {"neighbor", "layer", "saint-vertex"}) {
    const BatchSession session(data, timed_run("gcn", sampler), {.evaluation = false});
    const std::vector<TimedOperation> counted = count_operations(session, random_batches(session, 2, {}), "gpu");
    const auto drawn = std::count_if(counted.begin(), counted.end(),
                                     [](const TimedOperation& t) { return t.key.operation == "sample"; });
    EXPECT_EQ(drawn, sampler == "neighbor" ? 2 : 0) << sampler;
  }
}

TEST(OperationCostsKey, ChangesWithWhatTheTimesDependOn) {
  const Dataset data = make_twin("cora@0.3", 1);
  std::set<std::string> keys;
  for (const char* model : {"sage", "gcn"}) {
    for (const int fanout : {3, 4}) {
      RunConfig config = timed_run(model);
      config.sampling.fanout = {fanout, 3};
      keys.insert(operation_costs_key(BatchSession(data, config, {.evaluation = false})));
      config.batch_size = 7;  // the key does not depend on the size of batches
      config.optimizer.lr = 0.5;
      keys.insert(operation_costs_key(BatchSession(data, config, {.evaluation = false})));
    }
  }
  EXPECT_EQ(keys.size(), 4U);
}

}  // namespace
}  // namespace nacre::test
