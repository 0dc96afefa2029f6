// Compares counted work with sums by hand, and checks bounds that hold for every kernel of every
// plan.
#include "nacre/plan/work.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/plans.h"

namespace nacre::test {
namespace {

constexpr int64_t kCache = 1 << 20;

double edges_of(const PlannedModel& m) { return static_cast<double>(m.blocks.layer(0).num_edges()); }
double vertices_of(const PlannedModel& m) { return static_cast<double>(m.blocks.layer(0).num_nodes()); }
double pairs_of(const PlannedModel& m, End end) { return static_cast<double>(m.blocks.layer(0).pairs(end).num_pairs); }

Work work_of(const PlannedModel& m, const Kernel& k, int64_t cache = kCache) {
  return kernel_work(k, m.plan, m.blocks, cache);
}

double flops_of(const PlannedModel& m) {
  double flops = 0;
  for (const Kernel& k : m.plan.kernels) flops += work_of(m, k)[Feature::flops];
  return flops;
}

TEST(KernelWork, CountsProductsAndSums) {
  const PlannedModel m = plan_model(usual("gcn"));
  const double v = vertices_of(m);
  // Forward is 48→64→16; backward has the input gradient of the second layer and both weight
  // gradients.
  EXPECT_DOUBLE_EQ(flops_of(m), 2 * v * (48 * 64 + 64 * 16) + 2 * v * (64 * 16) + 2 * v * (48 * 64 + 64 * 16));
  for (const Kernel* k : kernels_of(m.plan, KernelKind::spmm)) {
    const Work work = work_of(m, *k);
    const double width = static_cast<double>(m.plan.dfg[k->root].type.row_size());
    EXPECT_EQ(work.kind, "spmm");
    EXPECT_EQ(work[Feature::constant], 1);
    EXPECT_EQ(work[Feature::flops], 0);
    EXPECT_EQ(work[Feature::edges], edges_of(m));
    EXPECT_EQ(work[Feature::rows], v);
    EXPECT_EQ(work[Feature::near_bytes], edges_of(m) * width * 4) << "features fit the cache";
    EXPECT_EQ(work[Feature::far_bytes], 0);
    EXPECT_GE(work[Feature::stream_bytes], edges_of(m) * 8 + v * width * 4) << "columns, weights, the result";
  }
}

TEST(KernelWork, GathersBeyondTheCacheAreFar) {
  const PlannedModel m = plan_model(usual("gcn"));
  const Kernel& k = *kernels_of(m.plan, KernelKind::spmm).front();
  const double bytes = edges_of(m) * 48 * 4;
  const Work none = work_of(m, k, 0);
  EXPECT_EQ(none[Feature::near_bytes], 0);
  EXPECT_EQ(none[Feature::far_bytes], bytes);
  const Work half = work_of(m, k, static_cast<int64_t>(vertices_of(m)) * 48 * 2);
  EXPECT_DOUBLE_EQ(half[Feature::near_bytes], bytes / 2);
  EXPECT_DOUBLE_EQ(half[Feature::far_bytes], bytes / 2);
}

// This is the point of extracting unique values: products are computed once per pair instead of
// once per edge.
TEST(KernelWork, CountsTypedProductsOncePerPair) {
  const PlannedModel written = plan_model(usual("rgcn"));
  const auto typed_flops = [&](const char* option) {
    const PlannedModel m = plan_model(usual("rgcn"), choosing(written, option));
    double flops = 0;
    for (const Kernel& k : m.plan.kernels) {
      // The root product and its gradients are the same under every option.
      if (k.kind != KernelKind::matmul && k.kind != KernelKind::weight_grad) flops += work_of(m, k)[Feature::flops];
    }
    return flops;
  };
  // Forward and weights of both layers, and one input gradient.
  const double products = 2 * 48 * 64 + 3 * 64 * 16;
  EXPECT_DOUBLE_EQ(typed_flops("edge"), 2 * edges_of(written) * products);
  EXPECT_DOUBLE_EQ(typed_flops("src"), 2 * pairs_of(written, End::src) * products);
  EXPECT_DOUBLE_EQ(typed_flops("dst"), 2 * pairs_of(written, End::dst) * products);
  EXPECT_LT(pairs_of(written, End::src), edges_of(written)) << "or this says nothing";
}

TEST(KernelWork, FollowsTheTable) {
  const auto tasks = [](const char* table) {
    const PlannedModel m = plan_model(usual("rgcn"), {.table = PartitionTable::parse(table)});
    return work_of(m, *kernels_of(m.plan, KernelKind::gtask).front())[Feature::tasks];
  };
  const PlannedModel m = plan_model(usual("rgcn"));
  EXPECT_EQ(tasks("edge-id=1"), edges_of(m));
  EXPECT_EQ(tasks("dst-id=1"), vertices_of(m));
  EXPECT_EQ(tasks("dst-id=10"), vertices_of(m) / 10);
  EXPECT_LE(tasks("dst-id=1,edge-type=1"), edges_of(m)) << "never more than edges";
  EXPECT_LT(tasks("dst-id=256"), tasks("dst-id=1"));
}

TEST(KernelWork, LongerBatchesOfSequencesTakeFewerSteps) {
  const auto steps = [](const char* table) {
    const PlannedModel m = plan_model(usual("sage-lstm"), {.table = PartitionTable::parse(table)});
    return work_of(m, *kernels_of(m.plan, KernelKind::lstm).front())[Feature::steps];
  };
  EXPECT_DOUBLE_EQ(steps("dst-id=32,dst-degree=min"), 4 * steps("dst-id=128,dst-degree=min"));
  const PlannedModel m = plan_model(usual("sage-lstm"));
  const Work work = work_of(m, *kernels_of(m.plan, KernelKind::lstm).front());
  EXPECT_DOUBLE_EQ(work[Feature::flops], 2 * edges_of(m) * 48 * 4 * 48) << "the state is as wide as the features";
}

TEST(KernelWork, IsSaneForEveryKernelOfEveryPlan) {
  for (const ModelCase& c : model_cases()) {
    for (const BlocksInput& input : block_inputs(19, c.options.layers)) {
      for (const char* table : {"", "edge-id=3", "dst-id=4,edge-type=1"}) {
        for (const bool fuse : {true, false}) {
          const PlannedModel m =
              plan_on(input.blocks, c.options, {.fuse = fuse, .table = PartitionTable::parse(table)});
          for (const Kernel& k : m.plan.kernels) {
            const Work work = work_of(m, k);
            EXPECT_EQ(work.kind, kernel_name(k.kind));
            for (const double amount : work.amount) {
              ASSERT_TRUE(std::isfinite(amount) && amount >= 0)
                  << c.name << " on " << input.name << ": " << work.kind << " %" << k.root;
            }
            EXPECT_GT(nominal_cpu().model.predict(work), 0);
            EXPECT_LT(nominal_cpu().model.predict(work), 1) << work.kind << ": tens of vertices take no second";
            EXPECT_LT(k.floor_bytes, 1e9) << work.kind;
          }
        }
      }
    }
  }
}

// A kernel's own estimate of its floating-point work and the counted work agree where both count
// products.
TEST(KernelWork, AgreesWithTheKernelsOwnFlops) {
  const PlannedModel written = plan_model(usual("rgcn"));
  for (const char* option : {"edge", "src", "dst"}) {
    const PlannedModel m = plan_model(usual("rgcn"), choosing(written, option));
    for (const Kernel& k : m.plan.kernels) {
      const double flops = work_of(m, k)[Feature::flops];
      EXPECT_GE(k.flops, flops) << option << " " << kernel_name(k.kind) << " %" << k.root;
      if (flops > 0) {
        EXPECT_LE(k.flops, 1.5 * flops) << option << " " << kernel_name(k.kind) << " %" << k.root;
      }
    }
  }
}

}  // namespace
}  // namespace nacre::test
