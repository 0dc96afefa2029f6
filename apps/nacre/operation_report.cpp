#include "operation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/gpu/sampler.h"
#include "nacre/schedule/epg/prices.h"
#include "nacre/train/batch_schedules.h"
#include "options.h"
#include "ranks.h"

namespace nacre::cli {
namespace {

using nlohmann::ordered_json;

std::string percent(double error) { return std::isfinite(error) ? fmt::format("{:.1f} %", 100 * error) : "unknown"; }

}  // namespace

std::string costs_text(const OperationCosts& costs) {
  std::string text = fmt::format("  {:<20} {:<15} {:>5}  {:<10} {:>8} {:>12} {:>7} {:>11}\n", "device", "operation",
                                 "layer", "order", "samples", "typical", "degree", "held-out");
  for (const std::string& operation : batch_operations()) {
    for (const auto& [key, cost] : costs.all()) {
      if (key.operation != operation) continue;
      text += fmt::format("  {:<20} {:<15} {:>5}  {:<10} {:>8} {:>12} {:>7} {:>11}\n", key.device.substr(0, 20),
                          key.operation, key.layer, key.order, cost.samples(), human_seconds(cost.typical_seconds()),
                          cost.degree(), percent(cost.held_out_error()));
    }
  }
  return text;
}

std::string costs_json(const LearnedCosts& learned, const std::string& key) {
  ordered_json list = ordered_json::array();
  for (const auto& [op, cost] : learned.costs.all()) {
    ordered_json entry = {{"device", op.device},    {"operation", op.operation}, {"layer", op.layer},
                          {"order", op.order},      {"samples", cost.samples()}, {"typical_s", cost.typical_seconds()},
                          {"degree", cost.degree()}};
    entry["held_out_error"] =
        std::isfinite(cost.held_out_error()) ? ordered_json(cost.held_out_error()) : ordered_json();
    list.push_back(std::move(entry));
  }
  const ordered_json j = {{"key", key},
                          {"batches", learned.batches},
                          {"seconds", learned.seconds},
                          {"batch_error", std::isfinite(learned.error) ? ordered_json(learned.error) : ordered_json()},
                          {"operations", list}};
  return j.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string forecast_text(const BatchSession& session) {
  const std::optional<OperationCosts> costs = load_operation_costs(operation_costs_key(session));
  if (!costs) return "";
  const auto batches = static_cast<double>(session.batches_per_epoch());
  const std::vector<BatchShape> shapes = run_shapes(session, 5);
  const bool on_host = session.device().on_host();
  const int ahead = session.config().loader.in_flight;
  double epoch = 0;
  BatchSeconds mean;
  for (const BatchShape& shape : shapes) {
    const BatchSeconds batch = batch_seconds(*costs, session.device().name(), shape, batches);
    const double part = 1.0 / static_cast<double>(shapes.size());
    epoch += part * epoch_seconds(batch, batches, num_threads(), on_host, ahead != 0);
    for (double BatchSeconds::*seconds :
         {&BatchSeconds::sample, &BatchSeconds::gather, &BatchSeconds::prepare, &BatchSeconds::bind,
          &BatchSeconds::transfer, &BatchSeconds::compute, &BatchSeconds::update})
      mean.*seconds += part * batch.*seconds;
  }
  std::string text = fmt::format(
      "about {} predicted by the costs of this graph's operations; a batch: sample {}, gather {}, "
      "prepare {}, bind {}, compute {}, update {}",
      human_seconds(epoch), human_seconds(mean.sample), human_seconds(mean.gather), human_seconds(mean.prepare),
      human_seconds(mean.bind), human_seconds(mean.compute), human_seconds(mean.update));
  if (!on_host) text += ", transfer " + human_seconds(mean.transfer);
  return text;
}

namespace {

// Throws UserError that says why no schedule called `name` can be made for `devices`, of which the
// host is the first. `exists` tells whether the second device is a GPU of this machine.
[[noreturn]] void refuse_schedule(const std::string& name, const BatchSession& session,
                                  const std::vector<std::string>& devices, bool exists) {
  const std::string option = "--schedule " + name;
  if (devices.size() < 2)
    throw UserError(option, "needs a GPU beside the host", "add --device cuda or cuda:typical, or use daha");
  const std::string why = GpuSampler::why_not(session.config().sampling);
  if (!why.empty())
    throw UserError(option, "needs a GPU that draws neighbours, but sampling on the device does not support " + why,
                    "use salient or daha");
  throw UserError(option, "needs a GPU that draws neighbours, but with these settings the host draws them",
                  exists ? "add --sample-on device, or use salient or daha" : "use salient or daha");
}

}  // namespace

ShownSchedule schedule_batches(BatchSession& session, const std::string& name, int staleness,
                               const std::string& device) {
  if (session.sampler().layers() == 0 || session.disk() != nullptr || session.dataset().features.raw() == nullptr)
    throw UserError("--schedule", "needs features that are one table in memory and are not learned",
                    "leave --schedule out");
  ShownSchedule result;
  result.source = "times are predicted by the costs of operations that were measured on this graph";
  OperationCosts all = known_costs(session);
  std::vector<std::string> devices = {kHostName};
  if (!device.empty()) {
    all.add(OperationCosts::fitted(count_operations(session, random_batches(session, 8, {}), device)));
    devices.push_back(device);
    result.source += "; those of " + device + " are predicted by counted work and nominal rates";
  } else if (!session.device().on_host()) {
    devices.push_back(session.device().name());
  }
  const FittedPrices prices(all, devices);
  result.graph.devices = devices;
  result.graph.host_workers = num_threads();
  result.graph.staleness = staleness;
  const int64_t count = std::min<int64_t>(kScheduledBatches, std::max<int64_t>(1, session.batches_per_epoch()));
  for (const BatchShape& shape : run_shapes(session, count))
    result.graph.batches.push_back(batch_graphs(shape, prices, static_cast<int>(devices.size())));
  result.comparison = compare_schedules(result.graph);
  result.shown = name;
  if (result.comparison.find(name) == nullptr) refuse_schedule(name, session, devices, device.empty());
  if (device.empty() && places_batches(name)) result.places = find_places(session, name, staleness);
  return result;
}

std::string schedule_line(VertexModel& session, double epoch_ms) {
  const BatchSession* batches = batches_of(session);
  if (batches == nullptr || !places_batches(batches->config().batch_schedule)) return "";
  const ScheduleReport r = batches->schedule_report();
  const std::string& device = session.device().name();
  std::string text = fmt::format("schedule {}: {} drew {} and computed {}", batches->config().batch_schedule, device,
                                 counted(r.drawn_on_device, "batch", "batches"), r.computed_on_device);
  if (r.drawn_on_host + r.computed_on_host > 0)
    text += fmt::format(", the host beside it drew {} and computed {}", r.drawn_on_host, r.computed_on_host);
  if (r.computed_on_host > 0) text += " in " + human_seconds(r.host_seconds);
  if (r.predicted_epoch > 0)
    text += fmt::format("; an epoch took {}, predicted were {}", human_seconds(epoch_ms / 1000),
                        human_seconds(r.predicted_epoch));
  return text;
}

std::string schedule_report_json(VertexModel& session, double epoch_ms) {
  const BatchSession* batches = batches_of(session);
  if (batches == nullptr || batches->config().batch_schedule == "auto") return "null";
  const ScheduleReport r = batches->schedule_report();
  ordered_json j = {{"name", batches->config().batch_schedule},
                    {"drawn", {{"device", r.drawn_on_device}, {"host", r.drawn_on_host}}},
                    {"computed", {{"device", r.computed_on_device}, {"host", r.computed_on_host}}},
                    {"host_s", r.host_seconds},
                    {"epoch_ms", epoch_ms},
                    {"predicted_epoch_ms", r.predicted_epoch > 0 ? ordered_json(r.predicted_epoch * 1000) : nullptr}};
  j["pattern"] = nullptr;
  if (!r.places.empty())
    j["pattern"] = {{"drawn", r.places.drawn}, {"computed", r.places.computed}, {"together", r.places.together}};
  return j.dump();
}

std::string shown_text(const ShownSchedule& s) {
  std::string text = fmt::format("schedules of {}; {}\n{}", counted(s.graph.num_batches(), "batch", "batches"),
                                 s.source, schedules_text(s.graph, s.comparison, s.shown));
  if (s.places.empty()) return text;
  return text + fmt::format("a run with --schedule {} places whole batches: {}\n", s.shown,
                            places_text(s.places, s.graph.devices.back()));
}

std::string shown_json(const ShownSchedule& s) {
  auto j = ordered_json::parse(schedule_json(s.graph, s.comparison, s.shown));
  j["source"] = s.source;
  return j.dump();
}

}  // namespace nacre::cli
