// Compares the planned engine with the double-precision interpreter of the untransformed DFG, for
// every model on every awkward graph, forward and backward, fused and op by op. The bits are the
// same on 1, 2 and 4 threads.
#include "nacre/engine/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/cases.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/block_runner.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr StepContext kExecutorStep{5, 3};

class EngineTest : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(2); }
};

// Each model is a test of its own, so that the models are divided among processes.
class EngineModelTest : public EngineTest, public testing::WithParamInterface<ModelCase> {};
INSTANTIATE_TEST_SUITE_P(Models, EngineModelTest, testing::ValuesIn(model_cases()),
                         [](const auto& model) { return model.param.name; });

TEST_P(EngineModelTest, AgreesWithTheInterpreter) {
  const ModelCase& model = GetParam();
  for (const BlocksInput& input : block_inputs(11, model.options.layers)) {
    SCOPED_TRACE(model.name + " on " + input.name);
    const Dfg dfg = training_dfg(options_for(model.options, input.blocks));
    // Batch norm of nearly equal rows (hubs) magnifies the rounding of its input.
    expect_plans_agree(dfg, input.blocks, rounded_to_float(model_bindings(dfg, input.blocks, 23)), kExecutorStep, 4e-5);
  }
}

// Some rows are divided by their lengths, which are nearly zero. Values and gradients stay finite.
TEST_F(EngineTest, RowsNextToZeroAgreeWithTheInterpreter) {
  ModelOptions options;
  options.model = "ngcf";
  options.layers = 1;
  options.in_dim = 5;
  options.hidden = 4;
  options.out_dim = 3;
  options.knobs["normalize"] = 1;
  for (const BlocksInput& input : block_inputs(11, 1)) {
    const Dfg dfg = training_dfg(options_for(options, input.blocks));
    for (const double scale : {1e-6, 1e-19, 1e-30, 0.0}) {
      SCOPED_TRACE(input.name + ", weights of " + std::to_string(std::log10(scale)));
      ref::Bindings bindings = model_bindings(dfg, input.blocks, 23);
      for (const char* name : {"layers.0.w1.weight", "layers.0.w2.weight"}) {
        for (double& w : bindings[name]) w *= scale;
      }
      expect_plans_agree(dfg, input.blocks, rounded_to_float(bindings), kExecutorStep, 4e-5);
    }
  }
}

// Constants of one batch must not become those of another.
TEST_F(EngineTest, ARunnerOfBatchesAsksForWhatTheyShare) {
  const ModelCase model = model_cases().front();
  const Blocks blocks = block_inputs(11, model.options.layers).front().blocks;
  const Dfg dfg = training_dfg(options_for(model.options, blocks));
  Plan plan = make_plan(dfg, blocks, {});
  ASSERT_TRUE(std::any_of(plan.kernels.begin(), plan.kernels.end(), [](const Kernel& k) { return k.once; }));
  BlockRunner runner(plan, make_cpu_backend(std::make_shared<GraphViews>()));
  EXPECT_THROW(runner.make_ready(blocks, {}, {}), InternalError);
  const auto executor = runner.prepare(blocks);  // this only asks how much memory the batch takes
  EXPECT_THROW(runner.run(*executor, {}, {}, kExecutorStep), InternalError);
}

TEST_P(EngineModelTest, AgreesWithTheInterpreterUnderDropoutOfEveryKind) {
  ModelCase model = GetParam();
  model.options.dropout = 0.4;
  model.options.input_dropout = 0.2;
  model.options.attention_dropout = model_info(model.options.model).heads > 0 ? 0.3 : 0;
  for (const BlocksInput& input : block_inputs(12, model.options.layers)) {
    SCOPED_TRACE(model.name + " on " + input.name);
    const Dfg dfg = training_dfg(options_for(model.options, input.blocks));
    // Dropped edges leave softmaxes of almost one element, whose gradients cancel.
    expect_plans_agree(dfg, input.blocks, rounded_to_float(model_bindings(dfg, input.blocks, 29)), kExecutorStep, 1e-4);
  }
}

TEST_P(EngineModelTest, AgreesWithTheInterpreterInEvaluation) {
  ModelCase model = GetParam();
  model.options.training = false;
  for (const BlocksInput& input : block_inputs(13, model.options.layers)) {
    SCOPED_TRACE(model.name + " on " + input.name);
    const Dfg dfg = build_model(options_for(model.options, input.blocks));
    expect_plans_agree(dfg, input.blocks, rounded_to_float(model_bindings(dfg, input.blocks, 31)), kExecutorStep);
  }
}

TEST_P(EngineModelTest, ThreadsDoNotChangeABit) {
  const ModelCase& model = GetParam();
  for (const BlocksInput& input : block_inputs(12, model.options.layers)) {
    const Dfg dfg = training_dfg(options_for(model.options, input.blocks));
    const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 24));
    Outputs first;
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      const Outputs outputs = run_plan(dfg, input.blocks, bindings, kExecutorStep, {});
      if (threads == 1) first = outputs;
      for (const auto& [name, values] : outputs) {
        ASSERT_TRUE(same_bits(values, first.at(name)))
            << model.name << " on " << input.name << ": " << name << " with " << threads << " threads";
      }
    }
  }
}

TEST_P(EngineModelTest, ARunRepeatsItself) {
  const ModelCase& model = GetParam();
  const BlocksInput input = block_inputs(13, model.options.layers).front();
  const Dfg dfg = training_dfg(options_for(model.options, input.blocks));
  const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 25));
  const Outputs once = run_plan(dfg, input.blocks, bindings, kExecutorStep, {}, 1);
  const Outputs thrice = run_plan(dfg, input.blocks, bindings, kExecutorStep, {}, 3);
  for (const auto& [name, values] : once) EXPECT_TRUE(same_bits(values, thrice.at(name))) << model.name << name;
}

TEST_F(EngineTest, AnotherStepDropsOtherElements) {
  ModelCase model = model_cases().front();
  model.options.dropout = 0.5;
  const BlocksInput input = block_inputs(14, model.options.layers).front();
  const Dfg dfg = training_dfg(options_for(model.options, input.blocks));
  const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 26));
  const auto logits = [&](const StepContext& step) {
    return run_plan(dfg, input.blocks, bindings, step, {}).at("logits");
  };
  EXPECT_FALSE(same_bits(logits({5, 3}), logits({5, 4})));
  EXPECT_FALSE(same_bits(logits({5, 3}), logits({6, 3})));
  EXPECT_TRUE(same_bits(logits({5, 3}), logits({5, 3})));
}

// Training and evaluation share constants and arena: the second plan computes no constant of the
// first one again.
TEST_F(EngineTest, PlansShareTheirConstants) {
  const ModelCase model = model_cases().front();
  const BlocksInput input = block_inputs(15, model.options.layers).front();
  ModelOptions options = options_for(model.options, input.blocks);
  const Dfg train = training_dfg(options);
  options.training = false;
  const Dfg eval = build_model(options);
  const ref::Bindings bindings = rounded_to_float(model_bindings(train, input.blocks, 27));
  const auto views = std::make_shared<GraphViews>();
  ConstantPool pool;
  BoundPlan first(make_plan(train, input.blocks, {}), input.blocks, bindings, views, pool);
  EXPECT_FALSE(pool.empty());
  const size_t constants = pool.size();
  BoundPlan second(make_plan(eval, input.blocks, {}), input.blocks, bindings, views, pool);
  EXPECT_EQ(pool.size(), constants);
  EXPECT_EQ(second.executor().constant_bytes(pool), 0);
  second.executor().run(kExecutorStep);
  EXPECT_TRUE(
      same_bits(second.outputs().at("logits"), run_plan(eval, input.blocks, bindings, kExecutorStep, {}).at("logits")));
}

TEST_F(EngineTest, MistakesOfTheCallerAreCaught) {
  const ModelCase model = model_cases().front();
  const BlocksInput input = block_inputs(16, model.options.layers).front();
  const Dfg dfg = training_dfg(options_for(model.options, input.blocks));
  Executor executor(make_plan(dfg, input.blocks, {}), input.blocks, std::make_shared<GraphViews>());
  ConstantPool pool;
  EXPECT_THROW(executor.allocate(allocate_bytes(executor.arena_bytes()), pool), InternalError) << "nothing is bound";
  set_num_threads(num_threads() + 1);
  EXPECT_THROW(executor.allocate(allocate_bytes(executor.arena_bytes()), pool), InternalError) << "threads changed";
}

}  // namespace
}  // namespace nacre::test
