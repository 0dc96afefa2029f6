#include "nacre/train/batch_schedules.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {
namespace {

enum class Needs : uint8_t { any, gpu, host };

struct RunSchedule {
  const char* name;
  Needs needs;
  // The values that the schedule gives --sample-on, --features-on and --host-rows. If one is null,
  // the option keeps its own value.
  const char* sample_on;
  const char* features_on;
  const char* host_rows;
  bool one_by_one;  // whether no batch is prepared before its turn
};

constexpr RunSchedule kSchedules[] = {
    {"daha", Needs::any, "auto", nullptr, nullptr, false},
    {"bytegnn", Needs::gpu, "auto", nullptr, nullptr, false},
    {"salient", Needs::gpu, "host", "host", "copy", false},
    {"cpu-sample", Needs::gpu, "host", "host", "copy", true},
    {"all-gpu", Needs::gpu, "device", nullptr, nullptr, true},
    {"in-turn", Needs::any, nullptr, nullptr, nullptr, false},
    {"cpu-only", Needs::host, nullptr, nullptr, nullptr, false},
};

const RunSchedule* find(const std::string& name) {
  const auto* const found =
      std::find_if(std::begin(kSchedules), std::end(kSchedules), [&](const RunSchedule& s) { return name == s.name; });
  return found == std::end(kSchedules) ? nullptr : found;
}

}  // namespace

bool places_batches(const std::string& name) { return name == "daha" || name == "bytegnn"; }

bool can_follow(const std::string& name, bool gpu) {
  const RunSchedule* schedule = find(name);
  return schedule != nullptr && schedule->needs != (gpu ? Needs::host : Needs::gpu);
}

void check_batch_schedule(const RunConfig& config, bool gpu) {
  const std::string& name = config.batch_schedule;
  if (name == "auto") return;
  const RunSchedule* schedule = find(name);
  const std::string option = "--schedule " + name;
  if (schedule == nullptr)
    throw UserError(option, "is not the name of a schedule",
                    "choose auto, daha, bytegnn, salient, cpu-sample, all-gpu, in-turn or cpu-only");
  if (config.ranks.several()) throw UserError(option, "is for one device", "leave it out, or leave out --devices");
  if (schedule->needs == Needs::gpu && !gpu)
    throw UserError(option, "needs a GPU, but the run is on the CPU", "add --device cuda, or use in-turn or cpu-only");
  if (schedule->needs == Needs::host && gpu)
    throw UserError(option, "is for the CPU, but the run is on a GPU", "add --device cpu, or use salient");
  if (schedule->features_on != nullptr && config.load.features_file == "learned")
    throw UserError(option, "sends features to the GPU, but learned features are weights, which are always there",
                    "use all-gpu or in-turn");
  if (places_batches(name)) {
    const bool learned = config.load.features_file == "learned";
    if (learned || !config.model.kinds.empty())
      throw UserError(option, "needs one table of features that are given, because host and GPU both look them up",
                      "use in-turn");
    if (config.host_budget > 0)
      throw UserError(option, "needs features in memory", "leave out --host-budget, or leave out --schedule");
    if (config.features.locality != "off")
      throw UserError(option, "says who draws each batch, but --locality draws all of them on the host",
                      "leave one of the two out");
  }
  if (name == "in-turn" && config.features.locality == "auto")
    throw UserError(option, "draws samples long before the times are known that --locality auto follows",
                    "give --locality a number, or leave it out");
}

bool settles(const RunConfig& config, const std::string& option) {
  const RunSchedule* schedule = find(config.batch_schedule);
  if (schedule == nullptr) return false;
  if (option == "--sample-on") return schedule->sample_on != nullptr;
  if (option == "--host-rows") return schedule->host_rows != nullptr;
  if (option == "--prefetch") return schedule->one_by_one;
  return schedule->features_on != nullptr &&
         (option == "--features-on" || option == "--feature-budget" || option == "--placement" || option == "--cache");
}

void follow_schedule(RunConfig& config) {
  const RunSchedule* schedule = find(config.batch_schedule);
  if (schedule == nullptr) return;
  if (schedule->sample_on != nullptr) config.sample_on = schedule->sample_on;
  if (schedule->features_on != nullptr) config.features_on = schedule->features_on;
  // If nodes have several kinds or features stay on disk, the host always copies rows, so
  // --host-rows keeps its own value.
  const bool one_way = !config.model.kinds.empty() || config.host_budget > 0;
  if (schedule->host_rows != nullptr && !one_way) config.features.host_rows = schedule->host_rows;
  if (schedule->one_by_one) config.loader.in_flight = 0;
}

}  // namespace nacre
