// Tests what plans are made for a request: when the edges of the graph may be divided, which takes
// memory of the host.
#include "nacre/plan/policy.h"

#include <gtest/gtest.h>

#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"
#include "plan/devices.h"
#include "plan/plans.h"
#include "support/cache_folder.h"

namespace nacre::test {
namespace {

// Two vertices send to all leaves of one half of the graph, and all leaves of the other half send
// to two vertices. So dividing the edges between the pairs of their ends saves nearly all products.
Graph senders_and_receivers(NodeId leaves) {
  EdgeList list;
  list.num_nodes = 2 * (leaves + 2);
  list.num_types = 2;
  const auto put = [&](NodeId src, NodeId dst, uint16_t type) {
    list.src.push_back(src);
    list.dst.push_back(dst);
    list.type.push_back(type);
  };
  for (NodeId leaf = 0; leaf < leaves; ++leaf) {
    for (NodeId hub = 0; hub < 2; ++hub) {
      for (uint16_t type = 0; type < 2; ++type) {
        put(hub, 4 + leaf, type);
        put(4 + leaves + leaf, 2 + hub, type);
      }
    }
  }
  return build_graph(std::move(list), "senders and receivers");
}

ModelOptions wide_rgcn() {
  ModelOptions options = usual("rgcn");
  options.in_dim = options.hidden = 128;
  return options;
}

// A timer of a device on which plans that divide the edges are by far the fastest.
class FastIfDivided : public PlanTimer {
 public:
  double kernel(const Plan& plan, size_t) override { return step(plan); }
  double step(const Plan& plan) override { return divides_edges(plan.options.choices) ? 1e-6 : 1; }
};

class Policy : public testing::Test {
 protected:
  PlanAnswer answer(const Blocks& blocks, PlanRequest request, bool room, const DeviceTraits& device = {}) {
    request.epochs = 1 << 30;
    request.host_has_room = [this, room](int64_t bytes) {
      asked_ = bytes;
      return room;
    };
    PlanningInput input{model_.dfg, blocks};
    input.device = device;
    input.device_type = device.gpu ? "cuda" : "cpu";
    input.available_bytes = [] { return int64_t{1} << 40; };
    input.timer = [](int64_t, int64_t) { return std::make_unique<FastIfDivided>(); };
    return answer_request(std::move(input), request);
  }

  // Returns the name of a file with a plan that divides the edges.
  std::string divided_plan() const {
    const Blocks blocks = Blocks::full(graph_, 2);
    const Dfg dfg = without_scores(model_.dfg);
    PlanOptions options;
    for (const Site& site : find_sites(prepare_dfg(dfg, blocks, options), blocks.cover_layers()))
      options.choices[site.key] = kCoverOption;
    const std::string file = (cache_.path() / "divided.plan").string();
    write_file(file, plan_json(make_plan(dfg, blocks, options)));
    return file;
  }

  const CacheFolder cache_;
  const Graph graph_ = senders_and_receivers(500);
  const PlannedModel model_ = plan_on(Blocks::full(graph_, 2), wide_rgcn());
  int64_t asked_ = -1;  // the bytes of the host that were asked for last
};

TEST_F(Policy, PlansThatDivideTheEdgesAreComparedIfTheHostHasRoom) {
  for (const bool gpu : {false, true}) {
    for (const bool room : {false, true}) {
      const Blocks blocks = Blocks::full(graph_, 2);
      asked_ = -1;
      const PlanAnswer made = answer(blocks, {.plan = "off"}, room, gpu ? large_gpu(GemmType::f32) : DeviceTraits());
      EXPECT_EQ(asked_, covering_bytes(graph_.num_edges())) << gpu;
      EXPECT_EQ(blocks.cover_bytes() > 0, room) << gpu;
      EXPECT_TRUE(room || !blocks.uses_cover(made.plan.dfg)) << gpu;
    }
  }
}

// The edges are divided on the host, so the memory of the GPU may be small.
TEST_F(Policy, TheMemoryOfAGpuDoesNotMatterForDividing) {
  const Blocks blocks = Blocks::full(graph_, 2);
  answer(blocks, {.plan = "off", .memory_limit = covering_bytes(graph_.num_edges()) / 2}, true,
         large_gpu(GemmType::f32));
  EXPECT_GT(blocks.cover_bytes(), 0);
}

TEST_F(Policy, PlanFilesThatDivideTheEdgesNeedRoom) {
  const std::string file = divided_plan();
  for (const bool resumed : {false, true}) {
    PlanRequest request;
    request.plan = resumed ? "off" : file;
    if (resumed) request.resumed_plan = file;
    const Blocks blocks = Blocks::full(graph_, 2);
    try {
      answer(blocks, request, false);
      ADD_FAILURE() << "the plan was accepted";
    } catch (const UserError& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.rfind(file, 0), 0U) << what;
      EXPECT_NE(what.find("divides the edges of the graph"), std::string::npos) << what;
    }
    EXPECT_EQ(blocks.cover_bytes(), 0) << "nothing was made";
    EXPECT_TRUE(blocks.uses_cover(answer(blocks, request, true).plan.dfg));
    // Halves that are there take no further memory.
    EXPECT_TRUE(blocks.uses_cover(answer(blocks, request, false).plan.dfg));
  }
  PlanRequest unreadable;
  unreadable.plan = "off";
  unreadable.resumed_plan = (cache_.path() / "missing").string();
  EXPECT_NO_THROW(answer(Blocks::full(graph_, 2), unreadable, false)) << "a new plan is made";
}

TEST_F(Policy, CachedPlansThatDivideTheEdgesAreIgnoredWithoutRoom) {
  const auto ask = [&](bool room, std::string& source) {
    const Blocks blocks = Blocks::full(graph_, 2);
    const PlanAnswer made = answer(blocks, {.plan = "auto"}, room);
    source = made.source;
    EXPECT_TRUE(room || blocks.cover_bytes() == 0) << "the edges were divided without room";
    return blocks.uses_cover(made.plan.dfg);
  };
  std::string source;
  ASSERT_TRUE(ask(true, source)) << "the plan divides the edges";
  EXPECT_EQ(source, "searched");
  EXPECT_TRUE(ask(true, source));
  EXPECT_EQ(source, "cached");
  EXPECT_FALSE(ask(false, source));
  EXPECT_EQ(source, "searched");
  EXPECT_TRUE(ask(true, source)) << "the plan has stayed in the cache";
  EXPECT_EQ(source, "cached");
}

// What is fastest with values stored as bf16 need not be fastest with values of f32.
TEST_F(Policy, EveryPrecisionHasPlansOfItsOwnInTheCache) {
  for (const GemmType products : {GemmType::f32, GemmType::tf32, GemmType::bf16}) {
    for (const char* source : {"searched", "cached"}) {
      const PlanAnswer made = answer(Blocks::full(graph_, 2), {.plan = "auto"}, true, large_gpu(products));
      EXPECT_EQ(made.source, source) << static_cast<int>(products);
      EXPECT_EQ(made.plan.narrow.empty(), products != GemmType::bf16);
    }
  }
}

}  // namespace
}  // namespace nacre::test
