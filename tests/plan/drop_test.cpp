// Tests what plans drop: nothing that does not pay, but whatever is necessary if memory is short.
#include "nacre/plan/drop.h"

#include <gtest/gtest.h>

#include "nacre/plan/order.h"
#include "plan/plans.h"

namespace nacre::test {
namespace {

struct Case {
  Blocks blocks;
  Dfg dfg;
  PlanOptions options;
};

// Returns a GCN as a GPU would have it, on this many vertices.
Case gcn(int64_t vertices, int layers = 3) {
  ModelOptions o = usual("gcn", layers);
  o.hidden = 256;
  const Blocks blocks = Blocks::full(random_graphs(3, vertices)[0].graph, layers);
  const PlannedModel m = plan_on(blocks, o);
  PlanOptions options = choosing(m, "combine", "weight_grad");
  options.choices.merge(choosing(m, "aggregate", "matmul_t").choices);
  return {blocks, m.dfg, options};
}

DropOptions on_gpu() {
  DropOptions how;
  how.model = &nominal_gpu().model;
  how.cache_bytes = nominal_gpu().cache_bytes;
  how.time_for_memory = 0.5;
  return how;
}

int64_t peak(const Case& c, const PlanOptions& options) {
  return peak_live_bytes(make_plan(c.dfg, c.blocks, options), c.blocks);
}

TEST(Drop, TakesTheFirstActivationOfALargeGraph) {
  const Case c = gcn(60000);
  PlanOptions options = c.options;
  const auto dropped = choose_dropped(c.dfg, c.blocks, options, on_gpu());
  EXPECT_EQ(options.recompute, std::set<std::string>{"relu@layers.0.lin.bias"});
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped[0].value, "relu@layers.0.lin.bias");
  EXPECT_EQ(dropped[0].bytes, peak(c, c.options) - peak(c, options));
  EXPECT_GT(dropped[0].bytes, c.blocks.rows(Space::vertex(0)) * 256 * 4 * 9 / 10);
  EXPECT_GT(dropped[0].seconds, 0);
  const auto priced = price_dropped(c.dfg, c.blocks, options, on_gpu());
  ASSERT_EQ(priced.size(), 1U);
  EXPECT_EQ(priced[0].bytes, dropped[0].bytes);
}

TEST(Drop, LeavesWhatDoesNotPay) {
  const Case large = gcn(60000);
  PlanOptions options = large.options;
  DropOptions how = on_gpu();
  how.time_for_memory = 1e-3;
  EXPECT_TRUE(choose_dropped(large.dfg, large.blocks, options, how).empty()) << "too slow";
  how = on_gpu();
  how.least_saved = 1;
  EXPECT_TRUE(choose_dropped(large.dfg, large.blocks, options, how).empty()) << "not asked for";
  const Case small = gcn(500);
  options = small.options;
  EXPECT_TRUE(choose_dropped(small.dfg, small.blocks, options, on_gpu()).empty()) << "a few bytes";
}

TEST(Drop, GoesAsFarAsTheLimitNeeds) {
  const Case c = gcn(5000, 6);
  const int64_t all = peak(c, c.options);
  size_t before = 0;
  for (const double share : {1.0, 0.85, 0.7, 0.01}) {
    PlanOptions options = c.options;
    DropOptions how = on_gpu();
    how.least_saved = 1;
    how.limit = static_cast<int64_t>(share * static_cast<double>(all));
    choose_dropped(c.dfg, c.blocks, options, how);
    EXPECT_GE(options.recompute.size(), before) << share;
    EXPECT_LE(peak(c, options), all);
    before = options.recompute.size();
    if (share == 1.0) {
      EXPECT_TRUE(options.recompute.empty());
    }
    if (share > 0.5) {
      EXPECT_LE(peak(c, options), how.limit) << share;
    }
  }
  EXPECT_GT(before, 1U) << "the impossible is tried, and refused elsewhere";
}

TEST(Drop, KeepsWhatThePlanDroppedAlready) {
  const Case c = gcn(500);
  PlanOptions options = c.options;
  options.recompute = {"relu@layers.1.lin.bias"};
  choose_dropped(c.dfg, c.blocks, options, on_gpu());
  EXPECT_TRUE(options.recompute.contains("relu@layers.1.lin.bias"));
}

TEST(Drop, WhatIsAliveAtThePeakAddsUpToIt) {
  for (const ModelCase& model : model_cases()) {
    const PlannedModel m = plan_model(model.options);
    const LivePeak at = live_at_peak(m.plan, m.blocks);
    int64_t sum = 0;
    for (const auto& [node, bytes] : at.values) sum += bytes;
    EXPECT_EQ(sum, peak_live_bytes(m.plan, m.blocks)) << model.name;
    EXPECT_NE(peak_text(m.plan, at).find("kernel [" + std::to_string(at.kernel) + "]"), std::string::npos);
  }
  EXPECT_EQ(dropped_text({}), "");
  EXPECT_NE(dropped_text({{"relu@b", 1 << 20, 1e-3}}).find("relu@b: saves 1.00 MiB, takes 1.0 ms a step"),
            std::string::npos)
      << dropped_text({{"relu@b", 1 << 20, 1e-3}});
}

TEST(Drop, ClonesWaitForTheirReaders) {
  const Case c = gcn(500);
  PlanOptions options = c.options;
  options.recompute = {"relu@layers.0.lin.bias"};
  const Plan plan = make_plan(c.dfg, c.blocks, options);
  const auto writes = [&](const Kernel& k, bool again) {
    return std::any_of(k.writes.begin(), k.writes.end(),
                       [&](NodeRef w) { return plan.dfg[w].op == Op::relu && (plan.again[w] != 0) == again; });
  };
  size_t clone = 0, loss = 0;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (writes(plan.kernels[k], true)) clone = k;
    if (plan.kernels[k].kind == KernelKind::loss) loss = k;
  }
  ASSERT_GT(clone, loss);
  const NodeRef value = plan.kernels[clone].writes[0];
  const auto& next = plan.kernels[clone + 1].reads;
  EXPECT_NE(std::find(next.begin(), next.end(), value), next.end());
}

}  // namespace
}  // namespace nacre::test
