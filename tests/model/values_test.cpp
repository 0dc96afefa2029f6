// The DFG of every model, run by the reference interpreter, gives the values of the model's
// formula.
#include <gtest/gtest.h>

#include <cmath>

#include "model/cases.h"
#include "model/plain.h"

namespace nacre::test {
namespace {

void expect_same_model(const ModelCase& c, const BlocksInput& input, bool training) {
  SCOPED_TRACE(c.name + " on " + input.name + (training ? ", training" : ", evaluation"));
  ModelOptions options = options_for(c.options, input.blocks);
  options.training = training;
  const Dfg dfg = build_model(options);
  const ref::Bindings bindings = model_bindings(dfg, input.blocks, 7);
  ref::Interpreter interpreter(dfg, input.blocks);
  interpreter.run(bindings, {});

  PlainModel plain(options, input.blocks, bindings);
  const Rows expected = plain.logits();
  const std::vector<double> logits = interpreter.value(dfg.output("logits"));
  ASSERT_EQ(logits.size(), expected.size() * static_cast<size_t>(options.out_dim));
  for (size_t k = 0; k < logits.size(); ++k) {
    const double e = expected[k / static_cast<size_t>(options.out_dim)][k % static_cast<size_t>(options.out_dim)];
    ASSERT_NEAR(logits[k], e, 1e-9 * (1 + std::abs(e))) << "element " << k;
  }
  const double loss = plain.loss(expected);
  EXPECT_NEAR(interpreter.scalar(dfg.output("loss")), loss, 1e-8 * (1 + std::abs(loss)));
}

class Values : public testing::TestWithParam<ModelCase> {};

TEST_P(Values, match_the_formula) {
  for (const BlocksInput& input : block_inputs(11, GetParam().options.layers)) {
    expect_same_model(GetParam(), input, false);
    expect_same_model(GetParam(), input, true);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Values, testing::ValuesIn(model_cases()),
                         [](const auto& of) { return of.param.name; });

TEST(BatchNorm, training_updates_the_running_statistics) {
  ModelOptions options;
  options.layers = 2;
  options.in_dim = 4;
  options.hidden = 3;
  options.out_dim = 2;
  options.norm = "batch";
  const Graph graph = random_graphs(3)[0].graph;
  const Blocks blocks = Blocks::full(graph, 2);
  const Dfg dfg = build_model(options);
  ref::Bindings bindings = model_bindings(dfg, blocks, 5);
  ref::Interpreter interpreter(dfg, blocks);
  interpreter.run(bindings, {});

  ASSERT_EQ(dfg.updates().size(), 2u);
  NodeRef moments = -1;
  for (int i = 0; i < dfg.size(); ++i) {
    if (dfg[i].op == Op::column_moments) moments = i;
  }
  ASSERT_GE(moments, 0);
  const std::vector<double> batch = interpreter.value(moments);
  for (size_t u = 0; u < 2; ++u) {
    const auto& [name, node] = dfg.updates()[u];
    EXPECT_EQ(name, u == 0 ? "layers.0.norm.running_mean" : "layers.0.norm.running_var");
    const std::vector<double> next = interpreter.value(node);
    for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(next[k], 0.9 * bindings[name][k] + 0.1 * batch[3 * u + k], 1e-12);
  }
}

}  // namespace
}  // namespace nacre::test
