#include "nacre/schedule/epg/uniform_machines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr size_t kMostMachines = 3;

// State is an assignment of the first jobs to machines. It holds the time at which each machine
// ends, and the last job's machine, from which the whole assignment can be read.
struct State {
  std::array<double, kMostMachines> ends{};
  int32_t before = -1;  // index of the state without the last job
  uint8_t machine = 0;  // machine of the last job
};

using Cell = std::array<int32_t, kMostMachines - 1>;

std::vector<int> longest_first(std::span<const double> seconds) {
  std::vector<int> order(seconds.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return seconds[a] > seconds[b]; });
  return order;
}

MachineJobs with_ends(std::vector<int> machine, std::span<const double> seconds, std::span<const double> speeds,
                      std::span<const double> free = {}) {
  MachineJobs jobs{std::move(machine), std::vector<double>(free.begin(), free.end()), 0};
  jobs.ends.resize(speeds.size(), 0.0);
  for (size_t j = 0; j < seconds.size(); ++j) {
    const auto m = static_cast<size_t>(jobs.machine[j]);
    jobs.ends[m] += seconds[j] / speeds[m];
  }
  for (const double end : jobs.ends) jobs.makespan = std::max(jobs.makespan, end);
  return jobs;
}

void check(std::span<const double> seconds, std::span<const double> speeds) {
  NACRE_CHECK(!speeds.empty(), "there is no machine");
  NACRE_CHECK(std::all_of(speeds.begin(), speeds.end(), [](double s) { return s > 0; }), "a machine has no speed");
  NACRE_CHECK(std::all_of(seconds.begin(), seconds.end(), [](double s) { return s >= 0; }), "a job has no time");
}

}  // namespace

double least_makespan(std::span<const double> seconds, std::span<const double> speeds) {
  check(seconds, speeds);
  std::vector<double> jobs(seconds.begin(), seconds.end()), fast(speeds.begin(), speeds.end());
  std::sort(jobs.rbegin(), jobs.rend());
  std::sort(fast.rbegin(), fast.rend());
  // The k longest jobs run on at most k machines, so no assignment ends before the k fastest
  // machines together could have done them.
  double bound = 0, work = 0, speed = 0;
  for (size_t k = 0; k < jobs.size(); ++k) {
    work += jobs[k];
    if (k < fast.size()) speed += fast[k];
    bound = std::max(bound, work / speed);
  }
  return bound;
}

MachineJobs share_jobs_greedily(std::span<const double> seconds, std::span<const double> speeds,
                                std::span<const double> free) {
  check(seconds, speeds);
  NACRE_CHECK(free.empty() || free.size() == speeds.size(), "a machine has no time at which it is free");
  std::vector<int> machine(seconds.size(), 0);
  std::vector<double> ends(free.begin(), free.end());
  ends.resize(speeds.size(), 0.0);
  for (const int j : longest_first(seconds)) {
    const double job = seconds[j];
    size_t best = 0;
    for (size_t m = 1; m < speeds.size(); ++m) {
      if (ends[m] + job / speeds[m] < ends[best] + job / speeds[best]) best = m;
    }
    ends[best] += job / speeds[best];
    machine[j] = static_cast<int>(best);
  }
  return with_ends(std::move(machine), seconds, speeds, free);
}

// Each machine's time is cut into cells of equal length. If two states agree in the cells in which
// all machines but the last one end, only the state whose last machine ends first is kept. So a job
// adds at most the length of a cell to the error, and all jobs together add at most epsilon times a
// lower bound.
MachineJobs share_jobs(std::span<const double> seconds, std::span<const double> speeds, double epsilon) {
  check(seconds, speeds);
  NACRE_CHECK(speeds.size() <= kMostMachines, "the exact scheme is for few machines");
  NACRE_CHECK(epsilon > 0, "the error of a schedule must be positive");
  MachineJobs greedy = share_jobs_greedily(seconds, speeds);
  const double least = least_makespan(seconds, speeds);
  // If the greedy assignment is close enough to the bound, as with many small jobs, it is returned.
  if (greedy.makespan <= (1 + epsilon) * least || speeds.size() == 1) return greedy;
  const double side = epsilon * least / static_cast<double>(seconds.size());
  const size_t last = speeds.size() - 1;
  const std::vector<int> order = longest_first(seconds);
  std::vector<std::vector<State>> steps = {{State{}}};
  for (const int j : order) {
    std::map<Cell, State> cells;
    for (size_t s = 0; s < steps.back().size(); ++s) {
      for (size_t m = 0; m < speeds.size(); ++m) {
        State next = steps.back()[s];
        next.ends[m] += seconds[j] / speeds[m];
        if (next.ends[m] > greedy.makespan) continue;  // the greedy assignment is already better
        next.before = static_cast<int32_t>(s);
        next.machine = static_cast<uint8_t>(m);
        Cell cell{};
        for (size_t i = 0; i < last; ++i) cell[i] = static_cast<int32_t>(std::floor(next.ends[i] / side));
        const auto [at, fresh] = cells.try_emplace(cell, next);
        if (!fresh && next.ends[last] < at->second.ends[last]) at->second = next;
      }
    }
    std::vector<State> states;
    states.reserve(cells.size());
    for (const auto& [cell, state] : cells) states.push_back(state);
    steps.push_back(std::move(states));
  }
  // A State has room for the largest number of machines. Machines that are not there end at 0,
  // which does not change the maximum.
  const auto end_of = [](const State& s) { return *std::max_element(s.ends.begin(), s.ends.end()); };
  if (steps.back().empty()) return greedy;
  const auto best = std::min_element(steps.back().begin(), steps.back().end(),
                                     [&](const State& a, const State& b) { return end_of(a) < end_of(b); });
  std::vector<int> machine(seconds.size(), 0);
  auto at = static_cast<int32_t>(best - steps.back().begin());
  for (size_t step = order.size(); step > 0; --step) {
    const State& state = steps[step][at];
    machine[order[step - 1]] = state.machine;
    at = state.before;
  }
  MachineJobs found = with_ends(std::move(machine), seconds, speeds);
  return found.makespan < greedy.makespan ? found : greedy;
}

void MovingMedian::observe(double value) {
  last_.push_back(value);
  if (last_.size() > window_) last_.pop_front();
}

double MovingMedian::forecast() const {
  if (last_.empty()) return 0;
  std::vector<double> sorted(last_.begin(), last_.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

}  // namespace nacre
