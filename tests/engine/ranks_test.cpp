// Tests distributed training steps: whatever the graph, the partition, the model and the rows that
// travel, all ranks together compute what one device computes.
#include <gtest/gtest.h>

#include <mutex>

#include "model/cases.h"
#include "nacre/cluster/run_ranks.h"
#include "nacre/dfg/distribute.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/engine/rank_block.h"
#include "nacre/engine/rank_memory.h"
#include "nacre/plan/work.h"
#include "support/ranks.h"
#include "support/rng.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

constexpr StepContext kStep{9, 4};
constexpr int kRuns = 3;

// Sanitizers look for other faults and are slow, so they see every fourth graph.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kStride = 4;
#else
constexpr size_t kStride = 1;
#endif

// Returns small graphs of every structure.
std::vector<GraphCase> graphs(uint64_t seed) {
  std::vector<GraphCase> some;
  const std::vector<GraphCase> all = random_graphs(seed);
  for (size_t i = 0; i < all.size(); i += kStride) some.push_back(all[i]);
  return some;
}

struct Cut {
  std::string name;
  int ranks;
  std::vector<int> part;
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
          {"four ranks, at random", 4, by([&](int64_t) { return rng.below(4); })}};
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

class Ranks : public testing::TestWithParam<ModelCase> {};

TEST_P(Ranks, TheInterpreterComputesWhatOneDeviceComputes) {
  if (testing_gpu()) GTEST_SKIP() << "the interpreter runs on the host";
  for (const GraphCase& c : graphs(51)) {
    const Input input = input_of(GetParam().options, c.graph, true);
    for (const Cut& cut : cuts(c.graph.num_nodes(), 7)) {
      const std::vector<Rank> ranks = split_graph(c.graph, cut.part, cut.ranks);
      for (const HaloRows rows : {HaloRows::narrow, HaloRows::early, HaloRows::late}) {
        SCOPED_TRACE(c.name + ", " + cut.name + ", " + halo_rows_name(rows));
        const Dfg dfg = distribute(input.dfg, rows);
        dfg.validate();
        std::mutex mutex;
        run_ranks(ranks, std::max(1, GetParam().options.layers), [&](int r, const Blocks& blocks) {
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
  std::vector<std::shared_ptr<GpuCompiler>> compilers;  // by rank; null: the host
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

// Here ranks have the blocks and the communicator of real runs. The second of three steps is
// recorded on a GPU, and the third runs the recording.
TEST_P(Ranks, EveryPlanComputesWhatOneDeviceComputes) {
  size_t number = 0;
  for (const GraphCase& c : graphs(52)) {
    const Input input = input_of(GetParam().options, c.graph, number % 2 == 0);
    for (const Cut& cut : cuts(c.graph.num_nodes(), 8)) {
      const NamedOptions& plan = kAllPlans[number++ % std::size(kAllPlans)];
      const Places devices = places(cut.ranks, number);
      PlanOptions options = plan.options;
      options.halo_rows = static_cast<HaloRows>(number % 3);
      const ExecutorOptions how = {.overlap = number % 4 != 0};
      const std::string what = c.name + ", " + cut.name + ", " + plan.name + ", " + halo_rows_name(options.halo_rows) +
                               ", " + devices.name + (how.overlap ? ": " : ", no overlap: ");
      std::mutex mutex;
      const Partition parts{cut.ranks, std::vector<int32_t>(cut.part.begin(), cut.part.end())};
      const auto run = [&](Communicator& communicator) {
        const int r = communicator.rank();
        const std::shared_ptr<GpuCompiler>& compiler = devices.compilers[r];
        const auto local = std::make_shared<const LocalGraph>(local_graph(c.graph, parts, r));
        const Blocks blocks =
            Blocks::of_rank(local->graph, std::max(1, GetParam().options.layers),
                            make_rank_links(c.graph, local, communicator, compiler ? compiler->device() : nullptr));
        const Rank rank = {local->graph, blocks.links()->vertex_ids(), blocks.links()->edge_ids(), local->num_own()};
        const ref::Bindings bindings = bindings_of(rank, input.dfg, input.bindings);
        const auto views = std::make_shared<GraphViews>();
        const std::shared_ptr<Backend> backend =
            compiler ? make_gpu_backend(std::make_shared<GpuContext>(compiler, views, test_gpu_options()))
                     : make_cpu_backend(views);
        BoundPlan bound(make_plan(input.dfg, blocks, options, {.validate = true}), blocks, bindings, backend, how);
        const Outputs got = run_plan(bound, bindings, kStep, kRuns);
        const std::scoped_lock lock(mutex);
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
}

// The planner knows what communication moves, and gives all ranks the same order of it.
TEST(RankPlans, CommunicationIsAKindOfKernel) {
  const Graph graph = random_graphs(53)[2].graph;
  const Input input = input_of(model_cases()[0].options, graph, false);
  const std::vector<Rank> ranks = split_graph(graph, cuts(graph.num_nodes(), 9)[1].part, 2);
  std::vector<std::vector<NodeRef>> orders(2);
  run_ranks(ranks, model_cases()[0].options.layers, [&](int r, const Blocks& blocks) {
    const Plan plan = make_plan(input.dfg, blocks, {}, {.validate = true});
    for (const Kernel& kernel : plan.kernels) {
      const Node& root = plan.dfg[kernel.root];
      const bool communicates = op_info(root.op).op_class == OpClass::communication;
      EXPECT_EQ(kernel.kind == KernelKind::exchange, communicates);
      if (!communicates) continue;
      orders[r].push_back(kernel.root);
      const double halo = static_cast<double>(ranks[r].vertices.size() - ranks[r].num_own);
      const double rows = root.op == Op::all_reduce ? 1 : halo;
      const Work work = kernel_work(kernel, plan, blocks, 1 << 20);
      EXPECT_EQ(work[Feature::far_bytes], rows * static_cast<double>(root.type.row_size()) * 4);
    }
  });
  EXPECT_FALSE(orders[0].empty());
  EXPECT_EQ(orders[0], orders[1]);
}

INSTANTIATE_TEST_SUITE_P(Models, Ranks, testing::ValuesIn(model_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace nacre::test
