#include "nacre/train/rank_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>

#include "nacre/base/error.h"
#include "nacre/base/machine.h"
#include "nacre/base/names.h"
#include "nacre/dfg/distribute.h"
#include "nacre/train/batch_counts.h"
#include "nacre/train/device.h"
#include "nacre/train/share_rules.h"

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

bool precisions_differ(const RunConfig& config) { return config.precision.find(',') != std::string::npos; }

// Returns the precision that the user named for each device.
std::vector<std::string> precisions_of(const RunConfig& config) {
  const size_t count = config.ranks.devices.size();
  if (!precisions_differ(config)) return std::vector<std::string>(count, config.precision);
  std::vector<std::string> names;
  std::istringstream list(config.precision);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  if (names.size() == count) return names;
  throw UserError("--precision", fmt::format("has {} names for {} devices", names.size(), count),
                  "give one name, or one for each device of --devices");
}

// Describes a part of a GPU as the user writes it, for example cuda:0@32.
struct WrittenPart {
  std::string gpu;
  int multiprocessors = 0;  // 0: the text names no part of a GPU
};

WrittenPart written_part(const std::string& text) {
  const size_t at = text.find('@');
  if (!text.starts_with("cuda") || at == std::string::npos) return {};
  WrittenPart part{text.substr(0, at)};
  if (part.gpu == "cuda") part.gpu = "cuda:0";
  std::from_chars(text.data() + at + 1, text.data() + text.size(), part.multiprocessors);
  return part;
}

}  // namespace

int busy_multiprocessors(const std::vector<std::string>& devices, const std::string& device) {
  constexpr int kGroup = 8;  // parts have a multiple of this many multiprocessors
  const std::string gpu = written_part(device).gpu;
  int busy = 0;
  for (const std::string& text : devices) {
    const WrittenPart part = written_part(text);
    if (part.multiprocessors > 0 && part.gpu == gpu) busy += (part.multiprocessors + kGroup - 1) / kGroup * kGroup;
  }
  return gpu.empty() ? 0 : busy;
}

std::vector<RankDevice> rank_devices(const RunConfig& config) {
  std::vector<RankDevice> ranks;
  const std::vector<std::string> precisions = precisions_of(config);
  int open = usable_cpus(), sharing = 0;
  for (const std::string& text : config.ranks.devices) {
    if (text.find('+') != std::string::npos) {
      throw UserError("--devices", "'" + text + "' names the devices of one process of mpirun",
                      "without mpirun, put commas between the devices");
    }
    if (text == "cpu" || text.starts_with("cpu:")) {
      const int threads = parse_threads(text);
      if (threads == 0) ++sharing;
      open -= threads;
      const std::string& precision = precisions[ranks.size()];
      if (precision != "f32" && precision != kAutomaticPrecision && precisions_differ(config)) {
        throw UserError("--precision", fmt::format("'{}' needs a GPU, but is given for {}", precision, text),
                        "use f32 for this device");
      }
      ranks.push_back({text, "cpu", threads});
    } else if (text.starts_with("cuda")) {
      const bool automatic = precisions[ranks.size()] == kAutomaticPrecision;
      const std::string precision = automatic ? "tf32" : precisions[ranks.size()];
      if (config.ranks.drives(ranks.size())) choose_device(text, precision, "--devices");
      ranks.push_back({text, text, 0, precision, precision, automatic});
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

// Throws UserError if several devices cannot train on mini-batches as the settings say.
static void check_batch_ranks(const RunConfig& config, const std::vector<RankDevice>& devices) {
  const RankOptions& ranks = config.ranks;
  if (!ranks.shares.empty()) counts_of_shares(ranks.shares);
  if (std::any_of(devices.begin(), devices.end(), [](const RankDevice& rank) { return rank.automatic; }))
    throw UserError("--precision", "'auto' is for devices that share the nodes of the whole graph",
                    "use f32, tf32 or bf16, or leave out --mode minibatch");
  const bool several_here = ranks.own < 0 || !ranks.processes.empty();
  if (config.host_budget > 0 && several_here && ranks.devices.size() > 1) {
    throw UserError("--host-budget", "features that stay on disk are read for one device of a process",
                    "start one process for each device with mpirun, use one device, or leave out --host-budget");
  }
}

void check_ranks(const RunConfig& config) {
  const RankOptions& ranks = config.ranks;
  const size_t count = ranks.devices.size();
  if (count > kMostRanks) {
    throw UserError("--devices", fmt::format("names {} devices", count),
                    fmt::format("give at most {} for one process", kMostRanks));
  }
  if (!ranks.shares.empty() && ranks.shares.size() != count) {
    throw UserError("--shares",
                    fmt::format("has {} for {} devices", counted(std::ssize(ranks.shares), "number"), count),
                    "give one number for each device of --devices");
  }
  if (ranks.shares.empty()) choose_name("--shares", "way to share out the work", ranks.share_rule, share_rule_names());
  check_partition_options(ranks.shares.empty() ? std::vector<double>(count, 1) : ranks.shares, ranks.partition);
  if (!(ranks.timeout > 0) || !std::isfinite(ranks.timeout))
    throw UserError("--comm-timeout", fmt::format("{} is not a number of seconds", ranks.timeout), "give more than 0");
  if (ranks.halo_rows != "auto") parse_halo_rows(ranks.halo_rows);
  const std::vector<RankDevice> devices = rank_devices(config);
  const bool all_host =
      std::all_of(devices.begin(), devices.end(), [](const RankDevice& r) { return r.device == "cpu"; });
  if (config.precision != "f32" && !precisions_differ(config) && all_host)
    throw UserError("--precision", "'" + config.precision + "' needs a GPU", "use f32");
  if (config.mode == "minibatch") check_batch_ranks(config, devices);
}

}  // namespace nacre
