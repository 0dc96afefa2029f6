#include "nacre/schedule/epg/named.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/schedule/epg/uniform_machines.h"

namespace nacre {
namespace {

using AllPlacings = std::vector<std::vector<Placing>>;

constexpr const char* kPlanned = "daha";

bool prepares(const EpgOperation& op) { return op.kind == EpgKind::sample || op.kind == EpgKind::gather; }

// Returns whether a run can carry out the placing (SchedulingOptions::whole_batches).
bool is_whole(const ExecutionPlanGraph& graph, int batch, const Placing& placing) {
  const int last = static_cast<int>(graph.devices.size()) - 1;
  int computes = -1;
  const std::vector<EpgOperation>& operations = graph.batches[batch][placing.way].operations;
  for (size_t i = 0; i < operations.size(); ++i) {
    const int device = placing.devices[i];
    if (operations[i].kind == EpgKind::sample) continue;
    if (operations[i].kind == EpgKind::gather && device != kHost) return false;
    if (operations[i].kind == EpgKind::update && device != last) return false;
    if (prepares(operations[i]) || operations[i].kind == EpgKind::update) continue;
    if (computes >= 0 && device != computes) return false;
    computes = device;
  }
  return true;
}

AllPlacings every_placing(const ExecutionPlanGraph& graph, const SchedulingOptions& options) {
  AllPlacings all;
  for (int b = 0; b < graph.num_batches(); ++b) {
    all.push_back(all_placings(graph, b));
    if (options.whole_batches) std::erase_if(all.back(), [&](const Placing& p) { return !is_whole(graph, b, p); });
    NACRE_CHECK(!all.back().empty(), "a batch of an EPG cannot be placed");
  }
  return all;
}

// Returns, for each batch, the placings that apply the gradients on `device`. Returns an empty list
// if a batch has no such placing.
AllPlacings updated_on(const ExecutionPlanGraph& graph, const AllPlacings& all, int device) {
  AllPlacings some;
  for (int b = 0; b < graph.num_batches(); ++b) {
    some.push_back(placings_where(
        all[b], graph, b, [&](const EpgOperation& op, int d) { return op.kind != EpgKind::update || d == device; }));
    if (some.back().empty()) return {};
  }
  return some;
}

// Returns, for each batch, the one of the placings whose operations all satisfy `question` that is
// best for it alone. Returns an empty list if a batch has no such placing.
template <class Question>
AllPlacings best_where(const ExecutionPlanGraph& graph, const AllPlacings& all, const Question& question) {
  AllPlacings best;
  for (int b = 0; b < graph.num_batches(); ++b) {
    const std::vector<Placing> some =
        placings_where(all[b], graph, b, [&](const EpgOperation& op, int d) { return question(b, op, d); });
    if (some.empty()) return {};
    best.push_back({best_alone(some)});
  }
  return best;
}

NamedSchedule in_order(const ExecutionPlanGraph& graph, AllPlacings placings, const TimelineOptions& options) {
  NamedSchedule schedule;
  schedule.placings = std::move(placings);
  Grouping& grouping = schedule.grouping;
  for (int b = 0; b < static_cast<int>(schedule.placings.size()); ++b) grouping.groups.push_back({b});
  grouping.placings.assign(schedule.placings.size(), 0);
  grouping.options = options;
  schedule.timeline = run_schedule(graph, scheduled_batches(grouping, schedule.placings), grouping.options);
  grouping.seconds = schedule.timeline.makespan;
  return schedule;
}

// Returns, for each batch, the device that samples it. The samplers of the host and of a device
// share the batches by the predicted times (DA4). Returns an empty list unless both can sample.
std::vector<int> sampling_devices(const ExecutionPlanGraph& graph, double epsilon) {
  std::vector<double> on_host, ratios;
  for (const std::vector<BatchGraph>& ways : graph.batches) {
    for (const EpgOperation& op : ways.front().operations) {
      if (op.kind != EpgKind::sample) continue;
      if (op.seconds.size() < 2 || op.seconds[0] < 0 || op.seconds[1] <= 0) return {};
      on_host.push_back(op.seconds[0]);
      ratios.push_back(op.seconds[0] / op.seconds[1]);
    }
  }
  if (ratios.empty()) return {};
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<int64_t>(ratios.size() / 2), ratios.end());
  const double device_speed = ratios[ratios.size() / 2];
  if (!(device_speed > 0)) return {};
  // share_jobs() takes at most three machines. If the host has more than two samplers, all of them
  // count as one fast machine.
  constexpr int kMostSamplers = 2;
  std::vector<double> speeds = {device_speed};
  if (graph.host_workers <= kMostSamplers) {
    speeds.insert(speeds.end(), static_cast<size_t>(graph.host_workers), 1.0);
  } else {
    speeds.push_back(graph.host_workers);
  }
  const MachineJobs jobs = share_jobs(on_host, speeds, epsilon);
  std::vector<int> devices;
  for (const int machine : jobs.machine) devices.push_back(machine == 0 ? 1 : kHost);
  return devices;
}

AllPlacings sampled_on(const ExecutionPlanGraph& graph, const AllPlacings& all, const std::vector<int>& devices) {
  AllPlacings some;
  for (int b = 0; b < graph.num_batches(); ++b) {
    some.push_back(placings_where(all[b], graph, b, [&](const EpgOperation& op, int d) {
      return op.kind != EpgKind::sample || d == devices[b];
    }));
    if (some.back().empty()) return {};
  }
  return some;
}

void trim(AllPlacings& placings) {
  for (std::vector<Placing>& list : placings) list = worth_trying(list);
}

NamedSchedule grouped(const ExecutionPlanGraph& graph, AllPlacings placings, const GroupingOptions& options) {
  trim(placings);
  NamedSchedule schedule;
  schedule.placings = std::move(placings);
  schedule.grouping = group_batches(graph, schedule.placings, options);
  schedule.timeline =
      run_schedule(graph, scheduled_batches(schedule.grouping, schedule.placings), schedule.grouping.options);
  return schedule;
}

// Changes the schedule so that all samplers sample all batches first (group-based in-turn
// pipelining), if that is faster.
void sample_first(const ExecutionPlanGraph& graph, NamedSchedule& schedule) {
  TimelineOptions options;
  options.sampled_together = graph.num_batches();
  Timeline timeline = run_schedule(graph, scheduled_batches(schedule.grouping, schedule.placings), options);
  if (timeline.makespan >= schedule.timeline.makespan) return;
  schedule.grouping.options = options;
  schedule.grouping.seconds = timeline.makespan;
  schedule.timeline = std::move(timeline);
}

NamedSchedule planned(const ExecutionPlanGraph& graph, const AllPlacings& all, const SchedulingOptions& options) {
  NamedSchedule best = grouped(graph, all, options.grouping);
  sample_first(graph, best);
  if (const std::vector<int> devices = sampling_devices(graph, options.epsilon); !devices.empty()) {
    if (AllPlacings some = sampled_on(graph, all, devices); !some.empty()) {
      NamedSchedule shared = grouped(graph, std::move(some), options.grouping);
      sample_first(graph, shared);
      if (shared.timeline.makespan < best.timeline.makespan) best = std::move(shared);
    }
  }
  return best;
}

// Returns the schedule in which the host does all work of some batches, from sampling to the
// gradients, and the device does all work of the others. All updates run where the weights lie.
NamedSchedule independent(const ExecutionPlanGraph& graph, const AllPlacings& all) {
  const AllPlacings host = best_where(
      graph, all, [](int, const EpgOperation& op, int d) { return d == kHost || op.kind == EpgKind::update; });
  const AllPlacings device = best_where(graph, all, [](int, const EpgOperation& op, int d) {
    return d != kHost || op.kind == EpgKind::update || (op.kind == EpgKind::gather && !op.may_run_on(1));
  });
  if (host.empty() || device.empty()) return {};
  double on_host = 0, on_device = 0;
  std::vector<double> seconds;
  for (size_t b = 0; b < host.size(); ++b) {
    seconds.push_back(host[b][0].path);
    on_host += host[b][0].path;
    on_device += device[b][0].path;
  }
  const std::vector<double> speeds = {1, on_host / std::max(on_device, 1e-12)};
  const MachineJobs jobs = share_jobs_greedily(seconds, speeds);
  AllPlacings placings;
  for (size_t b = 0; b < host.size(); ++b) placings.push_back(jobs.machine[b] == 0 ? host[b] : device[b]);
  return in_order(graph, std::move(placings), {});
}

NamedSchedule by_name(const ExecutionPlanGraph& graph, const AllPlacings& all, const std::string& name,
                      const SchedulingOptions& options) {
  if (name == kPlanned) return planned(graph, all, options);
  if (name == "in-turn") {
    AllPlacings best;
    for (const std::vector<Placing>& list : all) best.push_back({best_alone(list)});
    return in_order(graph, std::move(best), {.sampled_together = graph.num_batches()});
  }
  if (name == "cpu-only")
    return in_order(graph, best_where(graph, all, [](int, const EpgOperation&, int d) { return d == kHost; }), {});
  if (name == "cpu-sample" || name == "salient") {
    AllPlacings placings = best_where(
        graph, all, [](int, const EpgOperation& op, int d) { return prepares(op) ? d == kHost : d != kHost; });
    return in_order(graph, std::move(placings), {.one_by_one = name == "cpu-sample"});
  }
  if (name == "all-gpu") {
    AllPlacings placings = best_where(graph, all, [](int, const EpgOperation& op, int d) {
      return d != kHost || (op.kind == EpgKind::gather && !op.may_run_on(1));
    });
    return in_order(graph, std::move(placings), {.one_by_one = true});
  }
  NACRE_CHECK(name == "bytegnn", "there is no schedule named '" + name + "'");
  return independent(graph, all);
}

// Returns the schedule of that name, with the weights on the device on which the schedule is
// fastest.
NamedSchedule fastest(const ExecutionPlanGraph& graph, const AllPlacings& all, const std::string& name,
                      const SchedulingOptions& options) {
  NamedSchedule best;
  for (int device = 0; device < static_cast<int>(graph.devices.size()); ++device) {
    const AllPlacings some = updated_on(graph, all, device);
    if (some.empty()) continue;
    NamedSchedule schedule = by_name(graph, some, name, options);
    if (schedule.grouping.groups.empty()) continue;
    if (best.grouping.groups.empty() || schedule.timeline.makespan < best.timeline.makespan) best = std::move(schedule);
  }
  best.name = name;
  return best;
}

// Returns a bound of all schedules. The weights of a schedule lie on one device, so it is the least
// of the bounds for each device.
LowerBound bound_of_all(const ExecutionPlanGraph& graph, const AllPlacings& all) {
  LowerBound least;
  bool found = false;
  for (int device = 0; device < static_cast<int>(graph.devices.size()); ++device) {
    const AllPlacings some = updated_on(graph, all, device);
    if (some.empty()) continue;
    const LowerBound bound = lower_bound(graph, some);
    if (!found || bound.seconds < least.seconds) least = bound;
    found = true;
  }
  // `whole` is a bound of all schedules, too, so the larger of both counts. It may be larger
  // because the search for the weights of the units may end closer to the best weights.
  const LowerBound whole = lower_bound(graph, all);
  return whole.seconds > least.seconds ? whole : least;
}

}  // namespace

std::vector<ScheduleName> schedule_names() {
  return {{kPlanned, "the planner places every operation on the host or the device; batches run side by side"},
          {"salient", "the host samples and looks up, the device trains; batches run side by side"},
          {"bytegnn", "the host does all work of some batches but the update, and the device that of the others"},
          {"cpu-sample", "the host samples and looks up, the device trains; batches run one after another"},
          {"all-gpu", "the device samples and trains; batches run one after another"},
          {"in-turn", "all batches are sampled first, then computed, each with its own best plan"},
          {"cpu-only", "the host does everything; batches run side by side"}};
}

NamedSchedule make_schedule(const ExecutionPlanGraph& graph, const std::string& name,
                            const SchedulingOptions& options) {
  graph.validate();
  return fastest(graph, every_placing(graph, options), name, options);
}

// Makes `daha` the fastest of all schedules, so that it is never slower than the others.
ScheduleComparison compare_schedules(const ExecutionPlanGraph& graph, const SchedulingOptions& options) {
  graph.validate();
  const AllPlacings all = every_placing(graph, options);
  ScheduleComparison comparison;
  for (const ScheduleName& known : schedule_names()) {
    NamedSchedule schedule = fastest(graph, all, known.name, options);
    if (!schedule.grouping.groups.empty()) comparison.schedules.push_back(std::move(schedule));
  }
  std::vector<NamedSchedule>& list = comparison.schedules;
  if (!list.empty()) {
    const auto best = std::min_element(list.begin(), list.end(), [](const NamedSchedule& a, const NamedSchedule& b) {
      return a.timeline.makespan < b.timeline.makespan;
    });
    if (best != list.begin()) {
      list.front() = *best;
      list.front().name = kPlanned;
    }
  }
  comparison.bound = bound_of_all(graph, all);
  return comparison;
}

const NamedSchedule* ScheduleComparison::find(const std::string& name) const {
  const auto found =
      std::find_if(schedules.begin(), schedules.end(), [&](const NamedSchedule& s) { return s.name == name; });
  return found == schedules.end() ? nullptr : &*found;
}

double gap_of(const NamedSchedule& schedule, const LowerBound& bound) {
  return bound.seconds > 0 ? schedule.timeline.makespan / bound.seconds - 1 : 0;
}

}  // namespace nacre
