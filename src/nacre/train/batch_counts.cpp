#include "nacre/train/batch_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/names.h"

namespace nacre {
namespace {

// A step is long enough if the ranks finish at least this share of the batches that they would
// finish if none of them waited for the others at the end of the step.
constexpr double kWorth = 0.8;
// The most batches that --shares may give one rank in a step.
constexpr double kMostBatches = 1024;

// Returns how many whole batches each rank finishes in `seconds`.
std::vector<int64_t> finished(const std::vector<double>& speeds, double seconds) {
  constexpr double kRounding = 1e-9;
  std::vector<int64_t> counts;
  counts.reserve(speeds.size());
  for (const double speed : speeds) counts.push_back(static_cast<int64_t>(std::floor(seconds * speed + kRounding)));
  return counts;
}

}  // namespace

std::vector<int64_t> counts_by_speed(const std::vector<double>& speeds) {
  double slowest = 0, all = 0;
  for (const double speed : speeds) {
    if (speed > 0 && (slowest == 0 || speed < slowest)) slowest = speed;
    all += speed;
  }
  NACRE_CHECK(slowest > 0, "no rank has a speed");
  // In the shortest step, the slowest rank finishes one batch. The next longer step ends when some
  // rank has finished one more batch.
  for (double seconds = 1 / slowest;;) {
    std::vector<int64_t> counts = finished(speeds, seconds);
    const auto done = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
    if (done >= kWorth * all * seconds) return counts;
    double next = 0;
    for (size_t r = 0; r < speeds.size(); ++r) {
      const double then = speeds[r] > 0 ? static_cast<double>(counts[r] + 1) / speeds[r] : 0;
      if (then > 0 && (next == 0 || then < next)) next = then;
    }
    seconds = next;
  }
}

std::vector<int64_t> counts_of_shares(const std::vector<double>& shares) {
  std::vector<int64_t> counts;
  for (const double share : shares) {
    if (share != std::floor(share) || share < 0 || share > kMostBatches)
      throw UserError("--shares",
                      fmt::format("{} is no number of batches; with --mode minibatch, shares say how many batches "
                                  "each device computes in a step",
                                  share),
                      "give whole numbers, for example 1,2");
    counts.push_back(static_cast<int64_t>(share));
  }
  if (std::accumulate(counts.begin(), counts.end(), int64_t{0}) == 0)
    throw UserError("--shares", "gives no device a batch", "give at least one of them 1");
  return counts;
}

std::vector<double> measured_speeds(const std::vector<DeviceSpeed>& devices, const std::vector<double>& seconds) {
  const auto alike = [&](size_t a, size_t b) {
    return devices[a].cores == devices[b].cores && devices[a].score == devices[b].score;
  };
  std::vector<double> speeds;
  for (size_t r = 0; r < devices.size(); ++r) {
    double sum = 0, ranks = 0;
    for (size_t other = 0; other < devices.size(); ++other) {
      if (!alike(r, other) || seconds[other] <= 0) continue;
      sum += seconds[other];
      ++ranks;
    }
    speeds.push_back(seconds[r] > 0 ? ranks / sum : 0);
  }
  return speeds;
}

BatchPart batch_part(const std::vector<int64_t>& counts, int rank) {
  BatchPart part{0, 0, counts[rank]};
  for (size_t r = 0; r < counts.size(); ++r) {
    if (static_cast<int>(r) < rank) part.begin += counts[r];
    part.group += counts[r];
  }
  return part;
}

std::string pack_counts(const std::vector<int64_t>& counts) {
  return {reinterpret_cast<const char*>(counts.data()), counts.size() * sizeof(int64_t)};
}

std::vector<int64_t> unpack_counts(const std::string& bytes) {
  std::vector<int64_t> counts(bytes.size() / sizeof(int64_t));
  std::memcpy(counts.data(), bytes.data(), counts.size() * sizeof(int64_t));
  return counts;
}

std::string counts_text(const std::vector<RankDevice>& devices, const std::vector<int64_t>& counts) {
  std::string list;
  for (size_t r = 0; r < devices.size(); ++r)
    list += fmt::format("{}{} by {}", r == 0 ? "" : ", ", counts[r], devices[r].text);
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  return fmt::format("each step computes {}: {}", counted(all, "batch", "batches"), list);
}

}  // namespace nacre
