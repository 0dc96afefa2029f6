#include "nacre/train/batch_scheduling.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/schedule/epg/prices.h"

namespace nacre {
namespace {

// Returns the times of the operations of batches that the host itself computes, measured in a
// second session, which does not use the GPU.
OperationTimes time_host(const BatchSession& session, double seconds) {
  RunConfig config = settings_beside(session.config());
  config.device = kHostName;
  config.precision = "f32";
  config.plan = "off";
  config.features_on = "auto";
  config.features = {.type = config.features.type};
  config.loader.in_flight = -1;  // the session has chosen this number for the GPU
  config.memory_limit = 0;       // the limit of the run is one of the GPU's memory
  BatchSession host(session.dataset(), config, {.evaluation = false});
  host.start();
  return time_operations(host, {.seconds = seconds});
}

}  // namespace

RunConfig settings_beside(RunConfig config) {
  config.batch_schedule = config.sample_on = "auto";
  config.normalize_features = "none";
  config.staleness = 0;
  return config;
}

LearnedCosts learn_costs(BatchSession& session, double seconds) {
  const double start = now_seconds();
  session.start();
  const bool on_host = session.device().on_host();
  OperationTimes times = time_operations(session, {.seconds = on_host ? seconds : seconds / 2});
  LearnedCosts learned;
  learned.error = held_out_batch_error(times.all, session.device().name());
  for (const TimedOperation& t : times.all) learned.batches = std::max<int64_t>(learned.batches, t.batch + 1);
  if (!on_host) {
    // The host prepares batches for the device, too, so time_operations() has already timed the
    // operations that prepare a batch.
    const std::set<std::string> prepares = {"sample", "reindex", "gather", "prepare", "bind"};
    for (TimedOperation& t : time_host(session, seconds / 2).all) {
      if (!prepares.contains(t.key.operation)) times.all.push_back(std::move(t));
    }
  }
  learned.costs = OperationCosts::fitted(times.all);
  if (!on_host) learned.costs.set_first_transfer(session.device().name(), times.first_transfer);
  learned.seconds = now_seconds() - start;
  save_operation_costs(operation_costs_key(session), learned.costs);
  return learned;
}

OperationCosts known_costs(BatchSession& session) {
  std::optional<OperationCosts> costs = load_operation_costs(operation_costs_key(session));
  if (costs) return std::move(*costs);
  log_info(fmt::format("measuring the operations of batches for about {:.0f} s (nacre profile --data measures longer)",
                       kShortMeasuring));
  return learn_costs(session, kShortMeasuring).costs;
}

std::vector<BatchShape> run_shapes(const BatchSession& session, int64_t count) {
  std::vector<BatchShape> shapes;
  const std::vector<Sample> trials = session.trial_batches(static_cast<int>(count));
  shapes.reserve(trials.size());
  for (const Sample& sample : trials) shapes.push_back(batch_shape(session, sample));
  return shapes;
}

ExecutionPlanGraph run_graph(const BatchSession& session, const OperationCosts& costs, int staleness) {
  ExecutionPlanGraph graph;
  graph.devices = {kHostName};
  if (!session.device().on_host()) graph.devices.push_back(session.device().name());
  graph.host_workers = num_threads();
  graph.staleness = staleness;
  const FittedPrices prices(costs, graph.devices, true);
  const int64_t count = std::min<int64_t>(kScheduledBatches, std::max<int64_t>(1, session.batches_per_epoch()));
  for (BatchShape& shape : run_shapes(session, count)) {
    for (BatchShape::Layer& layer : shape.layers) layer.may_combine_first = false;
    graph.batches.push_back(batch_graphs(shape, prices, static_cast<int>(graph.devices.size())));
  }
  return graph;
}

BatchPlaces places_of(const ExecutionPlanGraph& graph, const NamedSchedule& schedule, const LowerBound& bound) {
  const int last = static_cast<int>(graph.devices.size()) - 1;
  BatchPlaces places;
  for (const ScheduledBatch& b : scheduled_batches(schedule.grouping, schedule.placings)) {
    const std::vector<EpgOperation>& operations = graph.batches[b.batch][b.placing->way].operations;
    char drawn = BatchPlaces::kDevice, computed = BatchPlaces::kDevice;
    for (size_t i = 0; i < operations.size(); ++i) {
      const char place = b.placing->devices[i] == last ? BatchPlaces::kDevice : BatchPlaces::kHost;
      if (operations[i].kind == EpgKind::sample) drawn = place;
      if (operations[i].kind == EpgKind::combine) computed = place;
    }
    places.drawn += drawn;
    places.computed += computed;
  }
  const double batches = std::max(1, graph.num_batches());
  places.together = schedule.grouping.options.sampled_together > 1;
  places.seconds = schedule.timeline.makespan / batches;
  places.least = bound.seconds / batches;
  return places;
}

RunSchedules find_schedules(BatchSession& session, int staleness) {
  RunSchedules schedules;
  schedules.graph = run_graph(session, known_costs(session), staleness);
  schedules.comparison = compare_schedules(schedules.graph, {.whole_batches = true});
  return schedules;
}

BatchPlaces find_places(BatchSession& session, const std::string& name, int staleness) {
  const RunSchedules schedules = find_schedules(session, staleness);
  const NamedSchedule* found = schedules.comparison.find(name);
  if (found == nullptr)
    throw UserError("--schedule " + name, "needs a GPU that draws neighbours, and this run has none", "use daha");
  return places_of(schedules.graph, *found, schedules.comparison.bound);
}

std::string places_text(const BatchPlaces& places, const std::string& device) {
  const auto on_host = [](const std::string& letters) {
    return std::count(letters.begin(), letters.end(), BatchPlaces::kHost);
  };
  const auto all = static_cast<int64_t>(places.computed.size());
  std::string text =
      places.host_draws() || places.host_computes()
          ? fmt::format("of {}, {} draws {} and computes {}, and the host beside it draws {} and computes {}",
                        counted(all, "batch", "batches"), device, all - on_host(places.drawn),
                        all - on_host(places.computed), on_host(places.drawn), on_host(places.computed))
          : device + " draws and computes all batches";
  if (places.together) text += "; many batches are drawn before they are computed";
  if (places.seconds <= 0) return text;
  text += fmt::format("; predicted: {} a batch", human_seconds(places.seconds));
  if (places.least > 0)
    text += fmt::format(", {:.1f} % above a time that no such schedule can beat",
                        100 * std::max(0.0, places.seconds / places.least - 1));
  return text;
}

}  // namespace nacre
