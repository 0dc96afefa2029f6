// Tests distributed training steps: whatever the graph, the partition, the model and the rows that
// travel, all ranks together compute what one device computes.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "model/cases.h"
#include "nacre/cluster/run_ranks.h"
#include "nacre/dfg/placed_aggregations.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/engine/rank_block.h"
#include "nacre/engine/rank_memory.h"
#include "nacre/engine/row_precision.h"
#include "nacre/engine/step_forecast.h"
#include "nacre/graph/reversed.h"
#include "nacre/plan/early_rows.h"
#include "nacre/plan/search.h"
#include "nacre/plan/work.h"
#include "support/ranks.h"
#include "support/rng.h"
#include "support/run_plan.h"
#include "support/sanitized.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{9, 4};
constexpr int kRuns = 3;

// Returns small graphs of every structure. Under a sanitizer, returns every fourth of them.
std::vector<GraphCase> graphs(uint64_t seed) {
  std::vector<GraphCase> some;
  const std::vector<GraphCase> all = random_graphs(seed);
  for (size_t i = 0; i < all.size(); i += sanitized_stride(4)) some.push_back(all[i]);
  return some;
}

struct Cut {
  std::string name;
  int ranks;
  std::vector<int> part;
  std::vector<double> shares = {};  // the share of each rank in the columns
};

// Returns partitions with empty ranks, with all vertices on the last rank, and with neighbours
// apart.
std::vector<Cut> cuts(int64_t vertices, uint64_t seed) {
  Rng rng(seed);
  const auto by = [&](auto rule) {
    std::vector<int> part;
    for (int64_t v = 0; v < vertices; ++v) part.push_back(static_cast<int>(rule(v)));
    return part;
  };
  return {{"one rank", 1, by([](int64_t) { return 0; })},
          {"two ranks, alternating", 2, by([](int64_t v) { return v % 2; })},
          {"three ranks, the first two empty", 3, by([](int64_t) { return 2; })},
          {"four ranks, at random", 4, by([&](int64_t) { return rng.below(4); }), {1, 4, 0, 2}}};
}

struct Input {
  Dfg dfg;
  ref::Bindings bindings;
  std::map<std::string, std::vector<double>> expected;
};

// Returns a training step as ranks get it, with degrees as inputs, and what one device computes.
Input input_of(ModelOptions model, const Graph& graph, bool dropout) {
  const Blocks whole = Blocks::full(graph, std::max(1, model.layers));
  model.sampling = Sampling::blocks;
  if (dropout) {
    model.dropout = 0.4;
    model.input_dropout = 0.2;
    model.attention_dropout = model_info(model.model).heads > 0 ? 0.3 : 0;
  }
  Input input{build_model(options_for(model, whole)), {}, {}};
  differentiate(input.dfg);
  input.bindings = rounded_to_float(model_bindings(input.dfg, whole, 61));
  for (auto& [name, values] : input.bindings) {
    if (name.find("degree") == std::string::npos) continue;
    for (double& v : values) v = 1 + std::abs(std::floor(10 * v));
  }
  // All layers have the same graph, so the inputs NAME.0, NAME.1, … are the same, too.
  for (auto& [name, values] : input.bindings) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos || input.dfg[input.dfg.find_leaf(name)].op != Op::input) continue;
    const auto first = input.bindings.find(name.substr(0, dot) + ".0");
    if (first != input.bindings.end()) values = first->second;
  }
  ref::Interpreter reference(input.dfg, whole);
  reference.run(input.bindings, kStep);
  for (const auto& [name, node] : input.dfg.outputs()) input.expected[name] = reference.value(node);
  for (const auto& [name, node] : input.dfg.updates()) input.expected["update:" + name] = reference.value(node);
  return input;
}

// Returns what a rank should have of a result: the rows of its own vertices, or all of it.
std::vector<double> share_of(const Rank& rank, const Dfg& dfg, const std::string& name,
                             const std::vector<double>& whole) {
  const NodeRef node = dfg.find_output(name);
  if (node < 0 || dfg[node].type.space.kind != SpaceKind::vertex) return whole;
  const int64_t width = dfg[node].type.row_size();
  std::vector<double> rows;
  for (int64_t i = 0; i < rank.num_own; ++i) {
    for (int64_t j = 0; j < width; ++j) rows.push_back(whole[int64_t{rank.vertices[i]} * width + j]);
  }
  return rows;
}

Rank rank_of(const Graph& whole, const LocalGraph& local, const LocalGraph& reversed) {
  const Graph turned = reversed_graph(whole);
  return {local.graph,
          vertex_numbers(local),
          edge_numbers(whole, local),
          local.num_own(),
          reversed.graph,
          vertex_numbers(reversed),
          edges_of_reversed(whole, edge_numbers(turned, reversed))};
}

// Returns one choice for all sites if `number` is less than the number of choices, and otherwise
// one at random for each site.
RankPlacement placement_of(size_t number, int layers) {
  if (number < std::size(kAllHaloRows)) return {kAllHaloRows[number], {}};
  Rng rng(number);
  RankPlacement placement;
  const auto any = [&] { return kAllHaloRows[rng.below(std::size(kAllHaloRows))]; };
  for (int layer = 0; layer <= layers; ++layer) {
    for (const bool backward : {false, true}) placement.sites[{layer, backward}] = any();
  }
  return placement;
}

class Ranks : public testing::TestWithParam<ModelCase> {};

TEST_P(Ranks, TheInterpreterComputesWhatOneDeviceComputes) {
  if (testing_gpu()) GTEST_SKIP() << "the interpreter runs on the host";
  constexpr size_t kMixed = 2;  // number of placements with a random choice for each site
  size_t mixed = std::size(kAllHaloRows);
  for (const GraphCase& c : graphs(51)) {
    const Input input = input_of(GetParam().options, c.graph, true);
    for (const Cut& cut : cuts(c.graph.num_nodes(), 7)) {
      const std::vector<Rank> ranks = split_graph(c.graph, cut.part, cut.ranks);
      for (size_t p = 0; p < std::size(kAllHaloRows) + kMixed; ++p) {
        const RankPlacement placement =
            placement_of(p < std::size(kAllHaloRows) ? p : mixed++, GetParam().options.layers);
        SCOPED_TRACE(c.name + ", " + cut.name + ", " + placement_text(placement));
        std::mutex mutex;
        run_ranks(ranks, std::max(1, GetParam().options.layers), c.graph, [&](int r, const Blocks& blocks) {
          const Dfg dfg = distribute(input.dfg, placement, blocks.views());
          dfg.validate();
          ref::Interpreter rank(dfg, blocks);
          rank.run(bindings_of(ranks[r], input.dfg, input.bindings), kStep);
          const std::scoped_lock lock(mutex);
          for (const auto& [name, node] : dfg.outputs()) {
            const std::vector<double> want = share_of(ranks[r], input.dfg, name, input.expected.at(name));
            const std::vector<double> got = rank.value(node);
            ASSERT_EQ(got.size(), want.size()) << name;
            for (size_t i = 0; i < got.size(); ++i)
              ASSERT_NEAR(got[i], want[i], 1e-9 * (1 + std::abs(want[i]))) << name << " of rank " << r;
          }
          for (const auto& [name, node] : dfg.updates()) {
            const std::vector<double>& want = input.expected.at("update:" + name);
            for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(rank.value(node)[i], want[i], 1e-9) << name;
          }
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The devices of the ranks of one test.
struct Places {
  std::string name;
  // The compiler of each rank; null if the rank is on the host.
  std::vector<std::shared_ptr<GpuCompiler>> compilers;
};

// With NACRE_TEST_DEVICE=cuda, ranks are virtual GPUs, or every second one is the host.
Places places(int ranks, size_t number) {
  Places places = {testing_gpu() ? "GPUs" : "CPUs", {}};
  places.compilers.resize(ranks);
  if (!testing_gpu()) return places;
  const size_t host = number % 3;  // 2: no rank is on the host
  if (host < 2) places.name = host == 0 ? "CPU first, then a GPU" : "GPU first, then a CPU";
  for (int r = 0; r < ranks; ++r) {
    if (host == 2 || static_cast<size_t>(r % 2) != host) places.compilers[r] = test_rank_compiler(r);
  }
  return places;
}

// Compares three steps on ranks, with the blocks and the communicator of real runs, with three
// steps on one device. A rank on a GPU records its second step, and its third step runs the
// recording. With overlap, every kernel that can compute some rows before those of other ranks have
// arrived does so, and the bits are those of a run without overlap.
TEST_P(Ranks, EveryPlanComputesWhatOneDeviceComputes) {
  size_t number = 0;
  int64_t split = 0;  // kernels that were computed in two parts
  for (const GraphCase& c : graphs(52)) {
    const Input input = input_of(GetParam().options, c.graph, number % 2 == 0);
    for (const Cut& cut : cuts(c.graph.num_nodes(), 8)) {
      const NamedOptions& plan = kAllPlans[number++ % std::size(kAllPlans)];
      const Places devices = places(cut.ranks, number);
      PlanOptions options = plan.options;
      options.halo_rows =
          placement_of(number % 2 == 0 ? number / 2 % std::size(kAllHaloRows) : number, GetParam().options.layers);
      const ExecutorOptions how = {.overlap = number % 4 != 0};
      const std::string what = c.name + ", " + cut.name + ", " + plan.name + ", " + placement_text(options.halo_rows) +
                               ", " + devices.name + (how.overlap ? ": " : ", no overlap: ");
      std::mutex mutex;
      const Partition parts{cut.ranks, std::vector<int32_t>(cut.part.begin(), cut.part.end())};
      const auto run = [&](Communicator& communicator) {
        const int r = communicator.rank();
        const std::shared_ptr<GpuCompiler>& compiler = devices.compilers[r];
        const auto local = std::make_shared<const LocalGraph>(local_graph(c.graph, parts, r));
        const auto reversed =
            std::make_shared<const LocalGraph>(local_graph(reversed_graph(c.graph), parts, r, EdgeSense::reversed));
        const Blocks blocks =
            Blocks::of_rank({local->graph, c.graph, reversed->graph}, std::max(1, GetParam().options.layers),
                            make_rank_links({c.graph, parts, cut.shares, reversed}, local, communicator, compiler));
        const Rank rank = rank_of(c.graph, *local, *reversed);
        const ref::Bindings bindings = bindings_of(rank, input.dfg, input.bindings);
        const auto views = std::make_shared<GraphViews>();
        const std::shared_ptr<Backend> backend =
            compiler ? make_gpu_backend(std::make_shared<GpuContext>(compiler, views, test_gpu_options()))
                     : make_cpu_backend(views);
        Plan made = make_plan(input.dfg, blocks, options, {.validate = true});
        choose_early_rows(made, blocks, nullptr, compiler != nullptr);
        validate(made, blocks);
        const Plan whole = made;
        BoundPlan bound(std::move(made), blocks, bindings, backend, how);
        const int64_t before = communicator.counters().exchange.bytes_received;
        const Outputs got = run_plan(bound, bindings, kStep, kRuns);
        const int64_t received = communicator.counters().exchange.bytes_received - before;
        Outputs without;
        if (number % 4 == 1) {
          BoundPlan waits(whole, blocks, bindings, backend, {.overlap = false});
          without = run_plan(waits, bindings, kStep, kRuns);
        }
        const std::scoped_lock lock(mutex);
        for (const Kernel& kernel : bound.executor().plan().kernels)
          split += how.overlap && kernel.early.rows > 0 ? 1 : 0;
        for (const auto& [name, values] : without)
          EXPECT_TRUE(same_bits(values, got.at(name))) << what << name << " of rank " << r;
        EXPECT_EQ(received, kRuns * received_bytes(bound.executor().plan(), {blocks, *local, reversed.get()})) << what;
        for (const auto& [name, want] : input.expected) {
          expect_close(got.at(name), share_of(rank, input.dfg, name, want),
                       what + name + " of rank " + std::to_string(r), testing_gpu() ? 4e-5 : 2e-5);
        }
      };
      RunRanksOptions run_options;
      run_options.group.memory = make_rank_memory(devices.compilers);
      nacre::run_ranks(cut.ranks, run, run_options);
    }
  }
  // Other models may have no kernel that waits for other ranks and can be cut.
  if (GetParam().name == "gcn") {
    EXPECT_GT(split, 0) << "kernels that were computed in two parts";
  }
}

// Ranks that store values as bf16 compute nearly what one device computes in f64, beside others
// that store f32. The bytes that they receive are those of the plan.
TEST(RankPlans, Bf16RowsTravel) {
  if (!testing_gpu()) GTEST_SKIP() << "there is no GPU to test";
  ModelOptions options = model_cases()[0].options;
  options.hidden = 32;
  options.layers = 3;  // rows of 32 columns travel between the layers
  const Graph graph = random_graphs(53)[2].graph;
  const Input input = input_of(options, graph, false);
  const Cut cut = cuts(graph.num_nodes(), 9)[1];
  const Partition parts{cut.ranks, std::vector<int32_t>(cut.part.begin(), cut.part.end())};
  for (const HaloRows rows : kAllHaloRows) {
    int64_t wide = 0;
    for (const int narrow : {0, 1, 2}) {  // the number of ranks that store bf16
      std::vector<std::shared_ptr<GpuCompiler>> compilers;
      for (int r = 0; r < cut.ranks; ++r) compilers.push_back(test_rank_compiler(r));
      std::atomic<int64_t> received{0};
      RunRanksOptions run_options;
      run_options.group.memory = make_rank_memory(compilers);
      std::mutex mutex;
      const auto run = [&](Communicator& communicator) {
        const int r = communicator.rank();
        const auto local = std::make_shared<const LocalGraph>(local_graph(graph, parts, r));
        const auto reversed =
            std::make_shared<const LocalGraph>(local_graph(reversed_graph(graph), parts, r, EdgeSense::reversed));
        const Blocks blocks =
            Blocks::of_rank({local->graph, graph, reversed->graph}, options.layers,
                            make_rank_links({graph, parts, cut.shares, reversed}, local, communicator, compilers[r]));
        const Rank rank = rank_of(graph, *local, *reversed);
        const ref::Bindings bindings = bindings_of(rank, input.dfg, input.bindings);
        GpuOptions gpu = test_gpu_options();
        if (r < narrow) gpu.precision = GemmType::bf16;
        const auto backend =
            make_gpu_backend(std::make_shared<GpuContext>(compilers[r], std::make_shared<GraphViews>(), gpu));
        const DeviceTraits device = backend->traits();
        const PassControl control = {.validate = true, .device = &device, .variants = false};
        Plan plan = make_plan(input.dfg, blocks, {.halo_rows = {rows, {}}}, control);
        EXPECT_EQ(plan.narrow.empty(), r >= narrow);
        const RankPart part{blocks, *local, reversed.get()};
        agree_on_rows(plan, part, communicator);
        const int64_t planned = received_bytes(plan, part);
        BoundPlan bound(std::move(plan), blocks, bindings, backend, {});
        const int64_t before = communicator.counters().exchange.bytes_received;
        const Outputs got = run_plan(bound, bindings, kStep, kRuns);
        const int64_t now = communicator.counters().exchange.bytes_received - before;
        received += now;
        const std::scoped_lock lock(mutex);
        EXPECT_EQ(now, kRuns * planned) << halo_rows_name(rows) << ", " << narrow << " ranks of bf16";
        for (const auto& [name, want] : input.expected) {
          expect_close(got.at(name), share_of(rank, input.dfg, name, want), halo_rows_name(rows) + " " + name,
                       narrow > 0 ? 3e-2 : 4e-5);
        }
      };
      nacre::run_ranks(cut.ranks, run, run_options);
      if (narrow == 0) wide = received;
      // Columns travel as f32. Rows of 32 columns travel as bf16 if one of two ranks stores them
      // so.
      if (narrow > 0 && rows != HaloRows::columns) {
        EXPECT_LT(received, 0.75 * static_cast<double>(wide));
      }
    }
  }
}

// Returns how many numbers a rank receives in a communication. For exchange_add, returns how many
// it sends.
int64_t received_elements(const Rank& rank, const Blocks& blocks, const Node& root) {
  const Array<NodeId>& vertices = blocks.is_reversed(root.type.space) ? rank.reversed_vertices : rank.vertices;
  switch (root.op) {
    case Op::all_reduce:
      return root.type.row_size();
    case Op::to_columns:
      return (blocks.rows(root.type.space) - rank.num_own) * root.ints[2];
    case Op::to_rows:
      return rank.num_own * (root.type.row_size() - root.ints[2]);
    default:
      return (vertices.size() - rank.num_own) * root.type.row_size();
  }
}

// Tests that plans count the bytes that ranks send each other, and that the plans of all ranks have
// their communication in the same order.
TEST(RankPlans, CommunicationIsAKindOfKernel) {
  const Graph graph = random_graphs(53)[2].graph;
  const Input input = input_of(model_cases()[0].options, graph, false);
  const std::vector<Rank> ranks = split_graph(graph, cuts(graph.num_nodes(), 9)[1].part, 2);
  for (const HaloRows rows : kAllHaloRows) {
    std::vector<std::vector<NodeRef>> orders(2);
    bool columns = false, sums = false;
    run_ranks(ranks, model_cases()[0].options.layers, graph, [&](int r, const Blocks& blocks) {
      const Plan plan = make_plan(input.dfg, blocks, {.halo_rows = {rows, {}}}, {.validate = true});
      double bytes = 0;
      for (const Kernel& kernel : plan.kernels) {
        const Node& root = plan.dfg[kernel.root];
        const bool communicates = op_info(root.op).op_class == OpClass::communication;
        EXPECT_EQ(kernel.kind == KernelKind::exchange, communicates);
        if (!communicates) continue;
        orders[r].push_back(kernel.root);
        const Work work = kernel_work(kernel, plan, blocks, 1 << 20);
        EXPECT_EQ(work[Feature::far_bytes], static_cast<double>(received_elements(ranks[r], blocks, root)) * 4);
        if (!kernel.once) bytes += work[Feature::far_bytes];
        if (r > 0) continue;
        columns |= root.op == Op::to_columns;
        sums |= root.op == Op::exchange_add && blocks.is_reversed(root.type.space);
      }
      // A slower link makes a step longer by the bytes that travel.
      SearchOptions slow, fast;
      slow.link_bytes_per_second = 1e6;
      fast.link_bytes_per_second = 2e6;
      // Communication before the first step must not count, so there are many epochs.
      slow.epochs = fast.epochs = 1e12;
      EXPECT_NEAR(predict_plan(plan, blocks, slow) - predict_plan(plan, blocks, fast), bytes / 2e6, 1e-9);
    });
    EXPECT_FALSE(orders[0].empty());
    EXPECT_EQ(orders[0], orders[1]);
    EXPECT_EQ(columns, rows == HaloRows::columns);
    EXPECT_EQ(sums, rows == HaloRows::sums);
  }
}

// A sum over edges is done at another place than the owners of destinations only if this is
// possible and if ranks would need rows of each other for it.
TEST(RankPlans, AggregationsThatNeedNothingOfOtherRanksStayWhereTheyAre) {
  const Graph graph = random_graphs(53)[2].graph;
  const std::vector<Rank> ranks = split_graph(graph, cuts(graph.num_nodes(), 9)[1].part, 2);
  for (const ModelCase& c : model_cases()) {
    if (c.options.layers != 2) continue;
    const Input input = input_of(c.options, graph, false);
    run_ranks(ranks, 2, graph, [&](int r, const Blocks& blocks) {
      if (r > 0) return;
      for (const HaloRows rows : {HaloRows::columns, HaloRows::sums}) {
        SCOPED_TRACE(c.name + ", " + halo_rows_name(rows));
        const RankPlacement placement{rows, {}};
        const Dfg dfg = distribute(input.dfg, placement, blocks.views());
        const auto [placed, halos] = count_places(dfg, blocks.views());
        const std::string text = place_text(placement, dfg, blocks.views());
        EXPECT_EQ(halos > 0, text.find("exchanged") != std::string::npos) << text;
        // The sum of layer 0 reads features, which ranks know for their halo. Layer 1 has a sum in
        // the forward pass and one in the backward pass.
        EXPECT_TRUE(c.name != "gcn" || (placed == 2 && halos == 0)) << placed << ", " << halos;
        EXPECT_TRUE(c.name != "gat" || (placed == 0 && halos > 0)) << placed << ", " << halos;
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Ranks, testing::ValuesIn(model_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace nacre::test
