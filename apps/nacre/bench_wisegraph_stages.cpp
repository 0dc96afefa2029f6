// Measures Fig. 16, which shows what each stage of planning gains, and Fig. 17, the duplicated work
// that rewriting removes.
#include <fmt/format.h>

#include <algorithm>

#include "bench_wisegraph.h"
#include "nacre/base/log.h"
#include "nacre/gtask/attributes.h"
#include "nacre/plan/explain.h"

namespace nacre::cli {
namespace {

PlanOptions as_written(const std::string& table) {
  PlanOptions options;
  options.rewrite = false;
  options.table = PartitionTable::parse(table);
  return options;
}

struct Stage {
  std::string name, what;
  double seconds = -1;
};

// Times the model as written with each candidate table, and returns the fastest table and its time.
// A table that takes more than three times as long as the best so far is given up after one step.
Stage best_table(WiseBench& bench, Workbench& work, double first) {
  Stage best{"tables", "edge-id=1", first};
  for (const PartitionTable& table : candidate_tables(work.dfg())) {
    TimingOptions how = bench.timing();
    how.rounds = how.steps = 1;
    if (best.seconds > 0) how.limit = std::min(how.limit, 3 * best.seconds);
    const PlanTiming t = work.time({work.plan(as_written(table.text()))}, how)[0];
    if (t.state != "ok" || (best.seconds > 0 && t.seconds() >= best.seconds)) continue;
    best.seconds = t.seconds();
    best.what = table.text();
  }
  return best;
}

std::vector<Stage> stages_of(WiseBench& bench, Workbench& work) {
  std::vector<Stage> stages;
  const auto add = [&](const char* name, const std::string& what, const Plan& plan) {
    stages.push_back({name, what, work.time({plan}, bench.timing())[0].seconds()});
  };
  add("edge-centric, as written", "edge-id=1", work.plan(as_written("edge-id=1")));
  const Stage table = best_table(bench, work, stages.back().seconds);
  add("best table", table.what, work.plan(as_written(table.what)));
  PlanOptions base;
  base.table = PartitionTable::parse(table.what);
  add("rewriting", table.what, work.plan(search_plan(work.dfg(), work.blocks(), base, {}).options));
  add("joint search", "each kernel its own", work.answer("auto").plan);
  return stages;
}

// Splits the seconds of a kernel into neural and indexing seconds. If a kernel does both, its time
// is divided by the work of each and the machine's rates.
std::pair<double, double> classes_of(const Kernel& k, const Work& w, const DeviceProfile& p, double seconds) {
  switch (k.kind) {
    case KernelKind::gtask:
    case KernelKind::gtask_grad:
    case KernelKind::typed_reduce:
    case KernelKind::typed_weight_grad:
    case KernelKind::lstm:
    case KernelKind::lstm_grad:
    case KernelKind::lstm_gates_grad: {
      const double neural = w[Feature::flops] / p.gemm_flops;
      const double moved = w[Feature::near_bytes] / p.near_gather_bytes + w[Feature::far_bytes] / p.far_gather_bytes;
      const double share = neural + moved > 0 ? neural / (neural + moved) : 0;
      return {seconds * share, seconds * (1 - share)};
    }
    case KernelKind::spmm:
    case KernelKind::reduce:
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
    case KernelKind::map_edges:
      return {0, seconds};
    default:
      return {seconds, 0};
  }
}

std::pair<double, double> classes_of(WiseBench& bench, Workbench& work, const Plan& plan, const PlanTiming& timing) {
  std::pair<double, double> sum{0, 0};
  for (size_t k = 0; k < timing.kernels.size(); ++k) {
    const Work w = kernel_work(plan.kernels[k], plan, work.blocks(), bench.profile().cache_bytes);
    const auto [neural, indexing] = classes_of(plan.kernels[k], w, bench.profile(), timing.kernels[k]);
    sum.first += neural;
    sum.second += indexing;
  }
  return sum;
}

}  // namespace

void bench_stages(WiseBench& bench) {
  Report report({"graph", "model", "stage", "table", "ms", "edges_per_s"});
  BarPlot plot;
  plot.title = "Throughput after each stage of planning, " + bench.options().graphs.front();
  plot.unit = "M edges/s";
  for (const std::string& model : bench.options().models) {
    const std::string& graph = bench.options().graphs.front();
    Workbench work = bench.open(graph, model);
    plot.groups.push_back(model);
    plot.values.emplace_back();
    plot.series.clear();
    for (const Stage& stage : stages_of(bench, work)) {
      const double rate = stage.seconds > 0 ? static_cast<double>(work.graph().num_edges()) / stage.seconds : -1;
      report.add({bench.graph_for(graph, model), model, stage.name, stage.what, cell(stage.seconds * 1e3), cell(rate)});
      plot.series.push_back(stage.name);
      plot.values.back().push_back(rate < 0 ? -1 : rate / 1e6);
    }
    bench.say("fig. 16: " + model + " done");
    bench.keep("fig16", "", report);
  }
  bench.keep("fig16", "Fig. 16: throughput by stage", report);
  bench.keep_svg("fig16", plot_svg(plot));
}

void bench_duplication(WiseBench& bench) {
  Report report({"graph", "model", "dfg", "neural_gflop", "neural_removed_percent", "index_gib", "neural_ms",
                 "indexing_ms", "ms"});
  BarPlot plot;
  plot.title = "Neural and indexing time as written and rewritten, " + bench.options().graphs.front();
  plot.unit = "ms";
  plot.series = {"neural, as written", "indexing, as written", "neural, rewritten", "indexing, rewritten"};
  for (const std::string& model : bench.options().models) {
    const std::string& graph = bench.options().graphs.front();
    Workbench work = bench.open(graph, model);
    PlanOptions written;
    written.rewrite = false;
    const std::vector<Plan> plans = {work.plan(written), work.answer("auto").plan};
    const std::vector<PlanTiming> timings = work.time(plans, bench.timing());
    const DfgWork before = count_dfg_work(plans[0].dfg, work.blocks());
    plot.groups.push_back(model);
    plot.values.emplace_back();
    for (size_t p = 0; p < plans.size(); ++p) {
      const DfgWork counted = count_dfg_work(plans[p].dfg, work.blocks());
      const auto [neural, indexing] = classes_of(bench, work, plans[p], timings[p]);
      const bool known = timings[p].state == "ok";
      report.add({bench.graph_for(graph, model), model, p == 0 ? "as written" : "rewritten",
                  cell(counted.neural_flops / 1e9), cell(std::max(0.0, neural_removed(before, counted))),
                  cell(counted.index_bytes / (1 << 30)), known ? cell(neural * 1e3) : timings[p].state,
                  known ? cell(indexing * 1e3) : timings[p].state, cell(timings[p].seconds() * 1e3)});
      plot.values.back().push_back(known ? neural * 1e3 : -1);
      plot.values.back().push_back(known ? indexing * 1e3 : -1);
    }
    bench.say("fig. 17: " + model + " done");
    bench.keep("fig17", "", report);
  }
  bench.keep("fig17", "Fig. 17: work and time as written and rewritten", report);
  bench.keep_svg("fig17", plot_svg(plot));
}

}  // namespace nacre::cli
