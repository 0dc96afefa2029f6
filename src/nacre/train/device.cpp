#include "nacre/train/device.h"

#include <algorithm>
#include <charconv>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/cost/gpu_profile.h"
#include "nacre/device/precision.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/engine/gpu/partition.h"

namespace nacre {
namespace {

int parse_number(std::string_view text, const std::string& device) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw UserError("--device", "unknown device '" + device + "'", "choose auto, cpu, cuda, cuda:1 or cuda:0@32");
  }
  return value;
}

}  // namespace

DeviceChoice choose_device(const std::string& device, const std::string& precision) {
  DeviceChoice choice;
  const GemmType products = parse_precision(precision);
  if (device != "cpu") {
    std::string why;
    DevicePlugin* plugin = device_plugin(&why);
    const size_t count = plugin == nullptr ? 0 : plugin->devices().size();
    if (count == 0 && why.empty()) why = plugin->why_no_devices();
    if (device == "auto") {
      choice.gpu = count > 0;
    } else {
      std::string_view rest = device;
      if (!rest.starts_with("cuda")) parse_number("", device);
      rest.remove_prefix(4);
      choice.gpu = true;
      if (const size_t at = rest.find('@'); at != std::string_view::npos) {
        choice.multiprocessors = parse_number(rest.substr(at + 1), device);
        rest = rest.substr(0, at);
      }
      if (rest.starts_with(':')) {
        choice.index = parse_number(rest.substr(1), device);
      } else if (!rest.empty()) {
        parse_number("", device);
      }
      if (static_cast<size_t>(choice.index) >= count) {
        throw UserError("--device", "'" + device + "' was not found" + (why.empty() ? "" : ": " + why),
                        "use auto or cpu; nacre devices lists the devices");
      }
    }
  }
  if (!choice.gpu && products != GemmType::f32)
    throw UserError("--precision", "'" + precision + "' needs a GPU", "use f32, or --device cuda");
  return choice;
}

RunDevice open_device(const RunConfig& config, std::shared_ptr<GraphViews> views) {
  const DeviceChoice choice = choose_device(config.device, config.precision);
  RunDevice run;
  if (!choice.gpu) {
    run.backend = make_cpu_backend(std::move(views));
    run.name = "cpu";
    return run;
  }
  DevicePlugin& plugin = *device_plugin();
  std::shared_ptr<Device> device = plugin.open(choice.index, choice.multiprocessors);
  run.name = device->info().name;
  const std::shared_ptr<GpuCompiler> compiler = GpuCompiler::open(plugin, device);
  if (views) views->partition_with(partition_on(compiler));
  GpuOptions options{.precision = parse_precision(config.precision), .tune = !config.deterministic};
  // Only a searched plan may depend on what was measured here.
  if (config.plan == "auto" && !config.deterministic) {
    const auto profile = load_gpu_profile(gpu_label(run.name, device->info().multiprocessors));
    if (profile) options.rates = variant_rates(*profile, options.precision);
  }
  run.gpu = std::make_shared<GpuContext>(compiler, std::move(views), options);
  run.backend = make_gpu_backend(run.gpu);
  return run;
}

int batches_ahead(const RunDevice& device) {
  // Preparing a batch takes several threads longer than a GPU takes to compute it, so with a GPU
  // more batches are prepared ahead.
  const int few = LoaderOptions{}.in_flight;
  return device.backend->on_host() ? few : std::clamp(num_threads() * 3 / 4, few, 12);
}

void check_places(const RunConfig& config) {
  const std::pair<const char*, const std::string&> places[] = {{"--features-on", config.features_on},
                                                               {"--sample-on", config.sample_on}};
  for (const auto& [option, place] : places) {
    if (place != "auto" && place != "device" && place != "host")
      throw UserError(option, "unknown place '" + place + "'", "choose auto, device or host");
    if (place != "device") continue;
    if (config.mode != "minibatch")
      throw UserError(option, "is for --mode minibatch", "add --mode minibatch, or leave it out");
    if (!choose_device(config.device, config.precision).gpu)
      throw UserError(option, "the run uses no GPU", "use auto or host, or add --device cuda");
  }
}

std::shared_ptr<GpuCompiler> open_beside(const RunConfig& config) {
  const DeviceChoice choice = choose_device(config.device, config.precision);
  if (!choice.gpu || choice.multiprocessors > 0) return nullptr;
  DevicePlugin& plugin = *device_plugin();
  return GpuCompiler::open(plugin, plugin.open(choice.index, 0));
}

}  // namespace nacre
