#include "nacre/engine/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>

#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/engine/executor.h"
#include "nacre/kernel/cpu/gemm.h"
#include "nacre/model/model.h"
#include "nacre/plan/search.h"

namespace nacre {
namespace {

constexpr int kTypes = 7;
constexpr int kRuns = 3;

// Returns a power-law graph: sources are drawn towards low numbers, destinations evenly.
Graph sample_graph(int64_t vertices, int64_t edges) {
  EdgeList list;
  list.num_nodes = vertices;
  list.num_types = kTypes;
  const uint64_t key = mix_key(17, static_cast<uint64_t>(vertices));
  for (int64_t i = 0; i < edges; ++i) {
    const uint64_t bits = mix_key(key, static_cast<uint64_t>(i));
    const double u = static_cast<double>(bits >> 40) / static_cast<double>(1 << 24);
    list.src.push_back(static_cast<NodeId>(std::pow(u, 2.5) * static_cast<double>(vertices - 1)));
    list.dst.push_back(static_cast<NodeId>((bits & 0xFFFFFFFF) % static_cast<uint64_t>(vertices)));
    list.type.push_back(static_cast<uint16_t>((bits >> 33) % kTypes));
  }
  return build_graph(std::move(list), "sample graph");
}

struct Trial {
  const char* model;
  int64_t in, hidden, out;
  int layers;
};

// The small graphs have values that stay in cache, and products of every width. The large graphs
// have gathered rows that do not fit the cache, and products of few columns. So neither kind of
// work hides the other.
constexpr Trial kSmall[] = {{"gcn", 64, 128, 16, 3},   {"rgcn", 32, 64, 16, 3},      {"gat", 32, 64, 16, 3},
                            {"sage", 128, 256, 16, 3}, {"sage-lstm", 16, 32, 16, 3}, {"gin", 32, 64, 16, 3},
                            {"gcn", 16, 32, 16, 3},    {"rgcn", 64, 128, 16, 3},     {"gat", 128, 256, 16, 3},
                            {"sage", 602, 64, 40, 3},  {"sage-lstm", 64, 128, 16, 2}};
constexpr Trial kLarge[] = {{"gcn", 16, 256, 8, 2},
                            {"rgcn", 16, 128, 8, 2},
                            {"sage", 16, 128, 40, 2},
                            {"gat", 16, 128, 8, 2},
                            {"gcn", 32, 64, 64, 3}};

// Holds the leaves of a plan, filled with values that make no kernel faster than real values would.
class Leaves {
 public:
  void bind(Executor& executor, const Blocks& blocks) {
    for (const Node& node : executor.plan().dfg.nodes()) {
      if (node.op != Op::input && node.op != Op::param) continue;
      const int64_t count = blocks.rows(node.type.space) * node.type.row_size();
      Tensor t = Tensor::zeros(node.type.dtype, {count});
      if (node.type.dtype == DType::f32) {
        float* data = t.data<float>();
        for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 17) * 0.01F - 0.08F;
      }
      executor.bind(node.name, t.raw());
      tensors_.push_back(std::move(t));
    }
  }

 private:
  std::vector<Tensor> tensors_;
};

void time_plan(const Plan& plan, const Blocks& blocks, int64_t cache, std::vector<Timing>& samples) {
  Executor executor(plan, blocks, std::make_shared<GraphViews>());
  Leaves leaves;
  leaves.bind(executor, blocks);
  ConstantPool pool;
  executor.allocate(allocate_bytes(executor.arena_bytes()), pool);
  executor.prepare();
  std::vector<double> best(plan.kernels.size(), std::numeric_limits<double>::infinity());
  executor.run({1, 0});
  for (int run = 0; run < kRuns; ++run) {
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      if (!plan.kernels[k].once) best[k] = std::min(best[k], executor.time_kernel(k));
    }
  }
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (std::isfinite(best[k])) samples.push_back({kernel_work(plan.kernels[k], plan, blocks, cache), best[k]});
  }
}

// Returns options for one or two plans which together take two orders at every site, so that every
// kind of kernel is timed.
std::vector<PlanOptions> both_ways(const Dfg& dfg, const Blocks& blocks) {
  std::vector<PlanOptions> ways(2);
  for (const Site& site : find_sites(prepare_dfg(dfg, blocks, {}))) {
    for (size_t w = 0; w < 2; ++w) {
      ways[w].choices[site.key] = site.options[site.options.size() - 1 - w];
    }
  }
  if (ways[0] == ways[1]) ways.pop_back();
  return ways;
}

template <class Run>
double best_seconds(int repeats, Run run) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const double start = now_seconds();
    run();
    best = std::min(best, now_seconds() - start);
  }
  return best;
}

double gemm_rate() {
  constexpr int64_t m = 8192, n = 256;
  Tensor a = Tensor::zeros(DType::f32, {m, n}), b = Tensor::zeros(DType::f32, {n, n}), c = a;
  c = Tensor::zeros(DType::f32, {m, n});
  const double s =
      best_seconds(4, [&] { cpu::gemm_nn(m, n, n, a.data<float>(), n, b.data<float>(), n, c.data<float>(), n); });
  return 2.0 * m * n * n / s;
}

// Returns the rate of copying rows of 1 KiB from a table of `rows` rows, in a scattered order or in
// sequence.
double row_rate(int64_t rows, bool scattered) {
  constexpr int64_t width = 256, tile = 64;
  const int64_t reads = std::max<int64_t>(rows, 1 << 16);
  Buffer<float> table(rows * width);
  parallel_for(rows * width, 1 << 18,
               [&](int64_t b, int64_t e) { std::fill(table.data() + b, table.data() + e, 1.0F); });
  std::vector<float> sums((reads + tile - 1) / tile);
  const auto run = [&] {
    parallel_for(reads, tile, [&](int64_t b, int64_t e) {
      float sum[16] = {};
      for (int64_t i = b; i < e; ++i) {
        const int64_t row = scattered ? (i * 7919) % rows : i % rows;
        const float* x = table.data() + row * width;
        for (int64_t j = 0; j < width; j += 16) {
          for (int64_t l = 0; l < 16; ++l) sum[l] += x[j + l];
        }
      }
      sums[b / tile] = std::accumulate(sum, sum + 16, 0.0F);
    });
  };
  run();
  return static_cast<double>(reads * width * 4) / best_seconds(3, run);
}

}  // namespace

std::vector<Timing> calibration_samples(int64_t cache_bytes, const CalibrateOptions& options) {
  const double start = now_seconds();
  struct Round {
    int64_t vertices, edges;
    std::span<const Trial> trials;
    double until;  // share of the time after which the round ends
  };
  const Round rounds[] = {{3000, 30000, kSmall, 0.3}, {160000, 800000, kLarge, 0.7}, {20000, 300000, kSmall, 1.0}};
  std::vector<Timing> samples;
  for (const Round& round : rounds) {
    const Graph graph = sample_graph(round.vertices, round.edges);
    for (const Trial& trial : round.trials) {
      if (now_seconds() - start > round.until * options.seconds) break;
      ModelOptions model;
      model.model = trial.model;
      model.layers = trial.layers;
      model.in_dim = trial.in;
      model.hidden = trial.hidden;
      model.out_dim = trial.out;
      model.num_edge_types = kTypes;
      model.dropout = 0.5;
      Dfg dfg = build_model(complete_options(model));
      differentiate(dfg);
      const Blocks blocks = Blocks::full(graph, model.layers);
      for (const PlanOptions& way : both_ways(dfg, blocks)) {
        time_plan(make_plan(dfg, blocks, way), blocks, cache_bytes, samples);
      }
    }
  }
  return samples;
}

DeviceProfile measure_profile(const CalibrateOptions& options) {
  DeviceProfile p;
  p.machine = machine_name(num_threads());
  p.version = kProfileVersion;
  cpu::gemm_warm_up();
  p.gemm_flops = gemm_rate();
  p.stream_bytes = row_rate(256 << 10, false);
  // The cache size is measured from this process, because the size that a machine reports may be
  // shared with others.
  std::vector<double> rates;  // rates for tables of 1, 2, 4, … MiB
  for (int64_t rows = 1 << 10; rows <= 256 << 10; rows *= 2) rates.push_back(row_rate(rows, true));
  p.near_gather_bytes = *std::max_element(rates.begin(), rates.end());
  p.far_gather_bytes = rates.back();
  size_t fits = 0;
  while (fits + 1 < rates.size() && rates[fits + 1] > std::sqrt(p.near_gather_bytes * p.far_gather_bytes)) ++fits;
  p.cache_bytes = int64_t{1} << (20 + fits);
  p.launch_seconds = best_seconds(20, [] { parallel_tasks(64, [](int64_t) {}); });
  p.model = CostModel::fitted(calibration_samples(p.cache_bytes, options));
  return p;
}

DeviceProfile machine_profile(bool say) {
  if (auto stored = load_profile(machine_name(num_threads()), kProfileVersion)) return std::move(*stored);
  if (say) log_info("measuring this machine once, so that the planner can compare plans");
  DeviceProfile profile = measure_profile();
  save_profile(profile);
  return profile;
}

}  // namespace nacre
