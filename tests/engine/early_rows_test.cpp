// Tests which rows a rank computes before those of other ranks have arrived, what that is expected
// to save, and that plans, steps and forecasts agree about it. ranks_test.cpp tests the values.
#include "nacre/plan/early_rows.h"

#include <gtest/gtest.h>

#include "model/cases.h"
#include "nacre/engine/rank_block.h"
#include "nacre/engine/step_forecast.h"
#include "nacre/plan/overlap.h"
#include "support/rng.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

using What = PlannedAction::What;

// A rank that has half of a graph. Every second vertex has neighbours on the other rank.
struct Half {
  Graph graph;
  Partition parts;
  int layers;
  std::shared_ptr<const LocalGraph> local;
  Blocks blocks = Blocks(std::vector<Graph>());

  explicit Half(int64_t vertices, int with_layers = 2) : layers(with_layers) {
    Rng rng(3);
    std::vector<int64_t> row_ptr{0};
    std::vector<NodeId> columns;
    std::vector<int32_t> part;
    for (int64_t v = 0; v < vertices; ++v) {
      part.push_back(static_cast<int32_t>(2 * v / vertices));
      const int64_t own = part.back() * vertices / 2, other = vertices / 2 - own;
      for (int i = 0; i < 8; ++i) columns.push_back(static_cast<NodeId>(own + rng.below(vertices / 2)));
      for (int i = 0; i < 2 && v % 2 == 0; ++i) columns.push_back(static_cast<NodeId>(other + rng.below(vertices / 2)));
      row_ptr.push_back(static_cast<int64_t>(columns.size()));
    }
    GraphArrays arrays;
    arrays.num_src = arrays.num_dst = vertices;
    arrays.row_ptr = std::move(row_ptr);
    arrays.col_idx = std::move(columns);
    graph = Graph::trusted(std::move(arrays));
    parts = {2, std::move(part)};
    local = std::make_shared<const LocalGraph>(local_graph(graph, parts, 0));
    const TotalRows totals{vertices, graph.num_edges(), 0, 0};
    blocks = Blocks::of_rank({local->graph}, layers, make_planning_links(*local, totals));
  }

  Plan plan(const PlanOptions& options = {}) const {
    ModelOptions model = model_cases()[0].options;  // the model is gcn
    model.hidden = model.out_dim = 32;
    model.layers = layers;
    model.sampling = Sampling::blocks;
    Dfg dfg = build_model(options_for(model, Blocks::full(graph, layers)));
    differentiate(dfg);
    return make_plan(dfg, blocks, options, {.validate = true});
  }
};

PlanOptions without_the_pass() {
  PlanOptions options;
  options.disabled_passes.insert("choose_early_rows");
  return options;
}

std::vector<size_t> kernels_with_early_rows(const Plan& plan) {
  std::vector<size_t> list;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (plan.kernels[k].early.rows > 0) list.push_back(k);
  }
  return list;
}

TEST(EarlyRows, SumsOverNeighboursBeginBeforeTheHaloArrives) {
  const Half half(20000);
  const Plan plan = half.plan();
  const std::vector<size_t> early = kernels_with_early_rows(plan);
  ASSERT_FALSE(early.empty());
  const Kernel& sum = plan.kernels[early[0]];
  EXPECT_EQ(sum.kind, KernelKind::spmm);
  EXPECT_EQ(sum.early.rows, half.local->inside);
  EXPECT_EQ(half.local->inside, 5000);
  // The vertices with early rows have 8 edges each, the others 10. A row counts like an edge.
  EXPECT_NEAR(sum.early.share, 9.0 / 20, 1e-9);
  EXPECT_NE(early_rows_text(sum).find("the first 5,000 rows (45 % of the work)"), std::string::npos);
  EXPECT_NE(plan_text(plan, half.blocks).find(early_rows_text(sum)), std::string::npos);
  EXPECT_NE(plan_json(plan).find("\"early\""), std::string::npos);
}

TEST(EarlyRows, AStepHasThemBetweenTheHalvesOfTheExchange) {
  const Half half(20000);
  const Plan plan = half.plan();
  const std::vector<PlannedAction> actions = step_actions(plan, true);
  const auto at = [&](size_t kernel, What what) {
    const auto found = std::find(actions.begin(), actions.end(), PlannedAction{kernel, what});
    return found == actions.end() ? -1 : found - actions.begin();
  };
  for (const size_t k : kernels_with_early_rows(plan)) {
    int64_t calls = 0;
    for (size_t c = 0; c < k; ++c) {
      if (ends_of_kernels(plan, true)[c] != k || plan.kernels[c].kind != KernelKind::exchange) continue;
      ++calls;
      EXPECT_GE(at(c, What::start), 0);
      EXPECT_LT(at(c, What::start), at(k, What::early));
      EXPECT_LT(at(k, What::early), at(c, What::finish));
      EXPECT_LT(at(c, What::finish), at(k, What::rest));
    }
    EXPECT_GT(calls, 0);
    EXPECT_EQ(at(k, What::run), -1);
  }
  for (const PlannedAction& action : step_actions(plan, false)) {
    EXPECT_NE(action.what, What::early);
    EXPECT_NE(action.what, What::rest);
  }
}

TEST(EarlyRows, MustBeWorthAnotherStart) {
  const Half small(40);
  Plan plan = small.plan();
  EXPECT_TRUE(kernels_with_early_rows(plan).empty());
  const auto says = [&](const Kernel& k) { return k.early.why.find("could be hidden behind") != std::string::npos; };
  EXPECT_TRUE(std::any_of(plan.kernels.begin(), plan.kernels.end(), says));
  choose_early_rows(plan, small.blocks, nullptr, false);
  EXPECT_FALSE(kernels_with_early_rows(plan).empty());
  const Half large(20000);
  EXPECT_TRUE(kernels_with_early_rows(large.plan(without_the_pass())).empty());
}

// On a GPU, the rounding of a product may depend on its number of rows.
TEST(EarlyRows, ProductsAreCutOnTheHostOnly) {
  // With two layers, each rank would compute the rows of its halo from the features.
  const Half half(20000, 3);
  Plan plan = half.plan({.halo_rows = {HaloRows::early, {}}});
  const auto cut_products = [&] {
    const std::vector<size_t> early = kernels_with_early_rows(plan);
    return std::count_if(early.begin(), early.end(),
                         [&](size_t k) { return plan.kernels[k].kind == KernelKind::matmul; });
  };
  choose_early_rows(plan, half.blocks, nullptr, false);
  EXPECT_GT(cut_products(), 0);
  choose_early_rows(plan, half.blocks, nullptr, true);
  EXPECT_EQ(cut_products(), 0);
}

// A link that works by itself moves rows while early rows are computed. Two equal ranks then take
// less time for a step than without early rows.
TEST(EarlyRows, ForecastsKnowThem) {
  const Half half(20000);
  const Plan with = half.plan(), without = half.plan(without_the_pass());
  const RankRows rows = rows_of(*half.local);
  const NominalProfile& prices = nominal_cpu();
  const auto seconds = [&](const Plan& plan, bool overlap, bool alone) {
    RankStep step = forecast_rank(plan, rows, prices.model, prices.cache_bytes, overlap);
    ClockOptions clock{alone, std::vector<char>(step.moving.size(), 0), {{1}, {0}}};
    return longest_step(run_step_clock({step, step}, clock));
  };
  EXPECT_LT(seconds(with, true, true), seconds(without, true, true));
  EXPECT_EQ(seconds(with, false, true), seconds(without, false, true));
  // A device that moves its rows itself gains nothing from early rows, and has to start one more
  // kernel.
  EXPECT_GT(seconds(with, true, false), seconds(without, true, false));
}

}  // namespace
}  // namespace nacre::test
