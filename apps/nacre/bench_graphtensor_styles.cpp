// Measures Figs. 15-18: sampled blocks computed in the styles of other frameworks and in Nacre's,
// all in one engine, with their time and its parts, memory, bytes and operations.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench_graphtensor.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/plan/work.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

constexpr size_t kDense = 0, kNapa = 2, kDkp = 3;

constexpr std::array<const char*, 6> kClasses = {"aggregation",     "edge weighting", "combination",
                                                 "sparse to dense", "other",          "translation"};
constexpr size_t kAggregation = 0, kWeighting = 1, kCombination = 2, kSparseToDense = 3, kOther = 4, kTranslation = 5;

size_t class_of(const Plan& plan, const Kernel& k) {
  const Node& root = plan.dfg[k.root];
  switch (k.kind) {
    case KernelKind::matmul:
    case KernelKind::weight_grad:
    case KernelKind::typed_rows:
    case KernelKind::typed_rows_grad:
      return kCombination;
    case KernelKind::spmm:
    case KernelKind::reduce:
    case KernelKind::typed_reduce:
      return kAggregation;
    case KernelKind::softmax:
    case KernelKind::softmax_grad:
      return kWeighting;
    default:
      break;
  }
  if (root.type.space.kind == SpaceKind::edge)
    return root.op == Op::index && k.nodes.size() == 1 && root.type.row_size() > 1 ? kSparseToDense : kWeighting;
  const auto indexes = [&](NodeRef v) {
    const Op op = plan.dfg[v].op;
    return op == Op::index_add || op == Op::index_mean || op == Op::index_max;
  };
  return std::any_of(k.nodes.begin(), k.nodes.end(), indexes) ? kAggregation : kOther;
}

struct StyleFigures {
  std::string state = "ok";
  double seconds = 0;  // all kernels, median over batches; without preparing them (translation)
  std::array<double, kClasses.size()> classes{};
  double footprint = 0, edge_tensors = 0;  // bytes of the largest batch
  double bytes = 0, flops = 0;             // mean over the steps
};

// Returns the bytes of stored values that have a row of several numbers for every edge.
double edge_tensor_bytes(const Plan& plan, const Blocks& blocks) {
  double sum = 0;
  for (NodeRef v = 0; v < static_cast<NodeRef>(plan.stored.size()); ++v) {
    const ValueType& type = plan.dfg[v].type;
    if (plan.stored[v] != 0 && type.space.kind == SpaceKind::edge && type.row_size() > 1)
      sum += static_cast<double>(blocks.rows(type.space) * type.row_size() * dtype_size(type.dtype));
  }
  return sum;
}

class StyleBench {
 public:
  StyleBench(GraphTensorBench& bench, const std::string& graph, const std::string& model, const Style& style)
      : rounds_(bench.options().rounds),
        batches_(std::max(1, bench.options().batches / 3)),
        session_(bench.data(graph), config(bench, model, style), {.evaluation = false}) {}

  StyleFigures run() {
    StyleFigures f;
    std::vector<double> seconds;
    std::array<std::vector<double>, kClasses.size()> classes;
    for (const Sample& sample : session_.trial_batches(batches_)) {
      if (!batch(sample, f, seconds, classes)) return f;
    }
    f.seconds = median(seconds);
    for (size_t c = 0; c < kClasses.size(); ++c) f.classes[c] = median(classes[c]);
    const auto n = static_cast<double>(seconds.size());
    f.bytes /= n;
    f.flops /= n;
    return f;
  }

 private:
  static RunConfig config(const GraphTensorBench& bench, const std::string& model, const Style& style) {
    RunConfig c = bench.config_for(model);
    c.plan = style.plan;
    return c;
  }

  bool batch(const Sample& sample, StyleFigures& f, std::vector<double>& seconds,
             std::array<std::vector<double>, kClasses.size()>& classes) {
    const Plan& plan = session_.plan();
    const Blocks blocks = session_.blocks(sample);
    const double start = now_seconds();
    const auto executor = session_.runner().prepare(blocks);
    classes[kTranslation].push_back(now_seconds() - start);
    f.footprint = std::max(f.footprint, static_cast<double>(executor->arena_bytes()));
    f.edge_tensors = std::max(f.edge_tensors, edge_tensor_bytes(plan, blocks));
    count(plan, blocks, f);
    Backend& backend = executor->backend();
    if (executor->arena_bytes() > backend.available_bytes() / 10 * 9) {
      f.state = "memory";
      return false;
    }
    const auto values = session_.leaves(session_.dfg(), sample);
    session_.bind(*executor, values);
    ConstantPool constants;
    executor->allocate(backend.allocate(executor->arena_bytes()), constants);
    executor->run_timed({});
    executor->reset_times();
    for (int r = 0; r < rounds_; ++r) executor->run_timed({});
    std::array<double, kClasses.size()> sum{};
    for (size_t k = 0; k < plan.kernels.size(); ++k)
      sum[class_of(plan, plan.kernels[k])] += executor->times()[k].seconds / rounds_;
    double all = 0;
    for (size_t c = 0; c < kTranslation; ++c) {
      classes[c].push_back(sum[c]);
      all += sum[c];
    }
    seconds.push_back(all);
    return true;
  }

  static void count(const Plan& plan, const Blocks& blocks, StyleFigures& f) {
    for (const Kernel& k : plan.kernels) {
      const Work w = kernel_work(k, plan, blocks, nominal_cpu().cache_bytes);
      f.bytes += w[Feature::stream_bytes] + w[Feature::near_bytes] + w[Feature::far_bytes];
      f.flops += w[Feature::flops] + w[Feature::vector_flops];
    }
  }

  int rounds_, batches_;
  BatchSession session_;
};

// Holds one table and one bar chart.
struct Figure {
  Report report;
  BarPlot plot;
};

class StyleReport {
 public:
  StyleReport() {
    for (const Style& s : kStyles) {
      time_.plot.series.emplace_back(s.name);
      memory_.plot.series.emplace_back(s.name);
    }
    time_.plot.title = "Forward and backward pass by execution style, translation included";
    time_.plot.unit = "ms";
    memory_.plot.title = "Memory of a step by execution style";
    memory_.plot.unit = "MiB";
    parts_.plot.title = "Where the time goes";
    parts_.plot.unit = "ms";
    parts_.plot.series.assign(kClasses.begin(), kClasses.end());
    placement_.plot.title = "What dynamic kernel placement saves";
    placement_.plot.unit = "times";
    placement_.plot.series = {"operations", "bytes", "time"};
  }

  void add(const std::string& graph, const std::string& model, const std::vector<StyleFigures>& list) {
    const std::string group = graph.substr(graph.find(':') + 1) + " " + model;
    time_.plot.groups.push_back(group);
    memory_.plot.groups.push_back(group);
    time_.plot.values.emplace_back();
    memory_.plot.values.emplace_back();
    for (size_t s = 0; s < list.size(); ++s) add_style(graph, model, s, list);
    const StyleFigures &before = list[kNapa], &after = list[kDkp];
    placement_.report.add({graph, model, cell(before.flops / 1e9), cell(after.flops / 1e9),
                           cell(before.flops / after.flops), cell(before.bytes / (1 << 20)),
                           cell(after.bytes / (1 << 20)), cell(before.bytes / after.bytes),
                           cell(before.seconds / after.seconds)});
    placement_.plot.groups.push_back(group);
    placement_.plot.values.push_back(
        {before.flops / after.flops, before.bytes / after.bytes, before.seconds / after.seconds});
  }

  void keep(GraphTensorBench& bench, bool last) {
    keep(bench, "15", "Fig. 15: latency by execution style", time_, last);
    keep(bench, "16", "Fig. 16: kernel breakdown (ms)", parts_, last);
    keep(bench, "17", "Fig. 17: memory and bytes of a step", memory_, last);
    keep(bench, "18", "Fig. 18: dynamic kernel placement", placement_, last);
  }

 private:
  void add_style(const std::string& graph, const std::string& model, size_t s, const std::vector<StyleFigures>& list) {
    const StyleFigures &f = list[s], &dense = list[kDense];
    const bool ok = f.state == "ok";
    const double latency = ok ? f.seconds + f.classes[kTranslation] : -1;
    const double napa = list[kNapa].seconds + list[kNapa].classes[kTranslation];
    time_.report.add({graph, model, kStyles[s].name, kStyles[s].plan, ok ? cell(latency * 1e3) : f.state,
                      ok ? cell(f.seconds * 1e3) : "", ok ? cell(latency / napa) : ""});
    time_.plot.values.back().push_back(ok ? latency * 1e3 : -1);
    std::vector<std::string> parts = {graph, model, kStyles[s].name};
    std::vector<double> bars;
    for (const double c : f.classes) {
      parts.push_back(ok ? cell(c * 1e3) : "");
      bars.push_back(ok ? c * 1e3 : -1);
    }
    parts_.report.add(parts);
    parts_.plot.groups.push_back(fmt::format("{} {}", model, kStyles[s].plan));
    parts_.plot.values.push_back(bars);
    memory_.report.add({graph, model, kStyles[s].name, cell(f.footprint / (1 << 20)),
                        cell(100 * f.footprint / dense.footprint), cell(f.edge_tensors / (1 << 20)),
                        ok ? cell(f.bytes / (1 << 20)) : ""});
    memory_.plot.values.back().push_back(f.footprint / (1 << 20));
  }

  static void keep(GraphTensorBench& bench, const char* number, const char* title, const Figure& f, bool last) {
    if (!bench.wants(number)) return;
    const std::string name = std::string("fig") + number;
    bench.keep(name, last ? title : "", f.report);
    if (last) bench.write(name + ".svg", plot_svg(f.plot));
  }

  Figure time_{Report({"graph", "model", "style", "plan", "latency_ms", "kernels_ms", "over_napa"}), {}};
  Figure parts_{Report({"graph", "model", "style", "aggregation", "edge_weighting", "combination", "sparse_to_dense",
                        "other", "translation"}),
                {}};
  Figure memory_{Report({"graph", "model", "style", "footprint_mib", "percent_of_dense", "edge_tensors_mib",
                         "loaded_and_stored_mib"}),
                 {}};
  Figure placement_{Report({"graph", "model", "napa_gflop", "dkp_gflop", "flop_ratio", "napa_mib", "dkp_mib",
                            "byte_ratio", "speedup"}),
                    {}};
};

}  // namespace

void bench_styles(GraphTensorBench& bench) {
  StyleReport report;
  for (const std::string& graph : bench.options().graphs) {
    for (const std::string& model : bench.options().models) {
      std::vector<StyleFigures> list;
      for (const Style& style : kStyles) {
        list.push_back(StyleBench(bench, graph, model, style).run());
        bench.say(fmt::format("figs. 15-18: {} {} {}: {}", graph, model, style.name,
                              list.back().state == "ok" ? human_seconds(list.back().seconds) : list.back().state));
      }
      report.add(graph, model, list);
      report.keep(bench, false);
    }
  }
  report.keep(bench, true);
}

}  // namespace nacre::cli
