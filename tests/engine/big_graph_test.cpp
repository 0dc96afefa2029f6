// Tests models as wide as people train them on a graph of many chunks, with a hub whose row is cut
// into pieces. Results are compared with the interpreter, and have the same bits on any number of
// threads.
#include <gtest/gtest.h>

#include "model/cases.h"
#include "nacre/base/parallel.h"
#include "support/big_graphs.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{9, 1};

struct BigCase {
  const char* model;
  const char* aggregator;
  int64_t hub_edges;
};

class BigModel : public testing::TestWithParam<BigCase> {
 protected:
  void TearDown() override { set_num_threads(2); }

  static ModelOptions options(const Blocks& blocks) {
    ModelOptions o;
    o.model = GetParam().model;
    o.aggregator = GetParam().aggregator;
    o.in_dim = 24;
    o.hidden = 64;
    o.out_dim = 10;
    o.dropout = 0.5;
    // The activation is smooth, because f32 and double may fall on different sides of a kink.
    o.activation = "elu";
    return options_for(o, blocks);
  }
};

TEST_P(BigModel, AgreesWithTheInterpreterOnAnyNumberOfThreads) {
  const Graph graph = typed_weighted_graph({.vertices = 3000, .edges = 8000, .hub_edges = GetParam().hub_edges});
  const Blocks blocks = Blocks::full(graph, 2);
  Dfg dfg = build_model(options(blocks));
  differentiate(dfg);
  ref::Bindings bindings = rounded_to_float(random_bindings(dfg, blocks, 51, {.scale = 0.15}));
  for (double& w : bindings["loss_weight"]) w /= 1000;
  ref::Interpreter reference(dfg, blocks);
  reference.run(bindings, kStep);
  Outputs first;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    const Outputs outputs = run_plan(dfg, blocks, bindings, kStep, {});
    if (threads == 1) first = outputs;
    for (const auto& [name, node] : dfg.outputs()) {
      if (threads == 1) expect_close(outputs.at(name), reference.value(node), name, 1e-4);
      EXPECT_TRUE(same_bits(outputs.at(name), first.at(name))) << name << " on " << threads << " threads";
    }
  }
}

// The 36,000 edges into one vertex are cut into pieces. The row of an LSTM is one sequence, and
// shorter here to save time.
INSTANTIATE_TEST_SUITE_P(Models, BigModel,
                         testing::Values(BigCase{"gcn", "", 36000}, BigCase{"gat", "", 36000},
                                         BigCase{"gatv2", "", 36000}, BigCase{"sage", "mean", 36000},
                                         BigCase{"sage", "max", 36000}, BigCase{"rgcn", "", 36000},
                                         BigCase{"gin", "", 36000}, BigCase{"sage-lstm", "lstm", 6000}),
                         [](const auto& c) {
                           std::string name = std::string(c.param.model) + c.param.aggregator;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace nacre::test
