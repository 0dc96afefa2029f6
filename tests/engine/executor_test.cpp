// Every model on every awkward graph: the planned engine against the double-precision interpreter of the untransformed
// DFG, forward and backward, fused and op by op; and the same bits on 1, 2 and 4 threads.
#include "nacre/engine/executor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/cases.h"
#include "nacre/base/parallel.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{5, 3};

Dfg training_dfg(const ModelOptions& options) {
  Dfg dfg = build_model(options);
  differentiate(dfg);
  return dfg;
}

class EngineTest : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(2); }
};

TEST_F(EngineTest, EveryModelAgreesWithTheInterpreter) {
  for (const ModelCase& model : model_cases()) {
    for (const BlocksInput& input : block_inputs(11, model.options.layers)) {
      const Dfg dfg = training_dfg(options_for(model.options, input.blocks));
      const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 23));
      ref::Interpreter reference(dfg, input.blocks);
      reference.run(bindings, kStep);
      for (const PlanOptions options : {PlanOptions{true, true}, PlanOptions{true, false}, PlanOptions{false, false}}) {
        SCOPED_TRACE(model.name + " on " + input.name + (options.fuse ? " fused" : " op by op"));
        const Outputs outputs = run_plan(dfg, input.blocks, bindings, kStep, options);
        for (const auto& [name, node] : dfg.outputs()) expect_close(outputs.at(name), reference.value(node), name);
      }
    }
  }
}

TEST_F(EngineTest, ThreadsDoNotChangeABit) {
  for (const ModelCase& model : model_cases()) {
    for (const BlocksInput& input : block_inputs(12, model.options.layers)) {
      const Dfg dfg = training_dfg(options_for(model.options, input.blocks));
      const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 24));
      Outputs first;
      for (const int threads : {1, 2, 4}) {
        set_num_threads(threads);
        const Outputs outputs = run_plan(dfg, input.blocks, bindings, kStep, {});
        if (threads == 1) first = outputs;
        for (const auto& [name, values] : outputs) {
          ASSERT_TRUE(same_bits(values, first.at(name)))
              << model.name << " on " << input.name << ": " << name << " with " << threads << " threads";
        }
      }
    }
  }
}

TEST_F(EngineTest, ARunRepeatsItself) {
  const ModelCase model = model_cases().front();
  const BlocksInput input = block_inputs(13, model.options.layers).front();
  const Dfg dfg = training_dfg(options_for(model.options, input.blocks));
  const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 25));
  const Outputs once = run_plan(dfg, input.blocks, bindings, kStep, {}, 1);
  const Outputs thrice = run_plan(dfg, input.blocks, bindings, kStep, {}, 3);
  for (const auto& [name, values] : once) EXPECT_TRUE(same_bits(values, thrice.at(name))) << name;
}

}  // namespace
}  // namespace nacre::test
