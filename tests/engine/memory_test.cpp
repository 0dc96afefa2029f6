// Tests of the arena: placement, the bill compared with what is taken, and that values stay inside.
#include "nacre/engine/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/cases.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "support/rng.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr int64_t kAlignment = 256;

bool live_together(const BufferRequest& a, const BufferRequest& b) { return a.first <= b.last && b.first <= a.last; }

std::vector<BufferRequest> random_requests(Rng& rng) {
  std::vector<BufferRequest> requests(static_cast<size_t>(rng.below(60)));
  const int64_t steps = 1 + rng.below(30);
  for (BufferRequest& r : requests) {
    // Some sizes occur again and again, as in models; some are odd, and some are 0.
    const int64_t kind = rng.below(10);
    r.bytes = kind == 0 ? 0 : kind < 6 ? 4096 * (1 + rng.below(3)) : 1 + rng.below(100000);
    r.first = static_cast<int>(rng.below(steps));
    r.last = r.first + static_cast<int>(rng.below(steps - r.first));
  }
  return requests;
}

int64_t live_bytes(const std::vector<BufferRequest>& requests, int step) {
  int64_t sum = 0;
  for (const BufferRequest& r : requests) sum += r.first <= step && step <= r.last ? r.bytes : 0;
  return sum;
}

TEST(Arena, LiveBuffersNeverOverlap) {
  Rng rng(1);
  double worst = 1;
  for (int round = 0; round < 500; ++round) {
    const std::vector<BufferRequest> requests = random_requests(rng);
    const ArenaPlan plan = plan_arena(requests);
    ASSERT_EQ(plan.offsets.size(), requests.size());
    int64_t floor = 0;
    for (int step = 0; step < 40; ++step) floor = std::max(floor, live_bytes(requests, step));
    EXPECT_EQ(plan.floor_bytes, floor);
    EXPECT_GE(plan.bytes, floor);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % kAlignment, 0);
      EXPECT_GE(plan.offsets[i], 0);
      EXPECT_LE(plan.offsets[i] + requests[i].bytes, plan.bytes);
      for (size_t j = 0; j < i; ++j) {
        if (!live_together(requests[i], requests[j]) || requests[i].bytes == 0 || requests[j].bytes == 0) continue;
        EXPECT_TRUE(plan.offsets[i] + requests[i].bytes <= plan.offsets[j] ||
                    plan.offsets[j] + requests[j].bytes <= plan.offsets[i])
            << "requests " << j << " and " << i << " of round " << round;
      }
    }
    if (floor > 200000) worst = std::max(worst, static_cast<double>(plan.bytes) / static_cast<double>(floor));
  }
  EXPECT_LT(worst, 1.5) << "placement wastes memory";
}

TEST(Arena, EqualRequestsGetEqualPlaces) {
  Rng rng(2);
  const std::vector<BufferRequest> requests = random_requests(rng);
  EXPECT_EQ(plan_arena(requests).offsets, plan_arena(requests).offsets);
}

TEST(Arena, NothingNeedsNothing) {
  EXPECT_EQ(plan_arena({}).bytes, 0);
  EXPECT_EQ(plan_arena({{0, 0, 3}}).bytes, 0);
  EXPECT_EQ(plan_arena({{1, 0, 0}}).bytes, kAlignment);
}

TEST(Arena, BuffersOfDifferentStepsShareBytes) {
  EXPECT_EQ(plan_arena({{4096, 0, 1}, {4096, 2, 3}, {2048, 4, 4}, {2048, 4, 4}}).bytes, 4096);
}

TEST(MemoryBill, AddsUpAndNamesTheLargest) {
  const std::vector<MemoryItem> items = {{"graph", 1000}, {"activations", 3 << 20}, {"nothing", 0}};
  EXPECT_EQ(total_bytes(items), 1000 + (3 << 20));
  const std::string text = memory_text(items);
  EXPECT_NE(text.find("3,145,728 B"), std::string::npos);
  EXPECT_NE(text.find("3,146,728 B"), std::string::npos);
  EXPECT_EQ(text.find("nothing"), std::string::npos);
  EXPECT_NO_THROW(require_fit(items, total_bytes(items)));
  try {
    require_fit(items, total_bytes(items) - 1);
    FAIL() << "one byte is missing";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("activations"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("--hidden"), std::string::npos) << error.what();
  }
}

// The executor takes exactly the memory that it announced: every value it computes lies in the
// arena it asked for or in a constant it announced, and no two values that live at the same time
// share a byte.
TEST(ExecutorMemory, IsWhatWasAnnounced) {
  for (const ModelCase& model : model_cases()) {
    const BlocksInput input = block_inputs(17, model.options.layers)[3];
    const Dfg dfg = [&] {
      Dfg d = build_model(options_for(model.options, input.blocks));
      differentiate(d);
      return d;
    }();
    const ref::Bindings bindings = rounded_to_float(model_bindings(dfg, input.blocks, 28));
    for (const NamedOptions& how : kAllPlans) {
      SCOPED_TRACE(model.name + ", " + how.name);
      Executor executor(make_plan(dfg, input.blocks, how.options), input.blocks, std::make_shared<GraphViews>());
      // Large enough for any element type.
      std::map<std::string, std::vector<double>> leaves = bindings;
      for (auto& [name, values] : leaves) executor.bind(name, values.data());
      ConstantPool pool;
      const int64_t announced = executor.constant_bytes(pool);
      const int64_t bytes = executor.arena_bytes();
      EXPECT_GE(bytes, executor.arena_plan().floor_bytes);
      const std::shared_ptr<void> arena = allocate_bytes(bytes);
      executor.allocate(arena, pool);
      int64_t taken = 0;
      for (const auto& [key, tensor] : pool) taken += tensor.bytes();
      EXPECT_EQ(taken, announced);
      EXPECT_EQ(executor.constant_bytes(pool), 0);
      const auto* base = static_cast<const char*>(arena.get());
      const Plan& plan = executor.plan();
      for (const Kernel& k : plan.kernels) {
        for (const NodeRef w : k.writes) {
          if (k.once) continue;
          const auto* at = reinterpret_cast<const char*>(executor.value(w));
          const ValueType& type = plan.dfg[w].type;
          EXPECT_GE(at, base);
          EXPECT_LE(at + input.blocks.rows(type.space) * type.row_size() * dtype_size(type.dtype), base + bytes);
        }
      }
    }
  }
}

// More threads need more scratch, and nothing else.
TEST(ExecutorMemory, GrowsWithTheThreads) {
  const ModelCase model = model_cases().front();
  const BlocksInput input = block_inputs(18, model.options.layers).front();
  const Dfg dfg = build_model(options_for(model.options, input.blocks));
  const auto bytes = [&](int threads) {
    set_num_threads(threads);
    return Executor(make_plan(dfg, input.blocks, {}), input.blocks, std::make_shared<GraphViews>()).arena_bytes();
  };
  const int64_t one = bytes(1);
  const int64_t two = bytes(2);
  const int64_t three = bytes(3);
  EXPECT_GT(two, one);
  EXPECT_NEAR(static_cast<double>(three - two), static_cast<double>(two - one), 2 * kAlignment);
  set_num_threads(2);
}

TEST(GraphViews, AreSharedByEqualGraphsAndNotByOthers) {
  const Graph plain = random_graphs(5).front().graph;
  const Graph typed = assign_relations(plain, 3);  // this graph shares the offsets of `plain`
  const Graph other = assign_relations(plain, 2);
  GraphViews views;
  const Graph copy = plain;
  EXPECT_EQ(views.rows(plain, Direction::by_dst), views.rows(copy, Direction::by_dst));
  EXPECT_NE(views.rows(plain, Direction::by_dst), views.rows(plain, Direction::by_src));
  EXPECT_NE(views.rows(plain, Direction::by_dst), views.rows(typed, Direction::by_dst));
  EXPECT_EQ(views.typed(typed, Direction::by_dst)->num_types, 3);
  EXPECT_EQ(views.typed(other, Direction::by_dst)->num_types, 2);
  const int64_t before = views.bytes();
  views.rows(copy, Direction::by_src);
  EXPECT_EQ(views.bytes(), before);
}

TEST(GraphViews, ForgetOneGraphOnly) {
  const Graph kept = assign_relations(random_graphs(5).front().graph, 3);
  const Graph gone = assign_relations(random_graphs(6).front().graph, 2);
  GraphViews views;
  const auto form = views.rows(kept, Direction::by_src);
  views.typed(kept, Direction::by_dst);
  const int64_t before = views.bytes();
  views.rows(gone, Direction::by_src);
  views.typed(gone, Direction::by_dst);
  views.by_type(gone, SpaceKind::edge);
  views.pair_columns(gone, Direction::by_src, End::dst);
  views.gtasks(gone, PartitionTable::parse("dst-id=2"), {});
  EXPECT_GT(views.bytes(), before);
  views.forget(gone);
  EXPECT_EQ(views.bytes(), before);
  EXPECT_EQ(views.rows(kept, Direction::by_src), form);
}

}  // namespace
}  // namespace nacre::test
