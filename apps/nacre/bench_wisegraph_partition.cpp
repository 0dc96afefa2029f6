// Time to partition a growing graph, table by table, and how straight the line is.
#include <fmt/format.h>

#include "bench_wisegraph.h"
#include "nacre/base/log.h"
#include "nacre/data/load.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

constexpr double kScales[] = {0.01, 0.03, 0.1, 0.3, 1};
constexpr const char* kTables[] = {"dst-id=1",
                                   "edge-id=1",
                                   "dst-id=1,edge-id=32",
                                   "src-id=64,dst-id=64",
                                   "dst-id=16,dst-degree=min",
                                   "src-id=64,edge-type=1"};

// Typed, so that every table has something to sort; features are of no use here.
Graph typed_graph(double scale, const RunConfig& config) {
  Dataset dataset = load_dataset(fmt::format("twin:reddit@{:.6g}", scale), config.load);
  return dataset.graph.typed() ? dataset.graph : assign_relations(dataset.graph, config.relations);
}

}  // namespace

void bench_partition(WiseBench& bench) {
  Report report({"edges", "table", "gtasks", "seconds", "m_edges_per_s"});
  Report fits({"table", "intercept_s", "seconds_per_100m_edges", "r2", "largest_s"});
  LinePlot plot;
  plot.title = "Seconds to partition twin:reddit";
  plot.x_name = "million edges";
  plot.y_name = "s";
  for (const char* table : kTables) plot.series.push_back({table, {}, {}});
  for (const double scale : kScales) {
    const Graph graph = typed_graph(scale * bench.options().scale, bench.options().config);
    const auto edges = static_cast<double>(graph.num_edges());
    for (size_t t = 0; t < std::size(kTables); ++t) {
      const double start = now_seconds();
      const GTasks tasks = partition(graph, PartitionTable::parse(kTables[t]));
      const double seconds = now_seconds() - start;
      report.add({std::to_string(graph.num_edges()), kTables[t], std::to_string(tasks.num_tasks()), cell(seconds),
                  cell(edges / seconds / 1e6)});
      plot.series[t].x.push_back(edges / 1e6);
      plot.series[t].y.push_back(seconds);
    }
    bench.say(fmt::format("partition: {} edges done", human_count(graph.num_edges())));
  }
  for (const auto& s : plot.series) {
    const LinearFit line = fit_line(s.x, s.y);
    fits.add({s.name, fmt::format("{:.3g}", line.a), fmt::format("{:.3g}", line.b * 100),
              fmt::format("{:.4f}", line.r2), cell(s.y.back())});
  }
  bench.keep("partition", "Partitioning", report);
  bench.keep("partition-fit", "Partitioning: seconds = intercept + slope * edges", fits);
  bench.keep_svg("partition", plot_svg(plot));
}

}  // namespace nacre::cli
