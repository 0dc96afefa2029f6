// Tests random DFGs that nobody would write: every plan of a DFG must compute what the interpreter
// computes.
#include <gtest/gtest.h>

#include "nacre/base/parallel.h"
#include "support/big_graphs.h"
#include "support/random_dfg.h"
#include "support/random_graphs.h"
#include "support/run_plan.h"
#include "support/values.h"

namespace nacre::test {
namespace {

constexpr StepContext kRandomStep{3, 8};

ref::Bindings weak_bindings(const Dfg& dfg, const Blocks& blocks, uint64_t seed) {
  return rounded_to_float(random_bindings(dfg, blocks, seed, {.scale = 0.7}));
}

// Several DFGs share a test, because on a GPU each takes a while to compile and tests are divided
// among processes.
constexpr uint64_t kDfgs = 250, kTogether = 10;

class RandomDfgs : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomDfgs, EveryPlanAgreesWithTheInterpreter) {
  const std::vector<GraphCase> graphs = random_graphs(71, 9);
  const std::vector<BlocksCase> blocks = random_blocks(72, 2, 3);
  for (uint64_t seed = GetParam(); seed < GetParam() + kTogether; ++seed) {
    Dfg dfg = random_dfg(seed, 4 + static_cast<int>(seed % 40));
    differentiate(dfg);
    const size_t which = seed % (graphs.size() + blocks.size());
    const Blocks on =
        which < graphs.size() ? Blocks::full(graphs[which].graph, 2) : Blocks(blocks[which - graphs.size()].layers);
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_plans_agree(dfg, on, weak_bindings(dfg, on, seed), kRandomStep, 1e-4);
    if (testing::Test::HasFailure()) FAIL() << print_dfg(dfg);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDfgs, testing::Range(uint64_t{0}, kDfgs, kTogether),
                         [](const auto& from) { return "from" + std::to_string(from.param); });

TEST(RandomDfg, ThreadsDoNotChangeABit) {
  const Graph graph = typed_weighted_graph({.vertices = 700, .edges = 3000, .hub_edges = 2000, .seed = 8});
  const Blocks blocks = Blocks::full(graph, 2);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Dfg dfg = random_dfg(1000 + seed, 30);
    differentiate(dfg);
    const ref::Bindings bindings = weak_bindings(dfg, blocks, seed);
    set_num_threads(1);
    const Outputs first = run_plan(dfg, blocks, bindings, kRandomStep, {});
    set_num_threads(4);
    for (const auto& [name, values] : run_plan(dfg, blocks, bindings, kRandomStep, {})) {
      ASSERT_TRUE(same_bits(values, first.at(name))) << "seed " << seed << ": " << name << "\n" << print_dfg(dfg);
    }
  }
  set_num_threads(2);
}

}  // namespace
}  // namespace nacre::test
