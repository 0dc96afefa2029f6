#include "nacre/schedule/epg/bound.h"

#include <algorithm>
#include <limits>

namespace nacre {
namespace {

constexpr int kRounds = 200;

// Whatever the weights of the units are (they add up to 1), the makespan is at least the weighted
// mean of the loads, and each batch adds at least its least weighted load to that. This function
// looks for the weights with the largest sum: it moves weight to units that have more work than the
// mean (multiplicative updates). Every round gives a true bound.
double load_bound(const std::vector<std::vector<Placing>>& placings, size_t units) {
  std::vector<double> weights(units, 1.0 / static_cast<double>(units));
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    double sum = 0;
    std::vector<double> load(units, 0);
    for (const std::vector<Placing>& batch : placings) {
      const Placing* least = nullptr;
      double seconds = std::numeric_limits<double>::max();
      for (const Placing& p : batch) {
        double weighted = 0;
        for (size_t u = 0; u < units; ++u) weighted += weights[u] * p.load[u];
        if (weighted >= seconds) continue;
        seconds = weighted;
        least = &p;
      }
      sum += seconds;
      for (size_t u = 0; u < units; ++u) load[u] += least->load[u];
    }
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

template <class Value>
double least(const std::vector<Placing>& placings, const Value& value) {
  double seconds = std::numeric_limits<double>::max();
  for (const Placing& p : placings) seconds = std::min(seconds, value(p));
  return seconds;
}

// Every batch waits for the update of the batch 1 + staleness places before it, so the first batch,
// the one 1 + staleness places later and so on form a chain. The schedule decides which batches
// these are, so the bound takes those with the shortest paths.
double update_bound(const std::vector<std::vector<Placing>>& placings, int staleness) {
  std::vector<double> chains;
  double head = std::numeric_limits<double>::max();
  for (const std::vector<Placing>& batch : placings) {
    chains.push_back(least(batch, [](const Placing& p) { return p.weight_path; }));
    head = std::min(head, least(batch, [](const Placing& p) { return p.head; }));
  }
  if (chains.empty()) return 0;
  std::sort(chains.begin(), chains.end());
  const size_t stale = static_cast<size_t>(staleness) + 1;
  const size_t links = (chains.size() + stale - 1) / stale;
  double seconds = head;
  for (size_t i = 0; i < links; ++i) seconds += chains[i];
  return seconds;
}

}  // namespace

LowerBound lower_bound(const ExecutionPlanGraph& graph, const std::vector<std::vector<Placing>>& placings) {
  LowerBound bound;
  if (placings.empty()) return bound;
  bound.load = load_bound(placings, static_cast<size_t>(units_of(graph).count()));
  for (const std::vector<Placing>& batch : placings)
    bound.path = std::max(bound.path, least(batch, [](const Placing& p) { return p.path; }));
  bound.updates = update_bound(placings, graph.staleness);
  bound.seconds = std::max({bound.load, bound.path, bound.updates});
  return bound;
}

}  // namespace nacre
