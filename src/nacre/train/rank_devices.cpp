#include "nacre/train/rank_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/machine.h"
#include "nacre/dfg/distribute.h"
#include "nacre/train/device.h"

namespace nacre {
namespace {

constexpr const char* kExamples =
    "write for example cpu:1,cpu:1 or cuda:0,cuda:1 or cuda:0@32,cuda:0@64 or cuda:0,cpu:8";

// Returns the number of threads in "cpu:2"; 0 for "cpu".
int parse_threads(const std::string& text) {
  if (text == "cpu") return 0;
  int threads = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 4, end, threads);
  if (error != std::errc() || rest != end || threads < 1 || threads > most_threads()) {
    throw UserError("--devices", fmt::format("'{}' does not name 1 to {} threads of the host", text, most_threads()),
                    kExamples);
  }
  return threads;
}

}  // namespace

std::vector<RankDevice> rank_devices(const RunConfig& config) {
  std::vector<RankDevice> ranks;
  int open = usable_cpus(), sharing = 0;
  for (const std::string& text : config.ranks.devices) {
    if (text == "cpu" || text.starts_with("cpu:")) {
      const int threads = parse_threads(text);
      if (threads == 0) ++sharing;
      open -= threads;
      ranks.push_back({text, "cpu", threads});
    } else if (text.starts_with("cuda")) {
      choose_device(text, config.precision, "--devices");
      ranks.push_back({text, text, 0});
    } else {
      throw UserError("--devices", "'" + text + "' is no device", kExamples);
    }
  }
  for (RankDevice& rank : ranks) {
    if (rank.device == "cpu" && rank.threads == 0) rank.threads = std::max(1, open / sharing);
  }
  return ranks;
}

std::vector<int> weak_ranks(const std::vector<double>& scores) {
  constexpr double kLeast = 0.05;
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  std::vector<int> weak;
  for (size_t r = 0; r < scores.size(); ++r) {
    if (scores[r] < kLeast * sum) weak.push_back(static_cast<int>(r));
  }
  return weak;
}

void check_ranks(const RunConfig& config) {
  const RankOptions& ranks = config.ranks;
  const size_t count = ranks.devices.size();
  if (count > kMostRanks) {
    throw UserError("--devices", fmt::format("names {} devices", count),
                    fmt::format("give at most {} for one process", kMostRanks));
  }
  if (!ranks.shares.empty() && ranks.shares.size() != count) {
    throw UserError("--shares", fmt::format("has {} numbers for {} devices", ranks.shares.size(), count),
                    "give one number for each device of --devices");
  }
  check_partition_options(ranks.shares.empty() ? std::vector<double>(count, 1) : ranks.shares, ranks.partition);
  if (!(ranks.timeout > 0) || !std::isfinite(ranks.timeout))
    throw UserError("--comm-timeout", fmt::format("{} is not a number of seconds", ranks.timeout), "give more than 0");
  if (ranks.halo_rows != "auto") parse_halo_rows(ranks.halo_rows);
  if (config.mode == "minibatch") {
    throw UserError("--devices", "several devices train on the whole graph, not in mini-batches",
                    "leave out --mode minibatch, or use --device");
  }
  const std::vector<RankDevice> devices = rank_devices(config);
  const bool all_host =
      std::all_of(devices.begin(), devices.end(), [](const RankDevice& r) { return r.device == "cpu"; });
  if (config.precision != "f32" && all_host)
    throw UserError("--precision", "'" + config.precision + "' needs a GPU", "use f32");
}

}  // namespace nacre
