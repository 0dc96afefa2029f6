// Measures the time to partition a growing graph, table by table, and how close it is to a straight
// line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// Returns a graph with edge types, so that every table has something to sort. Its features are not
// used.
Graph typed_graph(double scale, const RunConfig& config) {
  Dataset dataset = load_dataset(fmt::format("twin:reddit@{:.6g}", scale), config.load);
  return dataset.graph.typed() ? dataset.graph : assign_relations(dataset.graph, config.relations);
}

constexpr int kRepeats = 2;  // the faster run counts

struct Partitioned {
  int64_t tasks = 0;
  double seconds = 0;
};

Partitioned timed_partition(const Graph& graph, const PartitionTable& table) {
  Partitioned best;
  for (int i = 0; i < kRepeats; ++i) {
    const double start = now_seconds();
    best.tasks = partition(graph, table).num_tasks();
    const double seconds = now_seconds() - start;
    best.seconds = i == 0 ? seconds : std::min(best.seconds, seconds);
  }
  return best;
}

// Says how far the time of the worst point is from the line, in seconds, and at which size (in
// million edges) that is.
struct Deviation {
  double seconds = 0, at = 0;
};

Deviation largest_deviation(const LinearFit& line, const std::vector<double>& x, const std::vector<double>& y) {
  Deviation worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const double off = y[i] - (line.a + line.b * x[i]);
    if (i == 0 || std::fabs(off) > std::fabs(worst.seconds)) worst = {off, x[i]};
  }
  return worst;
}

}  // namespace

void bench_partition(WiseBench& bench) {
  Report report({"edges", "table", "gtasks", "seconds", "m_edges_per_s"});
  Report fits({"table", "intercept_s", "seconds_per_100m_edges", "r2", "largest_s", "worst_deviation_s", "at_m_edges"});
  LinePlot plot;
  plot.title = "Seconds to partition twin:reddit";
  plot.x_name = "million edges";
  plot.y_name = "s";
  for (const char* table : kTables) plot.series.push_back({table, {}, {}});
  for (const double scale : kScales) {
    const Graph graph = typed_graph(scale * bench.options().scale, bench.options().config);
    const auto edges = static_cast<double>(graph.num_edges());
    for (size_t t = 0; t < std::size(kTables); ++t) {
      const Partitioned done = timed_partition(graph, PartitionTable::parse(kTables[t]));
      report.add({std::to_string(graph.num_edges()), kTables[t], std::to_string(done.tasks), cell(done.seconds),
                  cell(edges / done.seconds / 1e6)});
      plot.series[t].x.push_back(edges / 1e6);
      plot.series[t].y.push_back(done.seconds);
    }
    bench.say(fmt::format("partition: {} edges done", human_count(graph.num_edges())));
  }
  for (const auto& s : plot.series) {
    const LinearFit line = fit_line(s.x, s.y);
    const Deviation worst = largest_deviation(line, s.x, s.y);
    fits.add({s.name, fmt::format("{:.3g}", line.a), fmt::format("{:.3g}", line.b * 100),
              fmt::format("{:.4f}", line.r2), cell(s.y.back()), fmt::format("{:+.3g}", worst.seconds),
              fmt::format("{:.3g}", worst.at)});
  }
  bench.keep("partition", "Partitioning", report);
  bench.keep("partition-fit", "Partitioning: seconds = intercept + slope * edges", fits);
  bench.keep_svg("partition", plot_svg(plot));
}

}  // namespace nacre::cli
