// Tests that the GPU back end binds the variants that a plan names, whether or not the plan was
// made with the pass choose_variants, and that the plainest variants give the right values.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/big_graphs.h"
#include "support/gpu_plans.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{3, 1};

// The variant of each decision about a kernel.
using NamedVariants = std::map<std::string, std::string>;

NamedVariants choices_of(const Kernel& kernel) {
  NamedVariants choices;
  for (const VariantChoice& v : kernel.variants) choices[v.decision] = v.variant;
  return choices;
}

// ---- On a device that is not there.

std::shared_ptr<GpuContext> absent_gpu(GpuOptions options) {
  options.tune = false;
  return context_on(make_null_device(typical_gpu()), options);
}

Plan bound_plan(const Plan& plan, const Blocks& blocks, const std::shared_ptr<GpuContext>& context) {
  return with_bound(plan, blocks, context, [](const Executor& executor) { return executor.plan_as_bound(); });
}

// Expects the plan for the device to be bound as it says, and a plan that names no variants to be
// bound in the same way. Adds "decision: variant" to `seen` for everything that was bound.
void expect_bound_as_planned(const Dfg& dfg, const Blocks& blocks, const PlanOptions& how, const GpuOptions& gpu,
                             std::set<std::string>& seen) {
  const auto context = absent_gpu(gpu);
  const DeviceTraits device = context->traits();
  const Plan plan = make_plan(dfg, blocks, how, {.validate = true, .device = &device});
  PlanOptions disabled = how;
  disabled.disabled_passes = {"choose_variants"};
  const Plan unnamed = make_plan(dfg, blocks, disabled, {.validate = true, .device = &device});
  const Plan bound = bound_plan(plan, blocks, context), asked = bound_plan(unnamed, blocks, absent_gpu(gpu));
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    SCOPED_TRACE(std::string(kernel_name(plan.kernels[k].kind)));
    EXPECT_TRUE(unnamed.kernels[k].variants.empty());
    for (const VariantChoice& planned : plan.kernels[k].variants) {
      const auto same = [&](const VariantChoice& v) { return v.decision == planned.decision; };
      const auto& now = bound.kernels[k].variants;
      const auto found = std::find_if(now.begin(), now.end(), same);
      ASSERT_NE(found, now.end()) << planned.decision;
      EXPECT_EQ(found->limit, planned.limit) << planned.decision << ": the binder took another limit";
      const auto& listed = asked.kernels[k].variants;
      const auto alone = std::find_if(listed.begin(), listed.end(), same);
      ASSERT_NE(alone, listed.end()) << planned.decision;
      EXPECT_EQ(alone->limit, planned.limit) << planned.decision << ": plan and binder compute different limits";
    }
    for (const auto& [decision, variant] : choices_of(plan.kernels[k])) {
      const NamedVariants taken = choices_of(bound.kernels[k]), listed = choices_of(asked.kernels[k]);
      ASSERT_TRUE(taken.contains(decision) && listed.contains(decision)) << decision;
      if (variant.empty()) continue;  // the device times the variants
      EXPECT_EQ(taken.at(decision), variant) << decision << ": the binder took another variant";
      EXPECT_EQ(listed.at(decision), variant) << decision << ": plan and binder ask different lists";
    }
    for (const auto& [decision, variant] : choices_of(asked.kernels[k])) seen.insert(decision + ": " + variant);
  }
}

TEST(GpuVariants, AreBoundAsThePlanNamesThem) {
  const Graph graph = typed_weighted_graph({.vertices = 90, .edges = 9000, .hub_edges = 60, .types = 4, .seed = 8});
  std::set<std::string> seen;
  for (const char* model : {"gcn_weighted", "sage_mean", "sage_lstm", "gat", "rgcn"}) {
    const Blocks blocks = Blocks::full(graph, model_named(model).options.layers);
    for (const int64_t hidden : {30, 96, 100}) {
      const Dfg dfg = training_dfg(model, blocks, hidden);
      for (const GemmType precision : {GemmType::f32, GemmType::tf32, GemmType::bf16}) {
        // A small cache calls for tiles, and products are joined however few rows they have.
        for (const GpuOptions& gpu : {GpuOptions{.precision = precision},
                                      GpuOptions{.precision = precision, .cache_bytes = 1024, .whole_products = 1}}) {
          SCOPED_TRACE(testing::Message() << model << " " << hidden << " " << static_cast<int>(precision));
          for (const char* end : {"dst", "src"}) {
            PlanOptions how = summing(dfg, blocks, end, absent_gpu(gpu)->traits());
            expect_bound_as_planned(dfg, blocks, how, gpu, seen);
            how.keep_sums = int64_t{1} << 30;
            how.join_dots = false;
            expect_bound_as_planned(dfg, blocks, how, gpu, seen);
          }
        }
      }
    }
  }
  // In one layer, all sums over the edges of pairs are constants, so their edges are read once.
  const Blocks one = Blocks::full(graph, 1);
  const Dfg shallow = training_dfg("rgcn", one, 30, 1);
  PlanOptions kept = summing(shallow, one, "dst", absent_gpu({})->traits());
  kept.keep_sums = int64_t{1} << 30;
  expect_bound_as_planned(shallow, one, kept, {}, seen);
  for (const char* expected : {"columns: tiles",
                               "columns: tiles of a copy",
                               "columns: whole rows",
                               "columns of pairs' sums: whole rows",
                               "rows of pairs' sums: copied to whole vectors",
                               "rows of pairs' sums: where they lie",
                               "weights: kept in the order of the walk",
                               "weights: in the order of the walk",
                               "weights: as they lie",
                               "weights of pairs' sums: kept in the order of the pairs",
                               "edges of pairs' sums: brought for one use",
                               "edges of pairs' sums: kept on the GPU",
                               "long pairs: in pieces",
                               "long rows of sums: in pieces",
                               "long rows of softmax: a block of threads each",
                               "long rows of sources: in pieces",
                               "threads of a row: for a mean row",
                               "algorithm: the library's first",
                               "in flight: more rows",
                               "product: own kernel",
                               "product: library",
                               "rows at a time: all",
                               "sequences: a group of threads each",
                               "sequences: in tiles",
                               "typed sums: side by side",
                               "products of pairs: by type"}) {
    EXPECT_TRUE(seen.contains(expected)) << expected << " was not bound";
  }
}

TEST(GpuVariants, ThatAPlanFileNamesAreBoundUnlessTheyDecline) {
  const Graph graph = typed_weighted_graph({.vertices = 60, .edges = 300, .hub_edges = 40, .seed = 5});
  const Blocks blocks = Blocks::full(graph, 2);
  const auto context = absent_gpu({});
  const DeviceTraits device = context->traits();
  for (const int64_t hidden : {8, 40}) {
    Plan plan = make_plan(training_dfg("sage_lstm", blocks, hidden), blocks, {}, {.device = &device});
    int lstms = 0;
    for (Kernel& kernel : plan.kernels) {
      if (kernel.kind != KernelKind::lstm && kernel.kind != KernelKind::lstm_grad) continue;
      kernel.variants = {{"sequences", hidden == 8 ? "in tiles" : "a group of threads each", "the test names it"}};
      ++lstms;
    }
    EXPECT_GT(lstms, 1);
    const Plan bound = bound_plan(plan, blocks, context);
    int in_tiles = 0;
    for (const Kernel& kernel : bound.kernels) {
      if (kernel.kind != KernelKind::lstm && kernel.kind != KernelKind::lstm_grad) continue;
      in_tiles += planned_variant(kernel, "sequences") == "in tiles" ? 1 : 0;
    }
    // With 40 units, the LSTM of the second layer does not fit into registers. That of the first
    // layer is as narrow as the features.
    EXPECT_EQ(in_tiles == lstms, hidden == 8);
    EXPECT_GT(in_tiles, 0) << hidden;
  }
}

// ---- On a GPU, which computes values.

class GpuVariantsOnTheDevice : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!testing_gpu()) GTEST_SKIP() << "NACRE_TEST_DEVICE is not cuda";
  }

  // Runs the plan and compares all outputs with the interpreter.
  void expect_right(const Plan& plan, const Dfg& dfg) {
    BoundPlan bound(plan, blocks_, bindings_of(dfg));
    bound_ = bound.executor().plan_as_bound();
    bound.reset(bindings_of(dfg));
    bound.executor().run(kStep);
    EXPECT_TRUE(bound.borders_intact());
    const Outputs outputs = bound.outputs();
    ref::Interpreter reference(dfg, blocks_);
    reference.run(bindings_of(dfg), kStep);
    for (const auto& [name, node] : dfg.outputs()) expect_close(outputs.at(name), reference.value(node), name, 1e-4);
  }
  ref::Bindings bindings_of(const Dfg& dfg) const {
    return rounded_to_float(random_bindings(dfg, blocks_, 17, {.scale = 0.2, .gap = 0.01}));
  }
  static DeviceTraits device() { return test_backend(std::make_shared<GraphViews>())->traits(); }

  Blocks blocks_ =
      Blocks::full(typed_weighted_graph({.vertices = 60, .edges = 8200, .hub_edges = 40, .types = 4, .seed = 5}), 2);
  Plan bound_;  // the plan of the last expect_right() as it was bound
};

TEST_P(GpuVariantsOnTheDevice, AreRightWithoutThePassThatChoosesThem) {
  const Dfg dfg = training_dfg(GetParam(), blocks_, 10);
  const DeviceTraits traits = device();
  PlanOptions how = summing(dfg, blocks_, "dst", traits);
  how.disabled_passes = {"choose_variants"};
  const Plan plan = make_plan(dfg, blocks_, how, {.validate = true, .device = &traits});
  for (const Kernel& kernel : plan.kernels) EXPECT_TRUE(kernel.variants.empty());
  expect_right(plan, dfg);
  const auto named = [](const Kernel& kernel) { return !kernel.variants.empty(); };
  EXPECT_TRUE(std::any_of(bound_.kernels.begin(), bound_.kernels.end(), named)) << "the engine asks the lists";
}

TEST_P(GpuVariantsOnTheDevice, AreRightIfThePlanNamesThePlainest) {
  static const NamedVariants plainest = {{"algorithm", "the library's first"},
                                         {"columns", "whole rows"},
                                         {"columns of pairs' sums", "whole rows"},
                                         {"edges of pairs' sums", "kept on the GPU"},
                                         {"in flight", "more rows"},
                                         {"long pairs", "whole"},
                                         {"long rows of softmax", "a group of threads each"},
                                         {"long rows of sources", "whole"},
                                         {"long rows of sums", "whole"},
                                         {"matrices of types", "read in slices"},
                                         {"place", "on the host, between copies"},
                                         {"product", "library"},
                                         {"products of pairs", "by type"},
                                         {"rows of pairs' sums", "where they lie"},
                                         {"rows at a time", "some"},
                                         {"sequences", "in tiles"},
                                         {"threads of a row", "for one edge"},
                                         {"typed rows", "by type"},
                                         {"typed rows gradient", "by type"},
                                         {"typed sums", "by type"},
                                         {"typed weight gradient", "by type"},
                                         {"weights", "as they lie"},
                                         {"weights of pairs' sums", "as they lie"}};
  const Dfg dfg = training_dfg(GetParam(), blocks_, 10);
  const DeviceTraits traits = device();
  Plan plan = make_plan(dfg, blocks_, summing(dfg, blocks_, "dst", traits), {.validate = true, .device = &traits});
  for (Kernel& kernel : plan.kernels) {
    for (VariantChoice& v : kernel.variants) {
      ASSERT_TRUE(plainest.contains(v.decision)) << v.decision;
      ASSERT_TRUE(is_variant(v.decision, plainest.at(v.decision))) << v.decision;
      v.variant = plainest.at(v.decision);
      v.limit = 0;
    }
  }
  expect_right(plan, dfg);
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    EXPECT_EQ(choices_of(bound_.kernels[k]), choices_of(plan.kernels[k]));
  }
}

// Whatever limits a plan names, rows are cut and products computed without an error.
TEST_P(GpuVariantsOnTheDevice, AreRightWithAnyLimits) {
  const Dfg dfg = training_dfg(GetParam(), blocks_, 10);
  const DeviceTraits traits = device();
  for (const char* end : {"dst", "src"}) {
    const PlanOptions how = summing(dfg, blocks_, end, traits);
    Plan plan = make_plan(dfg, blocks_, how, {.validate = true, .device = &traits});
    for (const int64_t limit : {1, 13, 45}) {
      SCOPED_TRACE(testing::Message() << end << " " << limit);
      int named = 0;
      for (Kernel& kernel : plan.kernels) {
        for (VariantChoice& v : kernel.variants) {
          if (v.decision == "rows at a time") v.variant = "some";
          const LimitKind* kind = limit_kind(v.decision, v.variant);
          if (kind == nullptr) continue;
          v.limit = std::clamp(limit, kind->least, kind->most);
          ++named;
        }
      }
      EXPECT_GT(named, 0);
      expect_right(plan, dfg);
      for (size_t k = 0; k < plan.kernels.size(); ++k) {
        for (const VariantChoice& v : plan.kernels[k].variants) {
          const auto& bound = bound_.kernels[k].variants;
          const auto now =
              std::find_if(bound.begin(), bound.end(), [&](const auto& b) { return b.decision == v.decision; });
          ASSERT_NE(now, bound.end()) << v.decision;
          EXPECT_EQ(now->limit, v.limit) << v.decision;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GpuVariantsOnTheDevice, testing::Values("gcn_weighted", "sage_lstm", "rgcn", "gat"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace nacre::test
