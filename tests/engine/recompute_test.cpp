// Values may be computed again in the backward pass: no bit changes, and the memory they took is
// free in between.
#include "nacre/dfg/recompute.h"

#include <gtest/gtest.h>

#include "model/cases.h"
#include "nacre/plan/order.h"
#include "support/rng.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr StepContext kRecomputeStep{5, 3};

std::vector<Recomputable> candidates(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  return find_recomputable(choose_dfg(dfg, blocks, options));
}

// Returns the set of all values, and a few random sets.
std::vector<std::set<std::string>> some_sets(const std::vector<Recomputable>& all, uint64_t seed) {
  Rng rng(seed);
  std::vector<std::set<std::string>> sets(3);
  for (const Recomputable& r : all) {
    sets[0].insert(r.name);
    for (size_t s = 1; s < sets.size(); ++s) {
      if (rng.below(3) == 0) sets[s].insert(r.name);
    }
  }
  return sets;
}

// On a GPU, a value that is not kept may be inlined elsewhere, where the compiler fuses its product
// with a sum.
void expect_same(const std::vector<float>& kept, const std::vector<float>& again, const std::string& what) {
  if (!testing_gpu()) {
    ASSERT_TRUE(same_bits(kept, again)) << what;
    return;
  }
  expect_close(again, std::vector<double>(kept.begin(), kept.end()), what, 1e-5);
}

void expect_same_results(const Dfg& dfg, const Blocks& blocks, PlanOptions options, uint64_t seed) {
  const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, blocks, seed));
  const Outputs kept = run_plan(dfg, blocks, bindings, kRecomputeStep, options);
  for (const std::set<std::string>& names : some_sets(candidates(dfg, blocks, options), seed)) {
    options.recompute = names;
    const Outputs again = run_plan(dfg, blocks, bindings, kRecomputeStep, options);
    ASSERT_EQ(again.size(), kept.size());
    for (const auto& [name, values] : kept) {
      expect_same(values, again.at(name), name + " under " + options_json(options));
    }
  }
}

class RecomputeModelTest : public testing::TestWithParam<ModelCase> {};
INSTANTIATE_TEST_SUITE_P(Models, RecomputeModelTest, testing::ValuesIn(model_cases()),
                         [](const auto& model) { return model.param.name; });

TEST_P(RecomputeModelTest, ChangesNoBit) {
  const PlanOptions plans[] = {
      {}, {.hoist = false}, {.rewrite = false}, {.fuse = false, .hoist = false}, {.vertex_factors = true}};
  const ModelCase& model = GetParam();
  const std::vector<BlocksInput> inputs = block_inputs(81, model.options.layers);
  for (size_t i = 0; i < inputs.size(); ++i) {
    ModelOptions with = model.options;
    if (i % 2 == 1) {
      with.dropout = 0.4;
      with.attention_dropout = model_info(with.model).heads > 0 ? 0.3 : 0;
    }
    SCOPED_TRACE(model.name + " on " + inputs[i].name);
    const Dfg dfg = training_dfg(options_for(with, inputs[i].blocks));
    PlanOptions options = plans[i % std::size(plans)];
    // At every site, the other order is chosen: sums and products change places.
    if (i % 3 == 0) {
      for (const Site& site :
           find_sites(prepare_dfg(dfg, inputs[i].blocks, options), inputs[i].blocks.cover_layers())) {
        // On a GPU, an LSTM that keeps its gates is another kernel, which rounds in its own way.
        if (!testing_gpu() || !site.key.starts_with("lstm")) options.choices[site.key] = site.options.back();
      }
    }
    expect_same_results(dfg, inputs[i].blocks, options, 90 + i);
    if (HasFailure()) return;
  }
}

struct Sizes {
  int64_t arena, peak;
};

Sizes sizes(const Dfg& dfg, const Blocks& blocks, const PlanOptions& options) {
  const Plan plan = make_plan(dfg, blocks, options);
  const Executor executor(plan, blocks, test_backend(std::make_shared<GraphViews>()));
  return {executor.arena_bytes(), peak_live_bytes(plan, blocks)};
}

// A GCN of three layers keeps two activations and a sum alive at once; without the first
// activation, it keeps two values.
TEST(Recompute, FreesTheMemoryInBetween) {
  const Blocks blocks = Blocks::full(random_graphs(7, 40000)[0].graph, 3);
  for (const char* model : {"gcn", "sage"}) {
    ModelOptions o;
    o.model = model;
    o.layers = 3;
    o.in_dim = 32;
    o.hidden = 256;
    o.out_dim = 4;
    const Dfg dfg = training_dfg(options_for(o, blocks));
    PlanOptions options;
    for (const Site& site : find_sites(prepare_dfg(dfg, blocks, options), blocks.cover_layers())) {
      const bool combined = std::string(model) == "gcn" && site.key.starts_with("weight_grad@layers.1");
      options.choices[site.key] = combined || site.key.ends_with("layers.2.lin.weight") ? "combine" : "aggregate";
    }
    const Sizes kept = sizes(dfg, blocks, options);
    for (const Recomputable& r : candidates(dfg, blocks, options)) {
      if (r.name.starts_with("relu@layers.0")) {
        EXPECT_FALSE(r.over_edges);
        options.recompute = {r.name};
      }
    }
    ASSERT_EQ(options.recompute.size(), 1U) << model;
    const Sizes again = sizes(dfg, blocks, options);
    const int64_t value = blocks.rows(Space::vertex(0)) * 256 * 4;
    EXPECT_NEAR(static_cast<double>(kept.peak - again.peak), static_cast<double>(value), 0.06 * value) << model;
    // Some of the peak of a step is workspace of kernels, on a GPU at least 32 MiB, which is most
    // of such a value.
    EXPECT_GT(static_cast<double>(kept.arena - again.arena), (testing_gpu() ? 0.1 : 0.75) * static_cast<double>(value))
        << model;
  }
}

}  // namespace
}  // namespace nacre::test
