// nacre profile: measures the times of this machine's kernels, or the rates of a GPU, and stores
// them.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "gpu_profile.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/engine/calibrate.h"
#include "nacre/train/device.h"
#include "options.h"

namespace nacre::cli {
namespace {

using nlohmann::ordered_json;

struct ProfileCommand {
  std::string device = "cpu";
  double seconds = CalibrateOptions{}.seconds;
  int threads = 0;
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

void run_profile(const ProfileCommand& c, const Command& command) {
  if (const DeviceChoice choice = choose_device(c.device, "f32"); choice.gpu) {
    for (const char* option : {"--seconds", "--threads"}) {
      if (command.given(option))
        throw UserError(option, "is a setting for the CPU", "leave it out, or use --device cpu");
    }
    return profile_gpu(c, choice);
  }
  RunConfig execution;
  execution.device = "cpu";
  execution.threads = c.threads;
  apply_execution(execution);
  log_info(fmt::format("measuring for about {:.0f} s", c.seconds));
  // Measures rates first and kernels afterwards; the timings are needed to say how well the model
  // fits them.
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
  add_talk_options(command);
  command.add_option("--device", c->device, "cpu, auto, cuda, cuda:1 or cuda:0@32")
      .written_as(device_name)
      .show_default();
  command.add_option("--seconds", c->seconds, "about how many seconds kernels are timed on the CPU")
      .show_default()
      .between(0.05, 3600.0);
  command.add_option("--threads", c->threads,
                     "number of CPU threads; 0 = all; a profile of the CPU holds for one number of threads");
  command.add_flag("--json", c->json, "print one JSON object instead of text");
  command.callback([c, command] { run_profile(*c, command); });
}

}  // namespace nacre::cli
