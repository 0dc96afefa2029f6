#include "nacre/schedule/epg/bound.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace nacre {
namespace {

constexpr int kRounds = 200;
constexpr double kNever = std::numeric_limits<double>::max();

// BatchLeast returns the least that a batch takes, over all placings that a schedule may choose.
class BatchLeast {
 public:
  virtual ~BatchLeast() = default;
  // Returns the least weighted mean of the loads of the units over the placings, and adds the loads
  // of the placing with this mean to `load`.
  virtual double work(const std::vector<double>& weights, std::vector<double>& load) const = 0;
  virtual double path() const = 0;
  virtual double weight_path() const = 0;
  virtual double head() const = 0;
};

class ListedPlacings final : public BatchLeast {
 public:
  explicit ListedPlacings(const std::vector<Placing>& placings) : placings_(placings) {}

  double work(const std::vector<double>& weights, std::vector<double>& load) const override {
    const Placing* least = nullptr;
    double seconds = kNever;
    for (const Placing& p : placings_) {
      double weighted = 0;
      for (size_t u = 0; u < weights.size(); ++u) weighted += weights[u] * p.load[u];
      if (weighted >= seconds) continue;
      seconds = weighted;
      least = &p;
    }
    for (size_t u = 0; u < weights.size(); ++u) load[u] += least->load[u];
    return seconds;
  }
  double path() const override {
    return least([](const Placing& p) { return p.path; });
  }
  double weight_path() const override {
    return least([](const Placing& p) { return p.weight_path; });
  }
  double head() const override {
    return least([](const Placing& p) { return p.head; });
  }

 private:
  template <class Value>
  double least(const Value& value) const {
    double seconds = kNever;
    for (const Placing& p : placings_) seconds = std::min(seconds, value(p));
    return seconds;
  }

  const std::vector<Placing>& placings_;
};

// FreeOperations is for batches whose placings are not all listed. Every operation runs on the
// device that is best for it, and values travel in no time. No placing is better than that.
class FreeOperations final : public BatchLeast {
 public:
  FreeOperations(const std::vector<BatchGraph>& ways, const Units& units) : ways_(ways), units_(units) {
    for (const BatchGraph& way : ways) measure(way);
  }

  double work(const std::vector<double>& weights, std::vector<double>& load) const override {
    std::vector<double> best;
    double seconds = kNever;
    for (const BatchGraph& way : ways_) {
      std::vector<double> own(weights.size(), 0);
      const double weighted = work_of(way, weights, own);
      if (weighted >= seconds) continue;
      seconds = weighted;
      best = std::move(own);
    }
    for (size_t u = 0; u < weights.size(); ++u) load[u] += best[u];
    return seconds;
  }
  double path() const override { return path_; }
  double weight_path() const override { return weight_path_; }
  double head() const override { return 0; }  // weights may begin to travel at once

 private:
  double load_on(const EpgOperation& op, int device) const {
    const int all = units_.workers(device);
    const int workers = device == kHost && op.host_workers > 0 ? op.host_workers : all;
    return op.seconds[device] * workers / all;
  }

  double work_of(const BatchGraph& way, const std::vector<double>& weights, std::vector<double>& load) const {
    double sum = 0;
    for (const EpgOperation& op : way.operations) {
      int best = -1;
      for (int d = 0; d < units_.devices; ++d) {
        if (op.may_run_on(d) && (best < 0 || weights[d] * load_on(op, d) < weights[best] * load_on(op, best))) best = d;
      }
      sum += weights[best] * load_on(op, best);
      load[best] += load_on(op, best);
    }
    return sum;
  }

  void measure(const BatchGraph& way) {
    std::vector<double> end, since_weights;
    double longest = 0;
    for (const EpgOperation& op : way.operations) {
      double seconds = kNever, start = 0, since = op.weight_bytes > 0 ? 0 : -1;
      for (int d = 0; d < units_.devices; ++d) {
        if (op.may_run_on(d)) seconds = std::min(seconds, op.seconds[d]);
      }
      for (const EpgInput& input : op.inputs) {
        start = std::max(start, end[input.operation]);
        since = std::max(since, since_weights[input.operation]);
      }
      end.push_back(start + seconds);
      since_weights.push_back(since < 0 ? -1 : since + seconds);
      longest = std::max(longest, end.back());
    }
    path_ = std::min(path_, longest);
    weight_path_ = std::min(weight_path_, std::max(0.0, since_weights[way.update]));
  }

  const std::vector<BatchGraph>& ways_;
  Units units_;
  double path_ = kNever, weight_path_ = kNever;
};

using Batches = std::vector<std::unique_ptr<BatchLeast>>;

// Returns a bound by the work of the units. Whatever the weights of the units are (they add up to
// 1), the makespan is at least the weighted mean of the loads, and each batch adds at least its
// least weighted load to that mean. This function looks for the weights with the largest sum: it
// moves weight to units that have more work than the mean (multiplicative updates). Every round
// gives a true bound.
double load_bound(const Batches& batches, size_t units) {
  std::vector<double> weights(units, 1.0 / static_cast<double>(units));
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    double sum = 0;
    std::vector<double> load(units, 0);
    for (const auto& batch : batches) sum += batch->work(weights, load);
    best = std::max(best, sum);
    const double most = *std::max_element(load.begin(), load.end());
    if (most <= 0) break;
    const double step = 1.0 / (1 + 0.1 * round);
    double all = 0;
    for (size_t u = 0; u < units; ++u) all += weights[u] *= 1 + step * load[u] / most;
    for (double& w : weights) w /= all;
  }
  return best;
}

// Returns a bound by batches that wait for updates. Every batch waits for the update of the batch 1
// + staleness places before it, so the first batch, the one 1 + staleness places later and so on
// form a chain. The schedule decides which batches are in the chain, so the bound takes those with
// the shortest paths.
double update_bound(const Batches& batches, int staleness) {
  std::vector<double> chains;
  double head = kNever;
  for (const auto& batch : batches) {
    chains.push_back(batch->weight_path());
    head = std::min(head, batch->head());
  }
  std::sort(chains.begin(), chains.end());
  const size_t stale = static_cast<size_t>(staleness) + 1;
  const size_t links = (chains.size() + stale - 1) / stale;
  double seconds = head;
  for (size_t i = 0; i < links; ++i) seconds += chains[i];
  return seconds;
}

}  // namespace

LowerBound lower_bound(const ExecutionPlanGraph& graph, const std::vector<std::vector<Placing>>& placings,
                       size_t most) {
  LowerBound bound;
  if (placings.empty()) return bound;
  Batches batches;
  for (size_t b = 0; b < placings.size(); ++b) {
    if (lists_all_placings(graph, static_cast<int>(b), most)) {
      batches.push_back(std::make_unique<ListedPlacings>(placings[b]));
    } else {
      batches.push_back(std::make_unique<FreeOperations>(graph.batches[b], units_of(graph)));
    }
  }
  bound.load = load_bound(batches, static_cast<size_t>(units_of(graph).count()));
  for (const auto& batch : batches) bound.path = std::max(bound.path, batch->path());
  bound.updates = update_bound(batches, graph.staleness);
  bound.seconds = std::max({bound.load, bound.path, bound.updates});
  return bound;
}

}  // namespace nacre
