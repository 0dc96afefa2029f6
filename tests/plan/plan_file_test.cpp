// Tests of plans as text and as files.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/dfg/recompute.h"
#include "plan/plans.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

using nlohmann::json;

TEST(PlanText, ShowsWhatRunsOnceWhatRunsEveryStepAndWhy) {
  ModelOptions options = usual("sage");
  options.aggregator = "max";
  const PlannedModel m = plan_model(options);
  const std::string text = plan_text(m.plan, m.blocks);
  for (const char* part : {"plan auto", "fuse=true", "computed once, before training", "every step", "matmul", "GFLOP",
                           "not faster: reduces by maximum",
                           "edge values recomputed instead of stored: ", "%0 = input : v0[48] name=x", "output loss"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_NE(plan_text(plan_model(options, {.fuse = false}).plan, m.blocks).find("plan tensor"), std::string::npos);
}

TEST(PlanText, EveryPassIsNamedAndTimed) {
  const Plan plan = plan_model(usual("gcn")).plan;
  ASSERT_GE(plan.passes.size(), 4U);
  EXPECT_EQ(plan.passes.front().pass, "merge_equal_nodes");
  EXPECT_EQ(plan.passes.back().pass, "validate");
  for (const PassTime& pass : plan.passes) EXPECT_GE(pass.seconds, 0);
}

TEST(PlanFile, LoadsBackAsTheSamePlan) {
  for (const ModelCase& c : model_cases()) {
    std::vector<PlanOptions> all = {{}, {.hoist = false}, {.fuse = false, .hoist = false}, {.rewrite = false}};
    all.push_back({.table = PartitionTable::parse("src-id=3,edge-type=1"), .split_outliers = false});
    for (const Recomputable& r : find_recomputable(plan_model(c.options).plan.dfg))
      all.push_back({.recompute = {r.name}});
    for (const char* option : {"combine", "src", "dst"}) all.push_back(choosing(plan_model(c.options), option));
    for (const PlanOptions& how : all) {
      const PlannedModel m = plan_model(c.options, how);
      Plan loaded = load_plan(plan_json(m.plan), "my.plan", m.dfg, m.blocks);
      EXPECT_EQ(loaded.name, "my.plan");
      EXPECT_EQ(loaded.options, how);
      loaded.name = m.plan.name;
      EXPECT_EQ(plan_text(loaded, m.blocks), plan_text(m.plan, m.blocks)) << c.name;
      EXPECT_EQ(plan_json(loaded), plan_json(m.plan)) << c.name;
    }
  }
}

PlanOptions full_options() {
  PlanOptions how;
  how.fuse = false;
  how.hoist = false;
  how.rewrite = false;
  how.split_outliers = false;
  how.choices = {{"typed_matmul@layers.0.weight", "src"}, {"typed_weight_grad@layers.1.weight", "dst"}};
  how.table = PartitionTable::parse("dst-id=16,dst-degree=min");
  how.tables = {{"typed_matmul@layers.1.weight", "src-id=64,edge-type=1"}, {"with \"quotes\" and \\", "edge-id=1"}};
  how.keep_sums = 11;
  how.vertex_factors = true;
  how.join_dots = true;
  how.join_products = {13, 14, true};
  return how;
}

TEST(PlanOptionsText, ReadsBackWhatItWrites) {
  PlanOptions again = full_options();
  again.recompute = {"relu@layers.0.lin.bias", "with \"quotes\""};
  for (const PlanOptions& how : {PlanOptions{}, full_options(), again}) {
    EXPECT_EQ(parse_options(options_json(how), "f"), how) << options_json(how);
  }
  EXPECT_EQ(parse_options("{}", "f"), PlanOptions{}) << "what is missing is as usual";
}

TEST(PlanOptionsText, DamageIsTheUsersError) {
  const json good = json::parse(options_json(full_options()));
  const auto expect_refused = [](const std::string& text, const std::string& what) {
    EXPECT_THROW(parse_options(text, "some.plan"), UserError) << what << ": " << text;
  };
  for (const char* text : {"", "nonsense", "[]", "7", "null", "{\"fuse\": tru", "\"fuse\""})
    expect_refused(text, "text");
  const std::vector<json> junk = {json(7), json(2.5), json("x"), json::array({1}), json(), json::object({{"a", 1}})};
  for (const char* key : {"fuse", "hoist", "rewrite", "split_outliers", "choices", "table", "tables", "recompute",
                          "vertex_factors", "join_dots"}) {
    for (const json& value : junk) {
      json broken = good;
      broken[key] = value;
      expect_refused(broken.dump(), key);
    }
  }
  for (const char* table : {"dst-id", "dst-id=0", "dst-id=-1", "dst-id=x", "edge-degree=1", "dst-id=1,dst-id=2", "=",
                            "dst-id=99999999999999999999"}) {
    json broken = good;
    broken["table"] = table;
    expect_refused(broken.dump(), table);
    broken = good;
    broken["tables"]["typed_matmul@layers.1.weight"] = table;
    expect_refused(broken.dump(), table);
  }
}

TEST(PlanFile, KeepsChoicesAndTables) {
  PlanOptions how = full_options();
  how.fuse = how.rewrite = true;
  how.tables.erase("with \"quotes\" and \\");
  const PlannedModel m = plan_model(usual("rgcn"), how);
  const Plan loaded = load_plan(plan_json(m.plan), "f", m.dfg, m.blocks);
  EXPECT_EQ(loaded.options, how);
  EXPECT_EQ(count_ops(loaded.dfg, Op::typed_matmul, SpaceKind::pair_src), 1);
  ASSERT_EQ(loaded.kernels.size(), m.plan.kernels.size());
  for (size_t k = 0; k < loaded.kernels.size(); ++k) EXPECT_EQ(loaded.kernels[k].table, m.plan.kernels[k].table);
  // The file holds the DFG after the choices were made. If somebody edits the choices in the file,
  // they no longer fit the DFG beside them.
  json edited = json::parse(plan_json(m.plan));
  edited["options"]["choices"]["typed_matmul@layers.0.weight"] = "dst";
  EXPECT_THROW(load_plan(edited.dump(), "f", m.dfg, m.blocks), UserError);
  edited["options"]["choices"]["typed_matmul@layers.0.weight"] = "sideways";
  EXPECT_THROW(load_plan(edited.dump(), "f", m.dfg, m.blocks), UserError);
}

TEST(PlanFile, OfAnotherModelOrSizeIsRefused) {
  const PlannedModel m = plan_model(usual("gcn"));
  const std::string file = plan_json(m.plan);
  for (const char* other : {"gin", "mlp"}) {
    EXPECT_THROW(load_plan(file, "f", plan_model(usual(other)).dfg, m.blocks), UserError) << other;
  }
  ModelOptions wider = usual("gcn");
  wider.hidden = 65;
  EXPECT_THROW(load_plan(file, "f", plan_model(wider).dfg, m.blocks), UserError);
}

TEST(PlanFile, DamageIsTheUsersError) {
  const PlannedModel m = plan_model(usual("gcn"));
  const json good = json::parse(plan_json(m.plan));
  const auto expect_refused = [&](const std::string& text, const char* what) {
    try {
      load_plan(text, "some.plan", m.dfg, m.blocks);
      ADD_FAILURE() << what << " was accepted";
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("some.plan: ", 0), 0U) << error.what();
    }
  };
  expect_refused("", "nothing");
  expect_refused("[1, 2]", "an array");
  expect_refused("null", "null");
  expect_refused("{}", "an empty object");
  expect_refused(good.dump().substr(0, good.dump().size() / 2), "half a file");
  const std::vector<json> junk = {json(), json(7), json(2.5), json("x"), json::array({1}), json::object()};
  for (const char* key : {"format", "version", "dfg"}) {
    json broken = good;
    broken.erase(key);
    expect_refused(broken.dump(), key);
    for (const json& value : junk) {
      broken[key] = value;
      expect_refused(broken.dump(), key);
    }
  }
  for (const char* key : {"fuse", "hoist", "rewrite", "split_outliers", "differentiate", "table"}) {
    for (const json& value : junk) {
      json broken = good;
      broken["options"][key] = value;
      expect_refused(broken.dump(), key);
    }
  }
  json broken = good;
  broken["options"] = 3;
  expect_refused(broken.dump(), "options");
}

// A file with bytes flipped at random is refused or works, but never causes a crash or another kind
// of error.
TEST(PlanFile, SurvivesRandomDamage) {
  const PlannedModel m = plan_model(usual("gcn"));
  const std::string good = plan_json(m.plan);
  Rng rng(8);
  for (int round = 0; round < 400; ++round) {
    std::string text = good;
    for (int64_t edits = 1 + rng.below(3); edits > 0; --edits) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      if (rng.uniform() < 0.5) {
        text.erase(at, static_cast<size_t>(1 + rng.below(20)));
      } else {
        text[at] = static_cast<char>(rng.below(256));
      }
    }
    try {
      load_plan(text, "f", m.dfg, m.blocks);
    } catch (const UserError&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace nacre::test
