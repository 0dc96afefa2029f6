// Measures Fig. 18, which shows how many values a gTask processes together, and Fig. 19, which
// compares outlier gTasks that run separately with outliers that run like the rest.
#include <fmt/format.h>

#include <algorithm>

#include "bench_wisegraph.h"
#include "nacre/base/log.h"
#include "nacre/gtask/pattern.h"
#include "nacre/plan/explain.h"

namespace nacre::cli {
namespace {

constexpr int64_t kBatches[] = {1, 4, 16, 64, 256, 1024, 0};  // 0: no limit
constexpr int64_t kUnlimited = 4096;                          // position of "no limit" in the plot

bool multiplies_by_type(const Kernel& k) {
  return std::any_of(k.program.code.begin(), k.program.code.end(),
                     [](const Micro& m) { return m.op == MicroOp::typed_gemm; });
}

// Returns the number of the largest forward kernel that follows the table.
size_t batched_kernel(const Plan& plan, bool lstm) {
  size_t best = plan.kernels.size();
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const Kernel& kernel = plan.kernels[k];
    const bool fits =
        lstm ? kernel.kind == KernelKind::lstm : kernel.kind == KernelKind::gtask && multiplies_by_type(kernel);
    if (fits && (best == plan.kernels.size() || kernel.flops > plan.kernels[best].flops)) best = k;
  }
  return best;
}

LinePlot::Series sweep(WiseBench& bench, const std::string& model, Report& report) {
  const bool lstm = model == "sage-lstm";
  const std::string& graph = bench.options().graphs.front();
  Workbench work = bench.open(graph, model);
  KernelTimer timer = work.timer(work.blocks());
  LinePlot::Series series;
  series.name = model;
  for (const int64_t k : kBatches) {
    const int64_t many = work.graph().num_nodes();
    PlanOptions options;
    options.table = PartitionTable::parse(lstm     ? fmt::format("dst-id={},dst-degree=min", k > 0 ? k : many)
                                          : k == 0 ? "edge-type=1"
                                                   : fmt::format("src-id={},edge-type=1", k));
    const Plan plan = work.plan(options);
    const size_t kernel = batched_kernel(plan, lstm);
    if (kernel == plan.kernels.size()) continue;
    const double seconds = timer(plan, kernel);
    const double rate = seconds > 0 ? static_cast<double>(work.graph().num_edges()) / seconds : -1;
    report.add({bench.graph_for(graph, model), model, options.table.text(), k > 0 ? std::to_string(k) : "inf",
                seconds > 0 ? cell(seconds * 1e3) : "memory", cell(rate)});
    bench.say(fmt::format("fig. 18: {} {}: {}", model, options.table.text(),
                          seconds > 0 ? human_seconds(seconds) : "does not fit"));
    if (rate < 0) continue;
    series.x.push_back(static_cast<double>(k > 0 ? k : kUnlimited));
    series.y.push_back(rate / 1e6);
  }
  return series;
}

// Returns the table whose outliers the paper examines for a model.
std::string outlier_table(const std::string& model) {
  if (model == "rgcn") return "src-id=64,edge-type=1";
  if (model == "gat") return "src-id=64";
  if (model == "sage-lstm") return "dst-id=64,dst-degree=min";
  return "dst-id=1,edge-id=32";
}

// Returns a graph with the edges of all gTasks that are not outliers.
Graph without_outliers(const GTasks& tasks, const PatternReport& found) {
  EdgeList edges;
  edges.num_nodes = tasks.graph.num_nodes();
  edges.num_types = tasks.graph.num_edge_types();
  for (int64_t t = 0; t < tasks.num_tasks(); ++t) {
    if (found.outlier[t] != Outlier::none) continue;
    for (int64_t i = tasks.task_ptr[t]; i < tasks.task_ptr[t + 1]; ++i) {
      edges.src.push_back(tasks.src[i]);
      edges.dst.push_back(tasks.dst[i]);
      if (tasks.graph.typed()) edges.type.push_back(static_cast<uint16_t>(tasks.type_at(i)));
      if (tasks.graph.weighted()) edges.weight.push_back(tasks.graph.edge_weight()[tasks.edge_at(i)]);
    }
  }
  return build_graph(std::move(edges), "regular gTasks");
}

// Returns the seconds of the forward kernels that follow the table.
double follow_seconds(Workbench& work, const Blocks& on, const PlanOptions& options) {
  const Plan plan = make_plan(work.dfg(), on, options);
  KernelTimer timer = work.timer(on);
  double sum = 0;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    if (plan.kernels[k].once || !(plan.kernels[k].table == options.table)) continue;
    const double seconds = timer(plan, k);
    if (seconds > 0) sum += seconds;
  }
  return sum;
}

struct OutlierTimes {
  double all = 0, outliers = 0;
  double share() const { return all > 0 ? 100 * outliers / all : 0; }
};

OutlierTimes time_outliers(Workbench& work, const Graph& regular, PlanOptions options, bool split_outliers) {
  options.split_outliers = split_outliers;
  const Blocks rest = Blocks::full(regular, work.blocks().num_layers());
  OutlierTimes t;
  t.all = follow_seconds(work, work.blocks(), options);
  t.outliers = std::clamp(t.all - follow_seconds(work, rest, options), 0.0, t.all);
  return t;
}

}  // namespace

void bench_batches(WiseBench& bench) {
  Report report({"graph", "model", "table", "k", "ms", "edges_per_s"});
  LinePlot plot;
  plot.title = "Throughput of one kernel by values batched in a gTask";
  plot.x_name = "K (the last one: no limit)";
  plot.y_name = "M edges/s";
  plot.log_x = true;
  for (const char* model : {"rgcn", "sage-lstm"}) {
    const auto& models = bench.options().models;
    if (std::find(models.begin(), models.end(), model) == models.end()) continue;
    plot.series.push_back(sweep(bench, model, report));
  }
  bench.keep("fig18", "Fig. 18: batched data", report);
  bench.keep_svg("fig18", plot_svg(plot));
}

void bench_outliers(WiseBench& bench) {
  Report report({"graph", "model", "table", "gtasks", "outlier_gtasks", "outlier_edges_percent", "step_uniform_ms",
                 "step_split_ms", "step_speedup", "gtask_uniform_ms", "gtask_split_ms", "gtask_speedup",
                 "outlier_time_uniform_percent", "outlier_time_split_percent"});
  BarPlot plot;
  plot.title = "Outlier gTasks run like the rest, or are split apart (kernels over gTasks)";
  plot.unit = "ms";
  plot.series = {"all, like the rest", "outliers, like the rest", "all, split apart", "outliers, split apart"};
  for (const std::string& model : bench.options().models) {
    const std::string& graph = bench.options().graphs.front();
    Workbench work = bench.open(graph, model);
    PlanOptions options;
    options.table = PartitionTable::parse(outlier_table(model));
    const GTasks tasks = partition(work.graph(), options.table);
    const PatternReport found = find_patterns(tasks);
    const Patterns& p = found.patterns;
    const Graph regular = without_outliers(tasks, found);
    PlanOptions uniform = options;
    uniform.split_outliers = false;
    const auto steps = work.time({work.plan(uniform), work.plan(options)}, bench.timing());
    const OutlierTimes before = time_outliers(work, regular, options, false);
    const OutlierTimes after = time_outliers(work, regular, options, true);
    const auto outlier_edges = static_cast<double>(p.underfill_edges + p.overfill_edges + p.frequent_edges);
    report.add({bench.graph_for(graph, model), model, options.table.text(), std::to_string(p.tasks),
                std::to_string(p.underfill + p.overfill + p.frequent),
                cell(100 * outlier_edges / static_cast<double>(std::max<int64_t>(1, p.edges))),
                cell(steps[0].seconds() * 1e3), cell(steps[1].seconds() * 1e3),
                cell(steps[0].seconds() / steps[1].seconds()), cell(before.all * 1e3), cell(after.all * 1e3),
                cell(before.all / after.all), cell(before.share()), cell(after.share())});
    plot.groups.push_back(model);
    plot.values.push_back({before.all * 1e3, before.outliers * 1e3, after.all * 1e3, after.outliers * 1e3});
    bench.say(fmt::format("fig. 19: {}: kernels over gTasks {} -> {}", model, human_seconds(before.all),
                          human_seconds(after.all)));
    bench.keep("fig19", "", report);
  }
  bench.keep("fig19", "Fig. 19: outliers", report);
  bench.keep_svg("fig19", plot_svg(plot));
}

}  // namespace nacre::cli
