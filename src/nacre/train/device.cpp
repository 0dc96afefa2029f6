#include "nacre/train/device.h"

#include <charconv>

#include "nacre/base/error.h"
#include "nacre/device/precision.h"
#include "nacre/train/batch_computer.h"
#include "nacre/train/batch_schedules.h"
#include "nacre/train/bill.h"
#include "nacre/train/feature_options.h"
#include "nacre/train/gpu_device.h"
#include "nacre/train/scorer.h"

namespace nacre {
namespace {

int parse_number(std::string_view text, const std::string& device, const std::string& option) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw UserError(option, "unknown device '" + device + "'", "choose auto, cpu, cuda, cuda:1 or cuda:0@32");
  }
  return value;
}

// HostDevice: the host, its cores and its memory, as the device of a run.
class HostDevice : public RunDevice {
 public:
  explicit HostDevice(std::shared_ptr<GraphViews> views) : RunDevice("cpu", make_cpu_backend(std::move(views))) {}

  int64_t memory_limit(const RunConfig& config, int64_t) const override {
    return host_bound(config, false).bytes - config.program_bytes;
  }
  int64_t free_at_start() const override { return backend()->available_bytes(); }
  int64_t peak_bytes() const override { return -1; }
  int batches_ahead() const override { return LoaderOptions{}.in_flight; }
  DrawAnswer draw_batches(const DrawRequest&) const override { return {nullptr, "the run uses no GPU"}; }
  std::unique_ptr<BatchComputer> make_batch_computer(const BatchParts& parts) const override {
    return make_host_batches(parts);
  }
  std::unique_ptr<Scorer> make_scorer(const RunData& run) const override { return make_host_scorer(run); }
};

}  // namespace

DeviceChoice choose_device(const std::string& device, const std::string& precision, const std::string& option) {
  DeviceChoice choice;
  // With several devices, `precision` may be a list. Only its first name is used here;
  // rank_devices() checks the others.
  const std::string first = precision.substr(0, precision.find(','));
  const GemmType products = first == kAutomaticPrecision ? GemmType::f32 : parse_precision(first);
  if (device != "cpu") {
    std::string why;
    DevicePlugin* plugin = device_plugin(&why);
    const size_t count = plugin == nullptr ? 0 : plugin->devices().size();
    if (count == 0 && why.empty()) why = plugin->why_no_devices();
    if (device == "auto") {
      choice.gpu = count > 0;
    } else {
      std::string_view rest = device;
      if (!rest.starts_with("cuda")) parse_number("", device, option);
      rest.remove_prefix(4);
      choice.gpu = true;
      if (const size_t at = rest.find('@'); at != std::string_view::npos) {
        choice.multiprocessors = parse_number(rest.substr(at + 1), device, option);
        rest = rest.substr(0, at);
      }
      if (rest.starts_with(':')) {
        choice.index = parse_number(rest.substr(1), device, option);
      } else if (!rest.empty()) {
        parse_number("", device, option);
      }
      if (static_cast<size_t>(choice.index) >= count) {
        throw UserError(option, "'" + device + "' was not found" + (why.empty() ? "" : ": " + why),
                        "use auto or cpu; nacre devices lists the devices");
      }
    }
  }
  if (!choice.gpu && products != GemmType::f32)
    throw UserError("--precision", "'" + precision + "' needs a GPU", "use f32, or --device cuda");
  return choice;
}

void check_places(const RunConfig& config) {
  if (config.mode == "minibatch") {
    check_feature_options(config);
    check_batch_schedule(config, choose_device(config.device, config.precision).gpu);
  }
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

std::shared_ptr<const RunDevice> open_device(const RunConfig& config, std::shared_ptr<GraphViews> views) {
  const DeviceChoice choice = choose_device(config.device, config.precision);
  if (choice.gpu) return open_gpu(choice, config, std::move(views));
  return std::make_shared<HostDevice>(std::move(views));
}

}  // namespace nacre
