// For one set of devices, the time of a device is taken to be a + b · share. Before the second cut
// a is 0; after it, the line leads through the last two points of the device. The shares of the
// next cut are those at which all lines reach the same time T and which add up to 1; T is found by
// bisection. A share is never larger than what fits the device's memory, which is taken to grow in
// proportion to the share.
//
// Sets of devices are tried in this order: all; each device alone, because a single device needs no
// communication; and then, as long as it helps, the best set without its slowest link or without
// its smallest share.
#include "nacre/cost/share_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "nacre/base/error.h"
#include "nacre/base/log.h"

namespace nacre {
namespace {

// The search keeps this share of each device's memory free, because it estimates the memory for
// shares that it has not tried yet.
constexpr double kSpareMemory = 0.02;
// The smallest share that is tried is this many times an equal share.
constexpr double kSmallestShare = 0.01;

using Shares = std::vector<double>;

// Holds one cut of the graph, with the predicted seconds and the bytes of each part.
struct Trial {
  Shares shares;
  std::vector<PartLoad> parts;
  std::vector<PartTime> times;
  bool fits = true;
  double seconds = 0;  // seconds of the slowest device
};

// Holds the time of a device as a line over its share (a + b · share), as far as it is known while
// the shares of one set of devices are moved.
struct Line {
  double a = 0, b = 0;
  double most = 1;  // largest share that fits the memory
  double share = 0, seconds = 0;
  bool seen = false;

  // Puts the line through the point of the last cut (`at`, `took`) and the one before it. If the
  // slope of that line is far from took / at, the times of the two cuts differ by accident, and the
  // line leads through 0 instead.
  void learn(double at, double took) {
    if (at <= 0) return;
    const double slope = seen && std::abs(at - share) > 1e-9 ? (took - seconds) / (at - share) : -1;
    const bool useful = slope > 0.05 * took / at && slope < 5 * took / at;
    b = useful ? slope : took / at;
    a = useful ? took - slope * at : 0;
    share = at;
    seconds = took;
    seen = true;
  }

  double share_at(double time) const { return b > 0 ? std::clamp((time - a) / b, 0.0, most) : most; }
};

double sum_at(const std::vector<Line>& lines, double time) {
  double sum = 0;
  for (const Line& line : lines) sum += line.share_at(time);
  return sum;
}

// Returns the shares at which all devices take equally long, as far as their memory allows. They
// add up to 1. Returns nothing if the memory of the devices does not suffice.
std::optional<Shares> level(const std::vector<Line>& lines) {
  double room = 0;
  double high = 0;
  for (const Line& line : lines) {
    room += line.most;
    high = std::max(high, line.a + line.b * line.most);
  }
  if (room < 1) return std::nullopt;
  double low = 0;
  constexpr int halvings = 200;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (sum_at(lines, middle) < 1 ? low : high) = middle;
  }
  // A device whose share is less than this gets no part, because a part of a few vertices is not
  // worth its communication.
  const double least = kSmallestShare / static_cast<double>(lines.size());
  Shares shares;
  for (const Line& line : lines) shares.push_back(line.share_at(high) < least ? 0 : line.share_at(high));
  double sum = 0;
  for (const double s : shares) sum += s;
  for (double& s : shares) s /= sum;
  return shares;
}

bool same(const Shares& a, const Shares& b) {
  constexpr double close = 1e-4;
  for (size_t d = 0; d < a.size(); ++d) {
    if (std::abs(a[d] - b[d]) > close) return false;
  }
  return true;
}

class Search {
 public:
  Search(const std::vector<ShareDevice>& devices, const CutByShares& cut, const PredictPart& predict,
         const ShareOptions& options)
      : devices_(devices), cut_(cut), predict_(predict), options_(options), first_(options.first) {
    if (first_.empty()) first_.assign(devices.size(), 1.0);
    NACRE_CHECK(first_.size() == devices.size(), "there must be one first share for each device");
    with_.assign(devices.size(), -1.0);
    double sum = 0;
    for (const double share : first_) {
      NACRE_CHECK(share >= 0 && std::isfinite(share), "a first share is negative or not finite");
      sum += share;
    }
    // A device whose first share is 0 is tried, too, with the smallest share.
    const double least = kSmallestShare / static_cast<double>(devices.size());
    for (double& share : first_) share = std::max(sum > 0 ? share / sum : 0, least);
  }

  ShareResult run() {
    const size_t n = devices_.size();
    std::vector<char> all(n, 1);
    consider(balanced(all));
    for (size_t d = 0; n > 1 && d < n; ++d) {
      std::vector<char> alone(n, 0);
      alone[d] = 1;
      consider(balanced(alone));
    }
    while (shrink()) {
    }
    if (!best_) throw UserError("shares", too_small());
    return result();
  }

 private:
  Trial attempt(Shares shares) {
    Trial trial;
    trial.shares = std::move(shares);
    trial.parts = cut_(trial.shares);
    NACRE_CHECK(trial.parts.size() == devices_.size(), "a trial must have one part for each device");
    ++cuts_;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const PartLoad& part = trial.parts[d];
      PartTime time;
      if (trial.shares[d] > 0) {
        time.compute = predict_(d, part);
        const double rate = devices_[d].link_bytes_per_second;
        time.communicate = (rate > 0 ? part.sent_bytes / rate : 0) + part.peers * devices_[d].latency_seconds;
        trial.fits = trial.fits && part.memory_bytes <= devices_[d].memory_bytes;
        NACRE_CHECK(std::isfinite(time.total()) && time.total() >= 0, "a predicted time is negative or not finite");
      }
      trial.times.push_back(time);
      trial.seconds = std::max(trial.seconds, time.total());
    }
    return trial;
  }

  // Returns the fastest cut for the devices that `in` marks in which all parts fit their devices;
  // nothing if no such cut was found.
  std::optional<Trial> balanced(const std::vector<char>& in) {
    Shares shares(devices_.size(), 0.0);
    double sum = 0;
    for (size_t d = 0; d < shares.size(); ++d) sum += in[d] != 0 ? first_[d] : 0;
    for (size_t d = 0; d < shares.size(); ++d) shares[d] = in[d] != 0 ? first_[d] / sum : 0;
    std::vector<Line> lines(devices_.size());
    for (size_t d = 0; d < lines.size(); ++d) lines[d].most = in[d] != 0 ? 1 : 0;
    const bool several = std::count(in.begin(), in.end(), 1) > 1;
    std::optional<Trial> best;
    for (int round = 0; round < options_.cuts; ++round) {
      Trial trial = attempt(shares);
      learn(trial, lines);
      const bool done = !several || (trial.fits && even(trial));
      if (trial.fits) note_times(trial);
      if (trial.fits && (!best || trial.seconds < best->seconds)) best = std::move(trial);
      if (done) break;
      const std::optional<Shares> next = level(lines);
      if (!next || same(*next, shares)) break;
      shares = *next;
    }
    return best;
  }

  void learn(const Trial& trial, std::vector<Line>& lines) const {
    for (size_t d = 0; d < lines.size(); ++d) {
      const double share = trial.shares[d];
      if (share <= 0) continue;
      lines[d].learn(share, trial.times[d].total());
      const auto taken = static_cast<double>(trial.parts[d].memory_bytes);
      const double room = (1 - kSpareMemory) * static_cast<double>(devices_[d].memory_bytes);
      lines[d].most = taken > 0 ? std::min(1.0, share * room / taken) : 1;
    }
  }

  // Returns whether no device is much slower than the mean of the devices with a part.
  bool even(const Trial& trial) const {
    double sum = 0;
    int used = 0;
    for (size_t d = 0; d < trial.times.size(); ++d) {
      if (trial.shares[d] <= 0) continue;
      sum += trial.times[d].total();
      ++used;
    }
    return trial.seconds <= (1 + options_.balance) * sum / used;
  }

  // Returns whether a cut is better than the best one so far. If it is, keeps it as the best one.
  bool consider(std::optional<Trial> trial) {
    if (!trial || (best_ && trial->seconds >= (1 - options_.worthwhile) * best_->seconds)) return false;
    best_ = std::move(trial);
    return true;
  }

  // Keeps for each device the seconds of the fastest cut so far in which the device had a part.
  void note_times(const Trial& trial) {
    for (size_t d = 0; d < with_.size(); ++d) {
      if (trial.shares[d] > 0 && (with_[d] < 0 || trial.seconds < with_[d])) with_[d] = trial.seconds;
    }
  }

  // Returns whether the other devices could be faster without the device `without`, if they did not
  // need to communicate at all.
  bool hopeful(size_t without) const {
    double rate = 0;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const double seconds = best_->times[d].compute;
      if (d != without && best_->shares[d] > 0 && seconds > 0) rate += best_->shares[d] / seconds;
    }
    // A device may take less time for each vertex of a large part than of a small one, at most by
    // this factor.
    constexpr double gain = 1.1;
    return rate <= 0 || 1 / (gain * rate) < best_->seconds;
  }

  // Tries the devices of the best cut without one of them. Returns whether such a smaller set is
  // better.
  bool shrink() {
    std::vector<char> used;
    for (size_t d = 0; best_ && d < devices_.size(); ++d) used.push_back(best_->shares[d] > 0 ? 1 : 0);
    if (std::count(used.begin(), used.end(), 1) < 2) return false;
    size_t smallest = devices_.size();
    size_t slowest_link = devices_.size();
    for (size_t d = 0; d < devices_.size(); ++d) {
      if (used[d] == 0) continue;
      if (smallest == devices_.size() || best_->shares[d] < best_->shares[smallest]) smallest = d;
      if (slowest_link == devices_.size() || best_->times[d].communicate > best_->times[slowest_link].communicate) {
        slowest_link = d;
      }
    }
    std::vector<size_t> tries = {slowest_link};
    if (smallest != slowest_link) tries.push_back(smallest);
    for (const size_t without : tries) {
      if (!hopeful(without)) continue;
      std::vector<char> fewer = used;
      fewer[without] = 0;
      if (consider(balanced(fewer))) return true;
    }
    return false;
  }

  std::string too_small() const {
    int64_t room = 0;
    for (const ShareDevice& d : devices_) room += d.memory_bytes;
    return fmt::format("the graph does not fit the memory of the devices together ({})",
                       human_bytes(static_cast<double>(room)));
  }

  ShareResult result() const {
    ShareResult r;
    r.shares = best_->shares;
    r.times = best_->times;
    for (size_t d = 0; d < devices_.size(); ++d) {
      r.memory_bytes.push_back(best_->shares[d] > 0 ? best_->parts[d].memory_bytes : 0);
    }
    r.step_seconds = best_->seconds;
    r.cuts = cuts_;
    for (size_t d = 0; d < devices_.size(); ++d) {
      if (r.shares[d] > 0) continue;
      r.notes.push_back(fmt::format("{} is left out: a step takes {} without it and {}", devices_[d].name,
                                    human_seconds(r.step_seconds),
                                    with_[d] > 0 ? human_seconds(with_[d]) + " with it" : "does not fit with it"));
    }
    return r;
  }

  const std::vector<ShareDevice>& devices_;
  const CutByShares& cut_;
  const PredictPart& predict_;
  const ShareOptions& options_;
  Shares first_;
  std::optional<Trial> best_;
  std::vector<double> with_;  // for each device, seconds of the fastest cut that uses it; -1: none
  int cuts_ = 0;
};

}  // namespace

ShareResult search_shares(const std::vector<ShareDevice>& devices, const CutByShares& cut, const PredictPart& predict,
                          const ShareOptions& options) {
  NACRE_CHECK(!devices.empty(), "there must be at least one device");
  return Search(devices, cut, predict, options).run();
}

}  // namespace nacre
