#include "partition_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/names.h"
#include "nacre/base/printable.h"

namespace nacre::cli {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostLines = 64;  // parts that are listed for people

// Returns null for numbers that JSON cannot write.
ordered_json number(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

std::string fill_text(double fill) {
  return std::isfinite(fill) ? fmt::format("{:+.1f} %", 100 * (fill - 1)) : "not 0";
}

}  // namespace

std::string title_of(const PartitionRun& run) {
  return fmt::format("{}: {} by {}", printable(run.data), counted(std::ssize(run.shares), "part"),
                     partition_method_name(run.options.method));
}

std::string imbalance_text(const PartitionStats& stats) {
  return std::isfinite(stats.imbalance()) ? fmt::format("{:.1f} %", 100 * stats.imbalance()) : "far";
}

std::string partition_text(const PartitionRun& run, const PartitionStats& stats) {
  std::string text =
      fmt::format("{} ({})\n", title_of(run), run.cached ? "from the cache" : human_seconds(run.seconds));
  text += fmt::format("cut         {} of {} edges ({:.2f} %)\n", human_count(stats.cut_edges), human_count(stats.edges),
                      100 * stats.cut_share());
  text += fmt::format("exchange    {} rows, those of all halos\n", human_count(stats.volume));
  text += fmt::format("imbalance   {}: the largest distance of a part's work from its target\n", imbalance_text(stats));
  text += fmt::format("{:>5} {:>8} {:>8} {:>13} {:>14} {:>13} {:>13} {:>7}\n", "part", "share", "work", "nodes",
                      "edges", "halo", "sent", "inside");
  const double sum = [&] {
    double all = 0;
    for (const PartStats& part : stats.parts) all += part.target;
    return all;
  }();
  for (size_t p = 0; p < std::min(kMostLines, stats.parts.size()); ++p) {
    const PartStats& part = stats.parts[p];
    text += fmt::format(
        "{:>5} {:>6.2f} % {:>8} {:>13} {:>14} {:>13} {:>13} {:>5.1f} %\n", p, sum > 0 ? 100 * part.target / sum : 0,
        fill_text(part.fill()), human_count(part.vertices), human_count(part.edges), human_count(part.halo),
        human_count(part.sent),
        part.vertices > 0 ? 100.0 * static_cast<double>(part.inside) / static_cast<double>(part.vertices) : 0);
  }
  if (stats.parts.size() > kMostLines)
    text += fmt::format("… and {} more parts (--json lists all)\n", stats.parts.size() - kMostLines);
  return text;
}

std::string partition_json(const PartitionRun& run, const PartitionStats& stats) {
  const PartitionOptions& o = run.options;
  ordered_json parts = ordered_json::array();
  for (size_t p = 0; p < stats.parts.size(); ++p) {
    const PartStats& part = stats.parts[p];
    parts.push_back({{"share", run.shares[p]},
                     {"nodes", part.vertices},
                     {"edges", part.edges},
                     {"work", part.work},
                     {"target", part.target},
                     {"fill", number(part.fill())},
                     {"halo", part.halo},
                     {"sent", part.sent},
                     {"inside", part.inside}});
  }
  ordered_json between = ordered_json::array();
  const size_t count = stats.parts.size();
  for (size_t p = 0; p < count; ++p) {
    between.push_back(std::vector<int64_t>(stats.between.begin() + static_cast<int64_t>(p * count),
                                           stats.between.begin() + static_cast<int64_t>((p + 1) * count)));
  }
  const ordered_json j = {{"data", run.data},
                          {"method", partition_method_name(o.method)},
                          {"row_work", o.row_work},
                          {"edge_work", o.edge_work},
                          {"seed", o.seed},
                          {"num_edges", stats.edges},
                          {"cut_edges", stats.cut_edges},
                          {"cut_share", stats.cut_share()},
                          {"volume", stats.volume},
                          {"imbalance", number(stats.imbalance())},
                          {"parts", parts},
                          {"between", between},
                          {"cached", run.cached},
                          {"seconds", run.seconds},
                          {"peak_mb", static_cast<double>(peak_memory()) / (1 << 20)}};
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace nacre::cli
