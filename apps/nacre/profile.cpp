// Defines nacre profile, which measures the times of this machine's kernels, or the rates of a GPU,
// and stores them.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "account.h"
#include "commands.h"
#include "gpu_profile.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/warnings.h"
#include "nacre/engine/calibrate.h"
#include "nacre/train/device.h"
#include "nacre/train/recommend_batches.h"
#include "operation_report.h"
#include "options.h"

namespace nacre::cli {
namespace {

using nlohmann::ordered_json;

// Seconds for timing operations of batches if --seconds is not given.
constexpr double kOperationSeconds = 20;

struct ProfileCommand {
  RunConfig config;  // holds the options of --data; every profile uses its device and its threads
  double seconds = CalibrateOptions{}.seconds;
  bool json = false;
};

struct KindError {
  size_t samples = 0;
  double median_error = 0;
};

std::map<std::string, KindError> errors_by_kind(const CostModel& model, const std::vector<Timing>& samples) {
  std::map<std::string, std::vector<Timing>> kinds;
  for (const Timing& s : samples) kinds[s.work.kind].push_back(s);
  std::map<std::string, KindError> errors;
  for (const auto& [kind, list] : kinds) errors[kind] = {list.size(), model.median_error(list)};
  return errors;
}

std::string where_kept(bool kept) {
  return kept ? "kept in " + cache_folder() : "not kept: set NACRE_CACHE to a folder that can be written";
}

void say(const DeviceProfile& p, const std::map<std::string, KindError>& errors, double all, bool kept) {
  fmt::print("{}\n", p.machine);
  fmt::print("  {:>9.1f} GFLOP/s    large matrix products\n", p.gemm_flops / 1e9);
  fmt::print("  {:>9.1f} GB/s       rows in order\n", p.stream_bytes / 1e9);
  fmt::print("  {:>9.1f} GB/s       rows gathered from the last-level cache ({})\n", p.near_gather_bytes / 1e9,
             human_bytes(static_cast<double>(p.cache_bytes)));
  fmt::print("  {:>9.1f} GB/s       rows gathered from memory\n", p.far_gather_bytes / 1e9);
  fmt::print("  {:>9.1f} us         an empty parallel loop\n\n", p.launch_seconds * 1e6);
  fmt::print("  {:<18} {:>8} {:>13}\n", "kernel", "samples", "median error");
  for (const auto& [kind, e] : errors) {
    fmt::print("  {:<18} {:>8} {:>11.1f} %\n", kind, e.samples, e.median_error * 100);
  }
  fmt::print("  {:<18} {:>8} {:>11.1f} %\n\n", "all", "", all * 100);
  fmt::print("{}\n", where_kept(kept));
}

void profile_gpu(const ProfileCommand& c, const DeviceChoice& choice) {
  DevicePlugin& plugin = *device_plugin();
  const std::unique_ptr<Device> device = plugin.open(choice.index, choice.multiprocessors);
  log_info("measuring " + gpu_label(device->info().name, device->info().multiprocessors));
  const GpuProfile profile = measure_gpu(plugin, *device);
  const bool kept = save_gpu_profile(profile);
  if (c.json) {
    fmt::print("{}\n", gpu_profile_json(profile));
    return;
  }
  fmt::print("{}, {} L2\n", profile.device, human_bytes(static_cast<double>(profile.l2_bytes)));
  for (const GpuFigure& f : gpu_figures()) {
    fmt::print("  {:>9.1f} {:<10} {}\n", profile.*f.value * f.factor, f.unit, f.what);
  }
  fmt::print("\n{}\n", where_kept(kept));
}

// Throws UserError if an option of the graph or the model was given, because a profile of the
// machine needs neither.
void refuse_options_of_data(const Command& command) {
  const std::set<std::string> own = {"--device", "--seconds", "--threads", "--json", "--quiet", "--verbose"};
  for (const std::string& option : command.all_given()) {
    if (!own.contains(option))
      throw UserError(option, "is for the profile of a graph and a model", "add --data, or leave it out");
  }
}

void profile_operations(ProfileCommand& c, const Command& command) {
  RunConfig& config = c.config;
  if (config.mode != "minibatch")
    throw UserError("--data", "the operations of mini-batches are measured, but not those of the whole graph",
                    "add --mode minibatch");
  apply_execution(config);
  const Situation situation = situation_of(config);
  refuse_idle(command, situation);
  MemoryAccount account(config, {.trains = true});
  Dataset dataset = open_data(config);
  if (is_recommendation(dataset))
    throw UserError(config.data, "holds users and items, but operations are measured for models that classify nodes",
                    "use other data");
  refuse_idle(command, with_data(situation, dataset));
  BatchSession session(std::move(dataset), config, {.evaluation = false});
  for (const std::string& note : session.notes()) log_note(note);
  account.present(session.host());
  const LearnedCosts learned = learn_costs(session, command.given("--seconds") ? c.seconds : kOperationSeconds);
  if (c.json) {
    fmt::print("{}\n", costs_json(learned, operation_costs_key(session)));
    return;
  }
  fmt::print("{}\n", costs_text(learned.costs));
  fmt::print("{} in {}; the median error is {:.1f} % for the time of a whole batch from which no cost was learned\n",
             counted(learned.batches, "batch", "batches"), human_seconds(learned.seconds), learned.error * 100);
  const bool kept = load_operation_costs(operation_costs_key(session)).has_value();
  fmt::print("{}\n", where_kept(kept));
}

void run_profile(ProfileCommand& c, const Command& command) {
  if (!c.config.data.empty()) return profile_operations(c, command);
  refuse_options_of_data(command);
  if (const DeviceChoice choice = choose_device(c.config.device, "f32"); choice.gpu) {
    for (const char* option : {"--seconds", "--threads"}) {
      if (command.given(option))
        throw UserError(option, "is a setting for the CPU", "leave it out, or use --device cpu");
    }
    return profile_gpu(c, choice);
  }
  RunConfig execution;
  execution.device = "cpu";
  execution.threads = c.config.threads;
  apply_execution(execution);
  log_info(fmt::format("measuring for about {:.0f} s", c.seconds));
  // Measure rates first and kernels afterwards. The timings of the kernels are kept, because the
  // command says how well the model fits them.
  DeviceProfile profile = measure_profile({.seconds = 0});
  const std::vector<Timing> samples = calibration_samples(profile.cache_bytes, {.seconds = c.seconds});
  profile.model = CostModel::fitted(samples);
  save_profile(profile);
  const bool kept = load_profile(profile.machine, profile.version).has_value();
  const auto errors = errors_by_kind(profile.model, samples);
  const double all = profile.model.median_error(samples);
  if (!c.json) return say(profile, errors, all, kept);
  ordered_json kinds = ordered_json::object();
  for (const auto& [kind, e] : errors) kinds[kind] = {{"samples", e.samples}, {"median_error", e.median_error}};
  const ordered_json j = {{"machine", profile.machine},
                          {"version", profile.version},
                          {"folder", kept ? ordered_json(cache_folder()) : ordered_json()},
                          {"cache_bytes", profile.cache_bytes},
                          {"gemm_flops", profile.gemm_flops},
                          {"stream_bytes", profile.stream_bytes},
                          {"near_gather_bytes", profile.near_gather_bytes},
                          {"far_gather_bytes", profile.far_gather_bytes},
                          {"launch_seconds", profile.launch_seconds},
                          {"median_error", all},
                          {"kernels", kinds}};
  fmt::print("{}\n", j.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace

void add_profile(Command app) {
  Command command =
      app.add_subcommand("profile", "measure this machine or a GPU for the planner, and store the figures");
  const auto c = std::make_shared<ProfileCommand>();
  c->config.device = "cpu";
  add_talk_options(command);
  add_data_options(command, c->config, false);
  command.get_option("--data").add_help(
      ";\nmeasures what the operations of its mini-batches cost, instead of what the machine can do");
  add_model_options(command, c->config);
  command.add_option("--mode", c->config.mode, "with --data: must be minibatch").group("Execution");
  add_batch_options(command, c->config);
  command.without({"--prefetch", "--shuffle", "--staleness", "--schedule", "--norm-samples", "--features-on",
                   "--feature-budget", "--placement", "--cache", "--locality", "--host-rows", "--feature-type",
                   "--sample-on", "--host-budget", "--pack", "--pack-folder", "--no-subtasks", "--no-relax",
                   "--no-stream"});
  command
      .add_option("--device", c->config.device,
                  "the device to measure: cpu, cuda, cuda:1, cuda:0@32 (32 multiprocessors of GPU 0),\n"
                  "or auto (a GPU if there is one)")
      .written_as(device_name)
      .show_default();
  command.add_option("--seconds", c->seconds, "measure for about this many seconds; with --data the default is 20")
      .show_default()
      .between(0.05, 3600.0);
  command.add_option("--threads", c->config.threads,
                     "number of CPU threads; 0 = all; a profile of the CPU is valid for this number of threads only");
  command.add_flag("--json", c->json, "print one JSON object instead of text");
  command.callback([c, command] { run_profile(*c, command); });
}

}  // namespace nacre::cli
