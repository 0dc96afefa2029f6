// Measures Fig. 19: the time of epochs from seeds to updated weights, first in the serial order in
// each execution style, then with each optimisation of the tensor scheduler added.
#include <fmt/format.h>

#include <algorithm>

#include "bench_graphtensor.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

// Holds the measurements of one variant. Each list has an entry for each round.
struct Measured {
  std::vector<double> seconds;
  std::vector<std::vector<double>> parts;  // for each of kParts, the seconds of each round

  void add(const EpochTimes& t) {
    const LoaderTimes& l = t.loader;
    const double transfer = l.copied > 0 ? l.copied : l.transfer;
    const std::vector<double> values = {t.compute, t.device, l.sample_pick, l.sample_insert,
                                        l.reindex, l.lookup, transfer,      l.prepare};
    parts.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) parts[i].push_back(values[i]);
    seconds.push_back(t.seconds);
    waits.push_back(l.waited / t.seconds);
  }
  std::vector<double> waits;  // share of the epoch spent waiting
};
// Names the parts of an epoch. compute is the time of the thread that calls the kernels. device is
// the time of the GPU, from the first to the last kernel of each step. T is the time of the link to
// the device, if there is one. S, R, K and prepare are the times of all threads together.
constexpr const char* kParts[] = {"compute_ms", "device_ms", "S_pick_ms", "S_insert_ms",
                                  "R_ms",       "K_ms",      "T_ms",      "prepare_ms"};

// Times epochs of one session with each of the loader's settings (LoaderVariant). The settings take
// turns, one epoch each per round. Times of the first round are dropped, because it allocates
// memory.
std::vector<Measured> measure(GraphTensorBench& bench, const std::string& graph, const RunConfig& config,
                              const std::vector<LoaderVariant>& variants) {
  std::vector<Measured> measured(variants.size());
  BatchSession session(bench.data(graph), config, {.evaluation = false});
  session.start();
  int64_t epoch = 0;
  for (int round = 0; round <= bench.options().rounds; ++round) {
    for (size_t v = 0; v < variants.size(); ++v) {
      session.load_with(variants[v].options);
      const EpochTimes times = run_epoch(session, epoch, bench.options().batches);
      if (round > 0) measured[v].add(times);
      ++epoch;
    }
  }
  return measured;
}

// Number of styles of other frameworks. In these styles, one stage of a batch runs after another,
// as in the paper.
constexpr size_t kOthers = std::size(kStyles) - 1;

std::vector<std::string> all_names(const GraphTensorOptions& options) {
  std::vector<std::string> names;
  for (size_t s = 0; s < kOthers && options.variants.empty(); ++s)
    names.push_back(std::string(kStyles[s].name) + ", serial");
  for (const LoaderVariant& v : loader_variants(options)) names.emplace_back(v.name);
  return names;
}

std::vector<Measured> measure_all(GraphTensorBench& bench, const std::string& graph, const std::string& model) {
  const auto variants = loader_variants(bench.options());
  std::vector<Measured> all;
  RunConfig config = bench.config_for(model);
  for (size_t s = 0; s < kOthers && bench.options().variants.empty(); ++s) {
    RunConfig other = config;
    other.plan = kStyles[s].plan;
    try {
      all.push_back(measure(bench, graph, other, {variants.front()}).front());
    } catch (const UserError& e) {  // the plan does not fit in memory
      bench.say(fmt::format("fig. 19: {} {} {}: {}", graph, model, kStyles[s].name, e.what()));
      all.emplace_back();
    }
  }
  for (Measured& m : measure(bench, graph, config, variants)) all.push_back(std::move(m));
  return all;
}

void add_cells(const Measured& m, double serial, std::vector<std::string>& row) {
  const double seconds = median(m.seconds);
  const auto [least, most] = std::minmax_element(m.seconds.begin(), m.seconds.end());
  for (const double value : {seconds * 1e3, *least * 1e3, *most * 1e3, serial / seconds, 100 * median(m.waits)})
    row.push_back(cell(value));
  for (const auto& part : m.parts) row.push_back(cell(median(part) * 1e3));
}

}  // namespace

void bench_end_to_end(GraphTensorBench& bench) {
  std::vector<std::string> columns = {"graph",   "features", "model",    "device",  "threads", "variant",
                                      "batches", "epoch_ms", "least_ms", "most_ms", "speedup", "wait_percent"};
  columns.insert(columns.end(), std::begin(kParts), std::end(kParts));
  Report report(columns);
  BarPlot plot;
  plot.title = "Epoch from seeds to weights";
  plot.unit = "ms";
  plot.series = all_names(bench.options());
  const size_t first = plot.series.size() - loader_variants(bench.options()).size();
  for (const std::string& graph : bench.options().graphs) {
    for (const std::string& model : bench.options().models) {
      const auto measured = measure_all(bench, graph, model);
      plot.groups.push_back(graph.substr(graph.find(':') + 1) + " " + model);
      plot.values.emplace_back();
      const double serial = median(measured[first].seconds);
      for (size_t v = 0; v < measured.size(); ++v) {
        const Measured& m = measured[v];
        std::vector<std::string> row = {graph,
                                        std::to_string(bench.data(graph).num_features()),
                                        model,
                                        bench.options().config.device,
                                        std::to_string(num_threads()),
                                        plot.series[v],
                                        std::to_string(bench.options().batches)};
        plot.values.back().push_back(m.seconds.empty() ? 0 : median(m.seconds) * 1e3);
        if (!m.seconds.empty()) add_cells(m, serial, row);
        row.resize(columns.size());
        report.add(std::move(row));
      }
      bench.say(fmt::format("fig. 19: {} {}: {} -> {}", graph, model, human_seconds(serial),
                            human_seconds(median(measured.back().seconds))));
      bench.keep("fig19", "", report);
    }
  }
  bench.keep("fig19", "Fig. 19: end to end", report);
  bench.write("fig19.svg", plot_svg(plot));
}

}  // namespace nacre::cli
