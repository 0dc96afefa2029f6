#include "nacre/schedule/epg/grouping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

using AllPlacings = std::vector<std::vector<Placing>>;

class Grouper {
 public:
  Grouper(const ExecutionPlanGraph& graph, const AllPlacings& placings, const GroupingOptions& options)
      : graph_(graph), placings_(placings), options_(options), chosen_(placings.size()), alone_(placings.size()) {
    for (size_t b = 0; b < placings.size(); ++b) {
      alone_[b] = static_cast<size_t>(&best_alone(placings[b]) - placings[b].data());
      chosen_[b] = alone_[b];
    }
  }

  Grouping search() {
    best_ = in_turn(graph_, placings_);
    std::vector<std::vector<int>> groups = first_groups();
    double gain = 0;
    for (int round = 0; round < options_.rounds && gain < options_.gain; ++round) {
      gain += options_.step;
      std::vector<std::vector<int>> kept;
      std::vector<int> again;
      for (std::vector<int>& group : groups) {
        const double together = place_group(group);
        double apart = 0;
        for (const int b : group) apart += seconds_alone(b, chosen_[b]);
        if (together > (1 - gain) * apart) {
          again.insert(again.end(), group.begin(), group.end());
        } else {
          kept.push_back(std::move(group));
        }
      }
      std::vector<std::vector<int>> all = kept;
      for (std::vector<int>& group : join(again)) {
        place_group(group);
        all.push_back(std::move(group));
      }
      keep_if_better(all);
      groups = std::move(all);
    }
    same_for_all();
    refine();
    return best_;
  }

 private:
  // Returns all batches in an order drawn from the seed, cut into groups of the largest size.
  std::vector<std::vector<int>> first_groups() const {
    std::vector<int> order(placings_.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[philox(options_.seed, i, 0)[0] % i]);
    std::vector<std::vector<int>> groups;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i % static_cast<size_t>(std::max(1, options_.largest)) == 0) groups.emplace_back();
      groups.back().push_back(order[i]);
    }
    return groups;
  }

  double makespan(const std::vector<int>& batches) const {
    std::vector<ScheduledBatch> order;
    order.reserve(batches.size());
    for (const int b : batches) order.push_back({b, &placings_[b][chosen_[b]], 0});
    return run_schedule(graph_, order).makespan;
  }

  double seconds_alone(int b, size_t placing) {
    const auto [at, fresh] = alone_seconds_.try_emplace({b, placing}, 0.0);
    if (fresh) {
      const ScheduledBatch order[] = {{b, &placings_[b][placing], 0}};
      at->second = run_schedule(graph_, order).makespan;
    }
    return at->second;
  }

  // Works on the lower level: chooses placings with which the batches of the group end early
  // together, and returns the seconds of the group. Tries all combinations if they are few. If they
  // are many, changes the placing of one batch after another as long as that helps.
  double place_group(const std::vector<int>& group) {
    double combinations = 1;
    for (const int b : group) combinations *= static_cast<double>(placings_[b].size());
    for (const int b : group) chosen_[b] = alone_[b];
    double least = makespan(group);
    if (combinations <= static_cast<double>(options_.trials)) return try_all(group, least);
    int64_t trials = options_.trials;
    for (bool better = true; better && trials > 0;) {
      better = false;
      for (const int b : group) {
        size_t& chosen = chosen_[b];
        const size_t count = placings_[b].size();
        for (size_t p = 0; p < count && trials > 0; ++p) {
          const size_t before = std::exchange(chosen, p);
          if (before == p) continue;
          --trials;
          const double seconds = makespan(group);
          if (seconds < least) {
            least = seconds;
            better = true;
          } else {
            chosen = before;
          }
        }
      }
    }
    return least;
  }

  double try_all(const std::vector<int>& group, double least) {
    std::vector<size_t> best, now(group.size(), 0);
    for (const int b : group) best.push_back(chosen_[b]);
    const auto set = [&](const std::vector<size_t>& choice) {
      for (size_t i = 0; i < group.size(); ++i) chosen_[group[i]] = choice[i];
    };
    for (bool more = true; more;) {
      set(now);
      if (const double seconds = makespan(group); seconds < least) {
        least = seconds;
        best = now;
      }
      more = false;
      for (size_t i = 0; i < group.size() && !more; ++i) {
        more = ++now[i] < placings_[group[i]].size();
        if (!more) now[i] = 0;
      }
    }
    set(best);
    return least;
  }

  // Works on the upper level: returns groups of the batches. It joins the batch that is most
  // one-sided (whose computing and travelling differ most) with the batch that balances it best,
  // until the groups are full or balanced.
  std::vector<std::vector<int>> join(const std::vector<int>& batches) const {
    // These are the groups that are not full, by the logarithm of the ratio of computing to
    // travelling.
    std::multimap<double, std::vector<int>> open;
    for (const int b : batches) open.emplace(balance_of(b), std::vector<int>{b});
    std::vector<std::vector<int>> done;
    const auto one_sided = [&] { return open.begin()->first >= 0 || std::prev(open.end())->first <= 0; };
    while (open.size() > 1 && !one_sided()) {
      auto most = std::abs(open.begin()->first) > std::prev(open.end())->first ? open.begin() : std::prev(open.end());
      double balance = most->first;
      std::vector<int> group = most->second;
      open.erase(most);
      auto match = open.lower_bound(-balance);
      if (match == open.end() ||
          (match != open.begin() && std::abs(std::prev(match)->first + balance) < std::abs(match->first + balance)))
        --match;
      group.insert(group.end(), match->second.begin(), match->second.end());
      balance += match->first;
      open.erase(match);
      std::sort(group.begin(), group.end());
      if (static_cast<int>(group.size()) >= options_.largest) {
        cut(std::move(group), done);
      } else {
        open.emplace(balance, std::move(group));
      }
      if (open.empty()) break;
    }
    // The batches that are left either all compute for longer than they send, or all send for
    // longer. They cannot balance each other, but in a group their work can still run in the idle
    // time that every batch leaves.
    std::vector<int> rest;
    for (auto& [balance, group] : open) rest.insert(rest.end(), group.begin(), group.end());
    std::sort(rest.begin(), rest.end());
    cut(std::move(rest), done);
    return done;
  }

  void cut(std::vector<int> group, std::vector<std::vector<int>>& done) const {
    for (size_t i = 0; i < group.size(); ++i) {
      if (i % static_cast<size_t>(std::max(1, options_.largest)) == 0) done.emplace_back();
      done.back().push_back(group[i]);
    }
  }

  double balance_of(int b) const {
    const Placing& p = placings_[b][alone_[b]];
    constexpr double kLeast = 1e-9;
    return std::log(std::max(kLeast, p.computing()) / std::max(kLeast, p.travelling()));
  }

  void keep_if_better(const std::vector<std::vector<int>>& groups) {
    Grouping trial{groups, chosen_, {}, 0};
    trial.seconds = run_schedule(graph_, scheduled_batches(trial, placings_), trial.options).makespan;
    if (trial.seconds < best_.seconds) best_ = std::move(trial);
  }

  // Tries schedules in which all batches have the same placing, because batches that are alike need
  // no groups.
  void same_for_all() {
    size_t most = 0;
    for (const std::vector<Placing>& list : placings_) most = std::max(most, list.size());
    const std::vector<std::vector<int>> groups = [&] {
      std::vector<int> order(placings_.size());
      std::iota(order.begin(), order.end(), 0);
      std::vector<std::vector<int>> cut_groups;
      cut(std::move(order), cut_groups);
      return cut_groups;
    }();
    for (size_t p = 0; p < most && p < 64; ++p) {
      for (size_t b = 0; b < placings_.size(); ++b) chosen_[b] = std::min(p, placings_[b].size() - 1);
      keep_if_better(groups);
    }
    chosen_ = alone_;
    keep_if_better(groups);
  }

  // Changes the placing of one batch of the best schedule at a time, as long as that makes the
  // schedule shorter and trials are left.
  void refine() {
    int64_t trials = options_.trials;
    for (bool better = true; better && trials > 0;) {
      better = false;
      for (size_t b = 0; b < placings_.size(); ++b) {
        for (size_t p = 0; p < placings_[b].size() && trials > 0; ++p) {
          if (p == best_.placings[b]) continue;
          --trials;
          Grouping trial = best_;
          trial.placings[b] = p;
          trial.seconds = run_schedule(graph_, scheduled_batches(trial, placings_), trial.options).makespan;
          if (trial.seconds >= best_.seconds) continue;
          best_ = std::move(trial);
          better = true;
        }
      }
    }
  }

  const ExecutionPlanGraph& graph_;
  const AllPlacings& placings_;
  const GroupingOptions& options_;
  std::vector<size_t> chosen_;  // the chosen placing of each batch
  std::vector<size_t> alone_;   // the best placing of each batch if it runs alone
  std::map<std::pair<int, size_t>, double> alone_seconds_;
  Grouping best_;
};

}  // namespace

std::vector<ScheduledBatch> scheduled_batches(const Grouping& grouping, const AllPlacings& placings) {
  std::vector<ScheduledBatch> order;
  for (size_t g = 0; g < grouping.groups.size(); ++g) {
    for (const int b : grouping.groups[g]) {
      const auto batch = static_cast<size_t>(b);
      order.push_back({b, &placings[batch][grouping.placings[batch]], static_cast<int>(g)});
    }
  }
  return order;
}

Grouping in_turn(const ExecutionPlanGraph& graph, const AllPlacings& placings) {
  Grouping grouping;
  grouping.options.one_by_one = true;
  for (size_t b = 0; b < placings.size(); ++b) {
    grouping.groups.push_back({static_cast<int>(b)});
    grouping.placings.push_back(static_cast<size_t>(&best_alone(placings[b]) - placings[b].data()));
  }
  grouping.seconds = run_schedule(graph, scheduled_batches(grouping, placings), grouping.options).makespan;
  return grouping;
}

Grouping group_batches(const ExecutionPlanGraph& graph, const AllPlacings& placings, const GroupingOptions& options) {
  if (placings.empty()) return {};
  return Grouper(graph, placings, options).search();
}

}  // namespace nacre
