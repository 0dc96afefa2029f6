// Tests the joint search with invented machines, on which the best plan is known.
#include "nacre/plan/search.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "nacre/plan/order.h"
#include "plan/plans.h"
#include "support/random_graphs.h"

namespace nacre::test {
namespace {

// Returns a machine on which only these things take time.
CostModel machine(const std::vector<std::pair<Feature, double>>& costs) {
  Coefficients c{};
  for (const auto& [feature, seconds] : costs) c[static_cast<size_t>(feature)] = seconds;
  return CostModel::uniform(c);
}
const CostModel kGathers = machine({{Feature::near_bytes, 1e-9}, {Feature::far_bytes, 1e-9}});
const CostModel kProducts = machine({{Feature::flops, 1e-9}});

SearchResult search_on(const PlannedModel& m, const CostModel& model, const Measure& measure = nullptr,
                       double budget = 0) {
  SearchOptions how;
  how.model = &model;
  how.budget_seconds = budget;
  how.measure = measure;
  return search_plan(m.dfg, m.blocks, {}, how);
}

ModelOptions sized(const std::string& model, int64_t in, int64_t hidden, int64_t out, int layers = 2) {
  ModelOptions o = usual(model, layers);
  o.in_dim = in;
  o.hidden = hidden;
  o.out_dim = out;
  return o;
}

std::string choice(const SearchResult& result, const std::string& key) {
  const auto found = result.options.choices.find(key);
  return found == result.options.choices.end() ? "" : found->second;
}

TEST(Search, AggregatesTheNarrowSide) {
  const SearchResult widens = search_on(plan_model(sized("gcn", 8, 8, 64)), kGathers);
  EXPECT_EQ(choice(widens, "matmul@layers.1.lin.weight"), "aggregate");
  EXPECT_EQ(choice(widens, "weight_grad@layers.1.lin.weight"), "aggregate") << "takes A·x from the forward pass";
  EXPECT_EQ(choice(widens, "matmul_t@layers.1.lin.weight"), "combine");
  const SearchResult narrows = search_on(plan_model(sized("gcn", 8, 64, 8)), kGathers);
  EXPECT_EQ(choice(narrows, "matmul@layers.1.lin.weight"), "combine");
  EXPECT_EQ(choice(narrows, "matmul_t@layers.1.lin.weight"), "aggregate");
  EXPECT_EQ(choice(narrows, "weight_grad@layers.1.lin.weight"), "combine") << "takes Aᵀ·g from the input gradient";
}

// A layer 100 → 64 with an input gradient moves 64 twice; without it, moving 100 once is less.
TEST(Search, CountsTheMissingInputGradientOfTheFirstLayer) {
  ModelOptions first = sized("gcn", 100, 32, 64, 1);
  first.input_dropout = 0.5;  // otherwise the sum of features would be computed once
  const SearchResult without = search_on(plan_model(first), kGathers);
  EXPECT_EQ(choice(without, "matmul@layers.0.lin.weight"), "aggregate");
  EXPECT_EQ(choice(without, "weight_grad@layers.0.lin.weight"), "aggregate");
  const SearchResult with = search_on(plan_model(sized("gcn", 32, 100, 64)), kGathers);
  EXPECT_EQ(choice(with, "matmul@layers.1.lin.weight"), "combine");
  EXPECT_EQ(choice(with, "weight_grad@layers.1.lin.weight"), "combine");
}

TEST(Search, SumsOfFeaturesComputedOnceCostAlmostNothing) {
  const SearchResult narrows = search_on(plan_model(sized("gcn", 600, 16, 8)), kGathers);
  EXPECT_EQ(choice(narrows, "matmul@layers.0.lin.weight"), "aggregate") << "600 wide, but once in 100 epochs";
  PlannedModel m = plan_model(sized("gcn", 600, 16, 8));
  SearchOptions one;
  one.model = &kGathers;
  one.epochs = 1;
  EXPECT_EQ(choice(search_plan(m.dfg, m.blocks, {}, one), "matmul@layers.0.lin.weight"), "combine")
      << "for a single epoch it does not pay";
}

TEST(Search, MultipliesWherePairsAreFew) {
  for (const bool reversed : {false, true}) {
    const Graph graph = few_ends(reversed ? End::dst : End::src);
    EXPECT_EQ(graph.pairs(reversed ? End::dst : End::src).num_pairs, 4);
    const PlannedModel m = plan_on(Blocks::full(graph, 2), usual("rgcn"));
    const SearchResult result = search_on(m, kProducts);
    ASSERT_EQ(result.options.choices.size(), 5U);
    for (const auto& [site, option] : result.options.choices) EXPECT_EQ(option, reversed ? "dst" : "src") << site;
  }
}

TEST(Search, PredictsWhatItChose) {
  for (const char* model : {"gcn", "rgcn", "sage", "sage-lstm", "gat"}) {
    const PlannedModel m = plan_model(usual(model));
    SearchOptions how;
    const SearchResult result = search_plan(m.dfg, m.blocks, {}, how);
    const Plan plan = make_plan(m.dfg, m.blocks, result.options);
    EXPECT_DOUBLE_EQ(result.predicted, predict_plan(plan, m.blocks, how)) << model;
    EXPECT_LE(result.predicted, predict_plan(m.plan, m.blocks, how) * (1 + 1e-12)) << model << ": as written";
    EXPECT_TRUE(result.samples.empty());
    // Each group has one choice, which is the candidate with the best prediction.
    std::map<std::string, std::vector<Candidate>> groups;
    for (const Candidate& c : result.candidates) groups[c.group].push_back(c);
    for (const auto& [name, candidates] : groups) {
      EXPECT_EQ(std::count_if(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.chosen; }), 1)
          << model << " " << name;
      for (const Candidate& c : candidates) {
        EXPECT_GE(c.predicted, candidates.front().predicted) << "best first";
        EXPECT_LT(c.measured, 0);
      }
    }
    EXPECT_EQ(result.candidates.empty(), std::string(model) == "gat") << "no choice, no candidates";
  }
}

TEST(Search, KeepsWhatItWasGiven) {
  const PlannedModel m = plan_model(usual("rgcn"));
  PlanOptions base;
  base.hoist = false;
  base.table = PartitionTable::parse("dst-id=9");
  const SearchResult result = search_plan(m.dfg, m.blocks, base, {});
  EXPECT_FALSE(result.options.hoist);
  EXPECT_EQ(result.options.table, base.table);
}

TEST(Search, ChoosesBatchesOfSequences) {
  const PlannedModel m = plan_model(usual("sage-lstm"));
  const CostModel steps = machine({{Feature::steps, 1e-6}});
  const SearchResult result = search_on(m, steps);
  ASSERT_EQ(result.options.tables.size(), 2U);
  for (const auto& [kernel, table] : result.options.tables) {
    EXPECT_TRUE(kernel.starts_with("lstm@")) << kernel;
    EXPECT_EQ(table, "dst-id=256,dst-degree=min") << "fewest steps";
  }
}

TEST(Search, KeepsGatesWhereMemoryAllows) {
  const PlannedModel m = plan_model(sized("sage-lstm", 256, 256, 8));
  const auto kept = [&](int64_t keep_limit) {
    SearchOptions how;
    how.keep_limit = keep_limit;
    const SearchResult result = search_plan(m.dfg, m.blocks, {}, how);
    return std::count_if(result.options.choices.begin(), result.options.choices.end(),
                         [](const auto& c) { return c.second == "keep"; });
  };
  EXPECT_EQ(kept(0), 4);
  EXPECT_EQ(kept(int64_t{1} << 40), 4);
  EXPECT_EQ(kept(1), 0);
}

// ---- Timing.

// The predictions are nearly equal. On the "real" machine, sums as wide as the classes are very
// slow.
class TimingTest : public testing::Test {
 protected:
  TimingTest() : m_(plan_model(sized("gcn", 48, 64, 60))) {}

  double measure(const Plan& plan, size_t k) {
    ++calls_;
    const Kernel& kernel = plan.kernels[k];
    return kernel.kind == KernelKind::spmm && plan.dfg[kernel.root].type.row_size() == 60 ? 10 : 1e-3;
  }
  Measure measuring() {
    return [this](const Plan& plan, size_t k) { return measure(plan, k); };
  }

  PlannedModel m_;
  int calls_ = 0;
};

TEST_F(TimingTest, DecidesAgainstThePrediction) {
  const SearchResult predicted = search_on(m_, nominal_cpu().model);
  EXPECT_EQ(choice(predicted, "matmul@layers.1.lin.weight"), "combine") << "60 is narrower than 64";
  const SearchResult timed = search_on(m_, nominal_cpu().model, measuring(), 60);
  EXPECT_GT(calls_, 0);
  EXPECT_EQ(choice(timed, "matmul@layers.1.lin.weight"), "aggregate");
  const Plan plan = make_plan(m_.dfg, m_.blocks, timed.options);
  for (const Kernel* k : kernels_of(plan, KernelKind::spmm)) EXPECT_NE(plan.dfg[k->root].type.row_size(), 60);
  EXPECT_EQ(static_cast<int>(timed.samples.size()), calls_) << "every timing is reported";
  int measured = 0;
  for (const Candidate& c : timed.candidates) {
    measured += c.measured >= 0 ? 1 : 0;
    if (!c.chosen || c.group != "layers.1.lin.weight") continue;
    for (const Candidate& other : timed.candidates) {
      if (other.group == c.group && other.measured >= 0) {
        EXPECT_LE(c.measured, other.measured);
      }
    }
  }
  EXPECT_GE(measured, 2);
}

TEST_F(TimingTest, WithoutBudgetMeasuresNothing) {
  const SearchResult none = search_on(m_, nominal_cpu().model, measuring(), 0);
  EXPECT_EQ(calls_, 0);
  EXPECT_TRUE(none.samples.empty());
  EXPECT_EQ(none.options, search_on(m_, nominal_cpu().model).options);
  search_on(m_, nominal_cpu().model, nullptr, 60);  // nothing to measure with
}

TEST_F(TimingTest, StopsWhenTheBudgetIsSpent) {
  int calls = 0;
  const Measure slow = [&](const Plan&, size_t) {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return 0.03;
  };
  const SearchResult result = search_on(m_, nominal_cpu().model, slow, 0.02);
  EXPECT_LE(calls, 1);
  EXPECT_EQ(result.options, search_on(m_, nominal_cpu().model).options) << "half a comparison decides nothing";
}

TEST_F(TimingTest, WhatCannotBeMeasuredStaysPredicted) {
  const SearchResult result = search_on(
      m_, nominal_cpu().model, [](const Plan&, size_t) { return -1.0; }, 60);
  EXPECT_TRUE(result.samples.empty());
  EXPECT_EQ(result.options, search_on(m_, nominal_cpu().model).options);
}

TEST_F(TimingTest, KernelsOfEqualWorkAreTimedOnce) {
  std::map<std::string, int> seen;
  search_on(
      m_, nominal_cpu().model,
      [&](const Plan& plan, size_t k) {
        const Work work = kernel_work(plan.kernels[k], plan, m_.blocks, nominal_cpu().cache_bytes);
        std::string key = work.kind + std::to_string(static_cast<int>(plan.kernels[k].direction));
        for (const double amount : work.amount) key += " " + std::to_string(amount);
        ++seen[key];
        EXPECT_FALSE(plan.kernels[k].once) << "what runs once hardly matters";
        return 1e-3;
      },
      60);
  EXPECT_FALSE(seen.empty());
  for (const auto& [key, times] : seen) EXPECT_EQ(times, 1) << key;
}

// Sums towards sources and equally wide sums towards destinations are equal work, but not the same
// kernel.
TEST_F(TimingTest, DirectionsAreTimedApart) {
  std::set<Direction> seen;
  search_on(
      plan_model(sized("gcn", 48, 64, 64, 3)), nominal_cpu().model,
      [&](const Plan& plan, size_t k) {
        const Kernel& kernel = plan.kernels[k];
        if (kernel.kind == KernelKind::spmm && plan.dfg[kernel.root].type.row_size() == 64) {
          seen.insert(kernel.direction);
        }
        return 1e-3;
      },
      60);
  EXPECT_EQ(seen.size(), 2U);
}

// ---- The space of plans.

TEST_F(TimingTest, EveryOptionIsCountedOnce) {
  for (const char* model : {"gcn", "rgcn", "sage", "sage-lstm", "gat"}) {
    for (const bool timed : {false, true}) {
      const SearchResult result = timed ? search_on(plan_model(usual(model)), nominal_cpu().model, measuring(), 60)
                                        : search_on(plan_model(usual(model)), nominal_cpu().model);
      double plans = 1;
      for (const SpaceGroup& group : result.space.groups) {
        int64_t named = 1;  // the chosen option
        for (const auto& [rule, count] : group.left_out) {
          EXPECT_GT(count, 0) << model << " " << group.name << ": " << rule;
          named += count;
        }
        EXPECT_EQ(named, group.options) << model << " " << group.name;
        EXPECT_EQ(group.options, std::count_if(result.candidates.begin(), result.candidates.end(),
                                               [&](const Candidate& c) { return c.group == group.name; }));
        const auto measured =
            std::count_if(result.candidates.begin(), result.candidates.end(),
                          [&](const Candidate& c) { return c.group == group.name && c.measured >= 0; });
        EXPECT_EQ(group.timed, measured) << model << " " << group.name;
        plans *= static_cast<double>(group.options);
      }
      EXPECT_EQ(result.space.plans(), plans);
      EXPECT_GT(result.space.planned, 0);
      EXPECT_NE(space_text(result.space).find("space of plans"), std::string::npos);
    }
  }
}

// Few sources send to all others, so dividing the edges gives all of them to the sources. The other
// half is empty, and its kernels are more work.
TEST_F(TimingTest, OptionsThatOnlyDoMoreWorkAreNotTimed) {
  const PlannedModel m = plan_on(Blocks::full(few_ends(End::src), 2), usual("rgcn"));
  SearchOptions how;
  how.divide_edges = true;
  how.measure = measuring();
  how.budget_seconds = 60;
  const SearchResult result = search_plan(m.dfg, m.blocks, {}, how);
  int64_t superfluous = 0;
  for (const SpaceGroup& group : result.space.groups) {
    for (const auto& [rule, count] : group.left_out) superfluous += rule.starts_with("at least as much") ? count : 0;
  }
  EXPECT_GT(superfluous, 0) << space_text(result.space);
}

TEST(TotalWork, CoversWhatIsNowhereLess) {
  Work work{"spmm"};
  work[Feature::edges] = 10;
  TotalWork less, more;
  less.add(work, 0, 1);
  more.add(work, 0, 1);
  EXPECT_TRUE(less.covers(more) && more.covers(less)) << "equal work";
  work[Feature::rows] = 1;
  more.add(work, 0, 1);
  EXPECT_TRUE(less.covers(more));
  EXPECT_FALSE(more.covers(less));
  TotalWork turned;
  turned.add(work, 1, 0.1);
  EXPECT_FALSE(turned.covers(more)) << "little work, but from the other end of the edges";
  less.peak = 1;
  EXPECT_FALSE(less.covers(more)) << "takes more memory";
}

// ---- The final comparison with the plan by rules.

class Settling : public TimingTest {
 protected:
  // By its single kernels, the plan that was found is ten seconds faster than the plan by rules.
  // Then both take turns, in which the plan found needs `found` seconds and the other one 1.
  SearchResult search(double found) {
    how_.budget_seconds = 60;
    how_.measure = measuring();
    how_.rules = &rules_;
    how_.measure_step = [this, found](const Plan& plan) {
      turns_.emplace_back(plan.options == rules_ ? "rules" : "found");
      return plan.options == rules_ ? 1.0 : found;
    };
    turns_.clear();
    return search_plan(m_.dfg, m_.blocks, {}, how_);
  }
  static std::vector<Candidate> steps(const SearchResult& result) {
    std::vector<Candidate> list;
    for (const Candidate& c : result.candidates) {
      if (c.group == "step") list.push_back(c);
    }
    return list;
  }

  SearchOptions how_;
  PlanOptions rules_ = search_on(m_, nominal_cpu().model).options;
  std::vector<std::string> turns_;
};

TEST_F(Settling, ThePlanFoundMustWinWholeSteps) {
  for (const double found : {0.5, 0.99, 2.0}) {  // 0.99 is no clear win
    const SearchResult result = search(found);
    EXPECT_EQ(result.options != rules_, found < 0.9);
    const std::vector<std::string> one_turn = {"rules", "found"}, two = {"rules", "found", "rules", "found"};
    EXPECT_EQ(turns_, found < 0.9 ? two : one_turn) << "who lost a turn is given up";
    const auto step = steps(result);
    ASSERT_EQ(step.size(), 2U);
    EXPECT_EQ(step[0].what, "rules");
    EXPECT_EQ(step[0].measured, 1);
    EXPECT_EQ(step[0].chosen, found > 0.9);
    EXPECT_EQ(step[1].what, "searched");
    EXPECT_EQ(step[1].measured, found);
    EXPECT_EQ(step[1].chosen, found < 0.9);
    for (const Candidate& c : result.candidates)
      EXPECT_TRUE(c.group != "layers.1.lin.weight" || !c.chosen ||
                  c.what.find(found > 0.9 ? "combine" : "aggregate") != std::string::npos);
  }
}

TEST_F(Settling, EqualPlansHaveNothingToSettle) {
  rules_ = search_on(m_, nominal_cpu().model, measuring(), 60).options;
  const SearchResult result = search(2);
  EXPECT_TRUE(turns_.empty());
  EXPECT_TRUE(steps(result).empty());
  EXPECT_EQ(result.options, rules_);
}

TEST_F(Settling, WhatCannotBeTimedIsNotBelieved) {
  const SearchResult unknown = search(-1);
  ASSERT_EQ(steps(unknown).size(), 2U);
  EXPECT_LT(steps(unknown)[1].measured, 0);
  EXPECT_EQ(unknown.options, rules_);
}

TEST_F(Settling, ShortRunsKeepThePlanByRules) {
  how_.epochs = 3;  // the four steps would cost more than they could save
  const SearchResult result = search(0.5);
  EXPECT_TRUE(turns_.empty());
  EXPECT_EQ(result.options, rules_);
  ASSERT_EQ(steps(result).size(), 2U);
  EXPECT_TRUE(steps(result)[0].chosen);
}

TEST_F(Settling, APlanByRulesThatDoesNotFitIsNotKept) {
  const auto memory = [&](const PlanOptions& o) { return peak_live_bytes(make_plan(m_.dfg, m_.blocks, o), m_.blocks); };
  rules_ = {};
  rules_.fuse = rules_.rewrite = false;  // stores what others do not
  const PlanOptions found = search_on(m_, nominal_cpu().model, measuring(), 60).options;
  ASSERT_GT(memory(rules_), memory(found));
  how_.memory_limit = memory(found);
  const SearchResult result = search(2);
  EXPECT_TRUE(turns_.empty());
  EXPECT_LE(memory(result.options), how_.memory_limit);
}

// A plan that keeps what could be computed again, and takes more than keep_limit, is not timed.
// Timing it may take long: a GPU would compute kept gates on the host.
TEST(Search, WhatDoesNotFitIsNotTimed) {
  const PlannedModel m = plan_model(usual("sage-lstm"));
  const auto timed_with_kept_gates = [&](int64_t keep_limit) {
    int timed = 0;
    SearchOptions how;
    how.keep_limit = keep_limit;
    how.budget_seconds = 60;
    how.measure = [&](const Plan& plan, size_t) {
      timed += std::any_of(plan.dfg.nodes().begin(), plan.dfg.nodes().end(),
                           [](const Node& node) { return node.op == Op::lstm_gates; });
      return 1e-3;
    };
    search_plan(m.dfg, m.blocks, {}, how);
    return timed;
  };
  EXPECT_GT(timed_with_kept_gates(0), 0);
  EXPECT_EQ(timed_with_kept_gates(1), 0);
}

TEST(Search, AnotherPlanMayBeatThatByRules) {
  const PlannedModel m = plan_model(usual("gat"));
  PlanOptions rules;
  rules.fuse = rules.rewrite = false;
  SearchOptions how;
  how.epochs = 1000;
  how.rules = &rules;
  how.others = {{"fused", {}}};
  for (const double other : {0.5, 2.0}) {
    how.measure_step = [&](const Plan& plan) { return plan.options == rules ? 1.0 : other; };
    const SearchResult result = search_plan(m.dfg, m.blocks, rules, how);
    EXPECT_EQ(result.options, other < 1 ? PlanOptions{} : rules);
    ASSERT_EQ(result.candidates.size(), 2U) << "found is that by rules: nothing to search for";
    EXPECT_EQ(result.candidates[1].what, "fused");
    EXPECT_EQ(result.candidates[1].chosen, other < 1);
  }
}

// ---- The same search twice.

TEST(Search, IsTheSameTwice) {
  const CostModel free = machine({});  // all predictions are equal
  for (const char* model : {"gcn", "rgcn", "sage", "sage-lstm"}) {
    const PlannedModel m = plan_model(usual(model));
    for (const CostModel* with : {&free, &nominal_cpu().model, &kGathers}) {
      const SearchResult a = search_on(m, *with);
      const SearchResult b = search_on(m, *with);
      EXPECT_EQ(a.options, b.options) << model;
      ASSERT_EQ(a.candidates.size(), b.candidates.size());
      for (size_t i = 0; i < a.candidates.size(); ++i) {
        EXPECT_EQ(a.candidates[i].what, b.candidates[i].what);
        EXPECT_EQ(a.candidates[i].predicted, b.candidates[i].predicted);
      }
    }
  }
}

TEST(Search, TakesAwkwardGraphs) {
  for (const char* model : {"gcn", "rgcn", "sage-lstm"}) {
    for (const BlocksInput& input : block_inputs(20, 2)) {
      const PlannedModel m = plan_on(input.blocks, usual(model));
      const SearchResult result = search_plan(m.dfg, m.blocks, {}, {});
      EXPECT_NO_THROW(make_plan(m.dfg, m.blocks, result.options)) << model << " on " << input.name;
      EXPECT_TRUE(std::isfinite(result.predicted));
    }
  }
}

}  // namespace
}  // namespace nacre::test
