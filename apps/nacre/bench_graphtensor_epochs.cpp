// Fig. 19: epochs from seeds to updated weights, the serial order and each measure of the tensor scheduler added.
#include <fmt/format.h>

#include "bench_graphtensor.h"
#include "nacre/base/log.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

// Medians over rounds.
struct Measured {
  std::vector<std::vector<double>> rows;

  void add(const EpochTimes& t) {
    const LoaderTimes& l = t.loader;
    const std::vector<double> values = {t.seconds, t.compute, l.waited,   l.sample_pick, l.sample_insert,
                                        l.reindex, l.lookup,  l.transfer, l.prepare};
    rows.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) rows[i].push_back(values[i]);
  }
  double operator[](size_t i) const { return median(rows[i]); }
};

// All variants compute by one plan, found once.
std::string plan_file(GraphTensorBench& bench, const std::string& graph, const std::string& model) {
  const BatchSession session(bench.data(graph), bench.config_for(model));
  bench.write("plan.json", plan_json(session.plan()));
  return bench.options().out + "/plan.json";
}

std::vector<Measured> measure(GraphTensorBench& bench, const std::string& graph, const std::string& model) {
  RunConfig config = bench.config_for(model);
  config.plan = plan_file(bench, graph, model);
  const auto variants = loader_variants(bench.options().config.loader.in_flight);
  std::vector<Measured> measured(variants.size());
  for (int round = 0; round < bench.options().rounds; ++round) {
    for (size_t v = 0; v < variants.size(); ++v) {
      config.loader = variants[v].options;
      BatchSession session(bench.data(graph), config);
      session.start();
      run_epoch(session, 0, bench.options().batches);  // memory is taken
      measured[v].add(run_epoch(session, 1, bench.options().batches));
    }
  }
  return measured;
}

}  // namespace

void bench_end_to_end(GraphTensorBench& bench) {
  Report report({"graph", "features", "model", "variant", "batches", "epoch_ms", "speedup", "wait_percent",
                 "compute_ms", "S_pick_ms", "S_insert_ms", "R_ms", "K_ms", "T_ms", "prepare_ms"});
  BarPlot plot;
  plot.title = "Epoch from seeds to weights";
  plot.unit = "ms";
  for (const LoaderVariant& v : loader_variants(1)) plot.series.emplace_back(v.name);
  for (const std::string& graph : bench.options().graphs) {
    for (const std::string& model : bench.options().models) {
      const auto measured = measure(bench, graph, model);
      plot.groups.push_back(graph.substr(graph.find(':') + 1) + " " + model);
      plot.values.emplace_back();
      for (size_t v = 0; v < measured.size(); ++v) {
        const Measured& m = measured[v];
        std::vector<std::string> row = {graph,
                                        std::to_string(bench.data(graph).num_features()),
                                        model,
                                        plot.series[v],
                                        std::to_string(bench.options().batches),
                                        cell(m[0] * 1e3),
                                        cell(measured[0][0] / m[0]),
                                        cell(100 * m[2] / m[0]),
                                        cell(m[1] * 1e3)};
        for (size_t i = 3; i < m.rows.size(); ++i) row.push_back(cell(m[i] * 1e3));
        report.add(std::move(row));
        plot.values.back().push_back(m[0] * 1e3);
      }
      bench.say(fmt::format("fig. 19: {} {}: {} -> {}", graph, model, human_seconds(measured.front()[0]),
                            human_seconds(measured.back()[0])));
      bench.keep("fig19", "", report);
    }
  }
  bench.keep("fig19", "Fig. 19: end to end", report);
  bench.write("fig19.svg", plot_svg(plot));
}

}  // namespace nacre::cli
