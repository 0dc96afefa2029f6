// Tests what plans for GPUs have that plans for hosts have not: stored sums over pairs, and no
// products inside programs.
#include <gtest/gtest.h>

#include "nacre/plan/cost.h"
#include "nacre/plan/operands.h"
#include "nacre/plan/order.h"
#include "nacre/plan/search.h"
#include "plan/plans.h"
#include "support/big_graphs.h"

namespace nacre::test {
namespace {

constexpr int64_t kAny = int64_t{1} << 40;

ModelOptions rgcn(int64_t in, int64_t hidden, int64_t out) {
  ModelOptions o = usual("rgcn", 3);
  o.in_dim = in;
  o.hidden = hidden;
  o.out_dim = out;
  return o;
}

PlanOptions all_dst(const PlannedModel& m, int64_t keep_sums) {
  PlanOptions how = choosing(m, "dst");
  how.keep_sums = keep_sums;
  return how;
}

int sums_by_pair(const Plan& plan, bool once) {
  int count = 0;
  for (const Kernel& k : plan.kernels) {
    count += k.kind == KernelKind::spmm && k.once == once && plan.dfg[k.root].type.space.is_pair() ? 1 : 0;
  }
  return count;
}

TEST(KeptSums, OfFeaturesAreTakenOnceAndSharedOnesOncePerStep) {
  const PlannedModel written = plan_model(rgcn(48, 64, 16));
  const Plan none = plan_model(rgcn(48, 64, 16), all_dst(written, 0)).plan;
  EXPECT_EQ(sums_by_pair(none, true) + sums_by_pair(none, false), 0);
  EXPECT_EQ(count_kernels(none, KernelKind::typed_weight_grad, false), 3);
  EXPECT_EQ(count_kernels(none, KernelKind::typed_reduce, false), 3);
  const Plan kept = plan_model(rgcn(48, 64, 16), all_dst(written, kAny)).plan;
  EXPECT_EQ(sums_by_pair(kept, true), 1) << "of the features";
  EXPECT_EQ(sums_by_pair(kept, false), 2) << "of each further layer, for its result and for its weight gradient";
  EXPECT_EQ(count_kernels(kept, KernelKind::typed_weight_grad, false), 0);
  for (const Kernel& k : kept.kernels) {
    if (k.kind != KernelKind::typed_reduce) continue;
    EXPECT_TRUE(kept.dfg[operands<TypedReduceOperands>(k).x].type.space.is_pair()) << "of kept sums";
  }
  EXPECT_EQ(count_kernels(kept, KernelKind::typed_rows_grad, false), 3);
}

TEST(KeptSums, AreNoLargerThanAllowed) {
  const PlannedModel written = plan_model(rgcn(48, 64, 16));
  const int64_t pairs = written.blocks.layer(0).count_pairs(End::dst);
  const Plan plan = plan_model(rgcn(48, 64, 16), all_dst(written, pairs * 48 * 4)).plan;
  EXPECT_EQ(sums_by_pair(plan, true), 1);
  EXPECT_EQ(sums_by_pair(plan, false), 0);
  EXPECT_EQ(sums_by_pair(plan_model(rgcn(48, 64, 16), all_dst(written, pairs * 48 * 4 - 1)).plan, true), 0);
}

TEST(KeptSums, NeedAReaderBesides) {
  // The sum for the result is by destination and the one for the weight gradient by source, so
  // there is nothing to share.
  const PlannedModel written = plan_model(rgcn(48, 64, 16));
  PlanOptions how = choosing(written, "dst", "typed_matmul");
  for (const auto& [site, option] : choosing(written, "src", "typed_weight_grad").choices) how.choices[site] = option;
  for (const auto& [site, option] : choosing(written, "dst", "typed_matmul_t").choices) how.choices[site] = option;
  how.keep_sums = kAny;
  const Plan plan = plan_model(rgcn(48, 64, 16), how).plan;
  EXPECT_EQ(sums_by_pair(plan, false), 0);
  EXPECT_EQ(sums_by_pair(plan, true), 1);
}

TEST(KeptSums, AreInPlanFiles) {
  PlanOptions how;
  how.keep_sums = 12345;
  EXPECT_EQ(parse_options(options_json(how), "test"), how);
  EXPECT_EQ(parse_options("{}", "test").keep_sums, 0);
}

Plan planned_for_gpu(const Graph& graph, const ModelOptions& model) {
  const PlannedModel m = plan_on(Blocks::full(graph, model.layers), model);
  SearchOptions how;
  how.model = &nominal_gpu().model;
  how.cache_bytes = nominal_gpu().cache_bytes;
  PlanOptions base;
  base.keep_sums = kAny;
  return make_plan(m.dfg, m.blocks, search_plan(m.dfg, m.blocks, base, how).options);
}

TEST(GpuPlan, HasNoTypedProductsInPrograms) {
  const struct {
    const char* name;
    int64_t vertices, edges, in, hidden, out;
  } shapes[] = {{"small", 2708, 10556, 1433, 64, 7},
                {"short rows", 4000, 27500, 128, 256, 40},
                {"long rows", 300, 147000, 602, 256, 41}};
  for (const auto& s : shapes) {
    const Graph graph = typed_weighted_graph({.vertices = s.vertices, .edges = s.edges, .hub_edges = 100, .types = 8});
    const Plan plan = planned_for_gpu(graph, rgcn(s.in, s.hidden, s.out));
    EXPECT_TRUE(kernels_of(plan, KernelKind::gtask).empty()) << s.name;
    EXPECT_TRUE(kernels_of(plan, KernelKind::gtask_grad).empty()) << s.name;
  }
}

// Returns the rows that a kernel sums over the edges of a vertex or pair.
NodeRef summed_rows(const Kernel& k) {
  if (k.kind == KernelKind::spmm) return operands<SpmmOperands>(k).x;
  if (k.kind == KernelKind::typed_reduce) return operands<TypedReduceOperands>(k).x;
  const auto in = operands<TypedWeightGradOperands>(k);
  return k.direction == Direction::by_dst ? in.x : in.gradient;
}

TEST(GpuPlan, SumsEachLayersRowsAtMostTwiceWhereRowsAreLong) {
  const Graph graph = typed_weighted_graph({.vertices = 300, .edges = 147000, .hub_edges = 100, .types = 8});
  const Plan plan = planned_for_gpu(graph, rgcn(602, 256, 41));
  int wide = 0;  // number of kernels of a step that gather 256 elements for every edge
  for (const Kernel& k : plan.kernels) {
    if (k.once) continue;
    const bool pairs_only = k.direction == Direction::pairs_of_dst || k.direction == Direction::pairs_of_src;
    const bool walks = (k.kind == KernelKind::spmm && !pairs_only) || k.kind == KernelKind::typed_reduce ||
                       k.kind == KernelKind::typed_weight_grad;
    if (!walks) continue;
    const ValueType& summed = plan.dfg[summed_rows(k)].type;
    wide += !summed.space.is_pair() && summed.row_size() >= 256 ? 1 : 0;
  }
  EXPECT_LE(wide, 2) << "the second layer's result and its input gradient";
}

// Both orders of a square layer take equally long, but a sum kept for the weight's gradient is one
// more value alive.
TEST(GpuPlan, OfEqualTimesTheSmallerIsTaken) {
  const Graph graph = typed_weighted_graph({.vertices = 4000, .edges = 27500, .hub_edges = 100, .types = 1});
  ModelOptions options;
  options.model = "gcn";
  options.layers = 3;
  options.in_dim = 128;
  options.hidden = 256;
  options.out_dim = 40;
  const PlannedModel m = plan_on(Blocks::full(graph, 3), options);
  SearchOptions how;
  how.model = &nominal_gpu().model;
  how.cache_bytes = nominal_gpu().cache_bytes;
  const auto peak = [&] {
    return peak_live_bytes(make_plan(m.dfg, m.blocks, search_plan(m.dfg, m.blocks, {}, how).options), m.blocks);
  };
  const int64_t before = peak();
  how.seconds_of_byte = 1 / 4e12;
  EXPECT_LT(peak(), before);
}

// order_bytes() counts the vertices at the other ends of the edges, the pairs that the edges belong
// to, and scales that are stored once more in another order.
TEST(GpuPlan, CountsTheOrdersThatStepsWalk) {
  const PlannedModel written = plan_model(rgcn(48, 64, 16));
  const int64_t array = written.blocks.rows(Space::edge(0)) * 4;
  const auto bytes_of = [&](PlanOptions how) {
    how.keep_sums = kAny;
    const PlannedModel m = plan_model(rgcn(48, 64, 16), how);
    return order_bytes(m.plan, m.blocks);
  };
  // Sums by pair of the destinations take three arrays: sources, pairs and scales in their order.
  // Sums by source take two: the pairs of the edges, and scales. What is computed once does not
  // count.
  EXPECT_EQ(bytes_of(choosing(written, "dst")), (3 + 2) * array);
  // Sums by pair of the sources take three arrays, too. Sums by destination take one, because the
  // scales lie in their order already.
  EXPECT_EQ(bytes_of(choosing(written, "src")), (3 + 1) * array);
  PlanOptions both = choosing(written, "dst");
  for (const auto& [site, option] : choosing(written, "src").choices) {
    if (site.find("layers.2") != std::string::npos) both.choices[site] = option;
  }
  EXPECT_EQ(bytes_of(both), (3 + 2 + 3 + 1) * array);
}

// Returns the prices of a GPU without those of starting kernels, so that small graphs cost what
// large ones of their shape do.
CostModel prices_of_large_graphs() {
  std::map<std::string, Coefficients> kinds;
  for (const char* kind :
       {"", "gtask", "gtask_grad", "typed_reduce", "typed_weight_grad", "typed_rows", "typed_rows_grad"}) {
    Coefficients& c = kinds[kind];
    c.fill(0);
    for (size_t f = 1; f < c.size(); ++f) {
      Work work;
      work.kind = kind;
      work.amount[f] = 1;
      c[f] = nominal_gpu().model.predict(work);
    }
  }
  return CostModel::of_kinds(kinds);
}

// What a layer keeps in memory is priced beside what the others keep, so no layer could be chosen
// better by itself.
TEST(GpuPlan, EachLayerIsTheBestBesideTheOthers) {
  const Graph graph = typed_weighted_graph({.vertices = 400, .edges = 20000, .hub_edges = 0, .types = 8});
  const PlannedModel m = plan_on(Blocks::full(graph, 3), rgcn(25, 64, 12));
  const CostModel prices = prices_of_large_graphs();
  SearchOptions how;
  how.model = &prices;
  how.cache_bytes = 1;
  how.seconds_of_byte = 1 / 4e12;
  PlanOptions base;
  base.keep_sums = kAny;
  const auto price = [&](const PlanOptions& options) {
    const Plan plan = make_plan(m.dfg, m.blocks, options);
    const int64_t bytes = peak_live_bytes(plan, m.blocks) + order_bytes(plan, m.blocks);
    return predict_plan(plan, m.blocks, how) + how.seconds_of_byte * static_cast<double>(bytes);
  };
  const PlanOptions chosen = search_plan(m.dfg, m.blocks, base, how).options;
  const double least = price(chosen) * (1 - 1e-12);
  for (const char* layer : {"@layers.0", "@layers.1", "@layers.2"}) {
    for (size_t ends = 0; ends < 8; ++ends) {
      PlanOptions other = chosen;
      size_t rest = ends;
      for (const Site& site : sites_of(m)) {
        if (site.key.find(layer) == std::string::npos) continue;
        other.choices[site.key] = rest % 2 == 0 ? "dst" : "src";
        rest /= 2;
      }
      EXPECT_GE(price(other), least) << layer << " by " << ends;
    }
  }
  // The last layer's sums by source are walked already, and nothing by pair is kept from the
  // forward pass.
  for (const char* op : {"typed_matmul", "typed_matmul_t", "typed_weight_grad"}) {
    EXPECT_EQ(chosen.choices.at(std::string(op) + "@layers.1.weight"), "src") << op;
  }
}

TEST(GpuPlan, CostsOfKindsDiffer) {
  Work work;
  work[Feature::flops] = 1e12;
  work.kind = "matmul";
  const double product = nominal_gpu().model.predict(work);
  work.kind = "gtask";
  EXPECT_GT(nominal_gpu().model.predict(work), 50 * product);
  Coefficients cheap{}, dear{};
  cheap[static_cast<size_t>(Feature::flops)] = 1e-12;
  dear[static_cast<size_t>(Feature::flops)] = 1e-10;
  const CostModel model = CostModel::of_kinds({{"", cheap}, {"gtask", dear}});
  EXPECT_DOUBLE_EQ(model.predict(work), 100);
  work.kind = "spmm";
  EXPECT_DOUBLE_EQ(model.predict(work), 1);
}

}  // namespace
}  // namespace nacre::test
