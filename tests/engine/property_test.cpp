// Tests the planner's promise: whatever table cuts the edges, whichever option is chosen at every
// site, with and without rewriting, fusing, hoisting and splitting outliers, a plan computes what
// the interpreter computes in double from the DFG as the model wrote it.
#include <gtest/gtest.h>

#include <set>

#include "model/cases.h"
#include "nacre/base/parallel.h"
#include "support/big_graphs.h"
#include "support/rng.h"
#include "support/run_plan.h"
#include "support/sanitized.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{9, 4};

// Every shape of plan that has a name, sizes that divide nothing, and no restriction at all.
const std::vector<std::string> kTables = {"dst-id=1",                  // vertex-centric
                                          "edge-id=1",                 // edge-centric
                                          "dst-id=1,edge-id=32",       // neighbour grouping
                                          "src-id=4,dst-id=4",         // 2-D
                                          "dst-id=1,edge-type=1",      // relations of a destination
                                          "dst-degree=1",              // equal degrees
                                          "dst-id=16,dst-degree=min",  // batches of similar degree
                                          "src-id=8,edge-type=1",      // shared products
                                          "edge-id=7",
                                          "src-id=1",
                                          "dst-id=5",
                                          "edge-type=1",
                                          "src-id=3,dst-id=2,edge-type=1",
                                          ""};

constexpr int kFlags = 16;

PlanOptions flagged(int bits) {
  PlanOptions options;
  options.fuse = (bits & 1) == 0;
  options.rewrite = (bits & 2) == 0;
  options.split_outliers = (bits & 4) == 0;
  options.hoist = (bits & 8) == 0;
  options.keep_sums = bits % 3 == 0 ? int64_t{1} << 30 : 0;
  return options;
}

std::string describe(const PlanOptions& options) { return options_json(options); }

// Chooses options for all sites of a DFG: first the first option of all sites, then the second one
// of all, …, then random ones.
class ChoiceMaker {
 public:
  explicit ChoiceMaker(uint64_t seed) : rng_(seed) {}

  Choices next(const std::vector<Site>& sites) {
    size_t combinations = 1;
    for (const Site& site : sites) combinations = std::min<size_t>(1000, combinations * site.options.size());
    const bool all = combinations <= 8;
    const size_t number = count_++;
    size_t rest = number % combinations;
    Choices choices;
    for (const Site& site : sites) {
      const size_t n = site.options.size();
      size_t option = 0;
      if (all) {
        option = rest % n;
        rest /= n;
      } else if (number % 8 < 3) {
        option = number % n;
      } else {
        option = static_cast<size_t>(rng_.below(static_cast<int64_t>(n)));
      }
      choices[site.key] = site.options[option];
      for (const std::string& o : site.options) wanted_.insert(site.key + "=" + o);
      taken_.insert(site.key + "=" + site.options[option]);
    }
    return choices;
  }

  void expect_every_option_taken() const { EXPECT_EQ(taken_, wanted_); }

 private:
  Rng rng_;
  size_t count_ = 0;
  std::set<std::string> wanted_, taken_;
};

Dfg training_dfg(const ModelOptions& options) {
  Dfg dfg = build_model(options);
  differentiate(dfg);
  return dfg;
}

using Expected = std::map<std::string, std::vector<double>>;

Expected expected_of(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings) {
  ref::Interpreter reference(dfg, blocks);
  reference.run(bindings, kStep);
  Expected expected;
  for (const auto& [name, node] : dfg.outputs()) expected[name] = reference.value(node);
  for (const auto& [name, node] : dfg.updates()) expected["update:" + name] = reference.value(node);
  return expected;
}

void expect_outputs(const Outputs& got, const Expected& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want) expect_close(got.at(name), values, name, tolerance);
}

ModelOptions with_dropout(ModelOptions options) {
  options.dropout = 0.4;
  options.input_dropout = 0.2;
  options.attention_dropout = model_info(options.model).heads > 0 ? 0.3 : 0;
  return options;
}

class Plans : public testing::TestWithParam<ModelCase> {
 protected:
  void TearDown() override { set_num_threads(2); }
};

// Over all inputs, every table meets every combination of flags.
TEST_P(Plans, EveryTableAndEveryChoiceAgreeWithTheInterpreter) {
  ChoiceMaker maker(GetParam().name.size());
  const std::vector<BlocksInput> inputs = block_inputs(51, GetParam().options.layers);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Blocks& blocks = inputs[i].blocks;
    // Every third input has dropout: full graphs and blocks, with few edges and with many.
    const bool dropout = i % 3 == 2;
    const ModelOptions model = dropout ? with_dropout(GetParam().options) : GetParam().options;
    const Dfg dfg = training_dfg(options_for(model, blocks));
    const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, blocks, 61));
    const Expected expected = expected_of(dfg, blocks, bindings);
    // Under a sanitizer, each input is tried with every fourth table only.
    const size_t stride = sanitized_stride(4);
    for (size_t t = i % stride; t < kTables.size(); t += stride) {
      PlanOptions options = flagged(static_cast<int>(i + t) % kFlags);
      options.table = PartitionTable::parse(kTables[t]);
      options.choices = maker.next(find_sites(prepare_dfg(dfg, blocks, options), blocks.cover_layers()));
      SCOPED_TRACE(inputs[i].name + (dropout ? " with dropout " : " ") + describe(options));
      expect_outputs(run_plan(dfg, blocks, bindings, kStep, options), expected, dropout ? 1e-4 : 3e-5);
      if (HasFailure()) return;
    }
  }
  maker.expect_every_option_taken();
}

// Whatever the choices of the training DFG are, they also plan the evaluation, which has fewer
// sites.
TEST_P(Plans, TheEvaluationTakesTheChoicesOfTraining) {
  ChoiceMaker maker(3);
  for (const BlocksInput& input : block_inputs(52, GetParam().options.layers)) {
    ModelOptions model = options_for(GetParam().options, input.blocks);
    PlanOptions options;
    const Dfg prepared = prepare_dfg(training_dfg(model), input.blocks, options);
    options.choices = maker.next(find_sites(prepared, input.blocks.cover_layers()));
    model.training = false;
    const Dfg dfg = build_model(model);
    const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 62));
    SCOPED_TRACE(input.name + " " + describe(options));
    expect_outputs(run_plan(dfg, input.blocks, bindings, kStep, options), expected_of(dfg, input.blocks, bindings),
                   3e-5);
  }
}

// Rows are as wide as in models, in several chunks, with a hub in each direction. The bits are the
// same on any number of threads.
TEST_P(Plans, WideRowsAgreeAndThreadsDoNotChangeABit) {
  const int layers = GetParam().options.layers;
  const Blocks blocks = Blocks::full(
      typed_weighted_graph({.vertices = 260, .edges = 900, .hub_edges = 300, .seed = GetParam().name.size()}), layers);
  ModelOptions model = GetParam().options;
  model.in_dim = 33;
  model.hidden *= 5;
  model.out_dim = 17;
  const Dfg dfg = training_dfg(options_for(model, blocks));
  const ref::Bindings bindings = rounded_to_float(random_bindings(dfg, blocks, 63, {.scale = 0.2, .gap = 0.01}));
  ref::Bindings positive = bindings;
  for (auto& [name, values] : positive) {
    if (!name.ends_with("running_var")) continue;
    for (double& value : values) value = 0.5 + std::abs(value);
  }
  const Expected expected = expected_of(dfg, blocks, positive);
  ChoiceMaker maker(4);
  for (size_t round = 0; round < 6; ++round) {
    PlanOptions options = flagged(round % 3 == 2 ? 1 : 0);
    options.rewrite = round != 4;
    options.table = PartitionTable::parse(kTables[(GetParam().name.size() + 3 * round) % kTables.size()]);
    options.choices = maker.next(find_sites(prepare_dfg(dfg, blocks, options), blocks.cover_layers()));
    SCOPED_TRACE(describe(options));
    Outputs first;
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      const Outputs outputs = run_plan(dfg, blocks, positive, kStep, options);
      if (threads == 1) {
        first = outputs;
        expect_outputs(outputs, expected, 1e-4);
      }
      for (const auto& [name, values] : outputs) {
        ASSERT_TRUE(same_bits(values, first.at(name))) << name << " with " << threads << " threads";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Plans, testing::ValuesIn(model_cases()), [](const auto& c) { return c.param.name; });

TEST(PlanTables, AreAtLeastTwelveDifferentOnes) {
  std::set<std::string> different;
  for (const std::string& table : kTables) different.insert(PartitionTable::parse(table).text());
  EXPECT_EQ(different.size(), kTables.size());
  EXPECT_GE(different.size(), 12U);
}

}  // namespace
}  // namespace nacre::test
