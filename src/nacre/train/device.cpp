#include "nacre/train/device.h"

#include <charconv>

#include "nacre/base/error.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/engine/gpu/partition.h"

namespace nacre {
namespace {

int parse_number(std::string_view text, const std::string& device) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw UserError("--device", "'" + device + "' means nothing", "use auto, cpu, cuda, cuda:1 or cuda:0@32");
  }
  return value;
}

GemmType gemm_type(const std::string& precision) {
  return precision == "bf16" ? GemmType::bf16 : precision == "tf32" ? GemmType::tf32 : GemmType::f32;
}

}  // namespace

DeviceChoice choose_device(const std::string& device, const std::string& precision) {
  DeviceChoice choice;
  if (precision != "f32" && precision != "tf32" && precision != "bf16")
    throw UserError("--precision", "'" + precision + "' means nothing", "use f32, tf32 or bf16");
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
        throw UserError("--device", "'" + device + "' is not here" + (why.empty() ? "" : ": " + why),
                        "use auto or cpu; nacre devices lists what is here");
      }
    }
  }
  if (!choice.gpu && precision != "f32")
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
  const std::shared_ptr<GpuLoader> loader = GpuLoader::open(plugin, device);
  if (views) views->partition_with(partition_on(loader));
  run.gpu = std::make_shared<GpuContext>(
      loader, std::move(views), GpuOptions{.precision = gemm_type(config.precision), .tune = !config.deterministic});
  run.backend = make_gpu_backend(run.gpu);
  return run;
}

std::shared_ptr<GpuLoader> open_beside(const RunConfig& config) {
  const DeviceChoice choice = choose_device(config.device, config.precision);
  if (!choice.gpu || choice.multiprocessors > 0) return nullptr;
  DevicePlugin& plugin = *device_plugin();
  return GpuLoader::open(plugin, plugin.open(choice.index, 0));
}

DeviceState::DeviceState(std::shared_ptr<GpuContext> gpu, const Parameters& parameters)
    : gpu_(std::move(gpu)), values_(gpu_->allocate(parameters.bytes())) {}

void* DeviceState::leaf(const std::string& name, const void* host, int64_t bytes) {
  if (host == nullptr) return nullptr;
  std::shared_ptr<void>& slot = leaves_[name];
  if (!slot) {
    slot = gpu_->allocate(bytes);
    leaf_bytes_ += bytes;
    if (bytes > 0) gpu_->device().upload(slot.get(), host, bytes);
  }
  return slot.get();
}

void DeviceState::start(const Optimizer& optimizer, const Parameters& parameters,
                        const std::vector<const float*>& gradients) {
  const OptimizerOptions& o = optimizer.options();
  std::vector<GpuParameter> list;
  for (size_t k = 0; k < gradients.size(); ++k) {
    const Parameter& p = parameters.list()[k];
    if (p.trained) list.push_back({p.offset, p.size, gradients[k]});
  }
  optimizer_ = std::make_unique<GpuOptimizer>(
      *gpu_, GpuOptimizerOptions{o.name, o.weight_decay, o.momentum, o.beta1, o.beta2, o.epsilon}, list,
      static_cast<float*>(values_.get()), parameters.trained_size());
}

void DeviceState::update(double lr) {
  optimizer_->begin(lr);
  optimizer_->step()();
}

void DeviceState::push(const Parameters& parameters, Optimizer* optimizer) {
  Device& device = gpu_->device();
  device.upload(values_.get(), parameters.data(), parameters.bytes());
  if (optimizer == nullptr || !optimizer_) return;
  optimizer_->set_steps(optimizer->steps());
  if (optimizer_->first() != nullptr)
    device.upload(optimizer_->first(), optimizer->first().raw(), optimizer->first().bytes());
  if (optimizer_->second() != nullptr)
    device.upload(optimizer_->second(), optimizer->second().raw(), optimizer->second().bytes());
}

void DeviceState::pull(Parameters& parameters, Optimizer* optimizer) {
  Device& device = gpu_->device();
  device.download(parameters.data(), values_.get(), parameters.bytes());
  if (optimizer == nullptr || !optimizer_) return;
  optimizer->set_steps(optimizer_->steps());
  if (optimizer_->first() != nullptr)
    device.download(optimizer->first().raw(), optimizer_->first(), optimizer->first().bytes());
  if (optimizer_->second() != nullptr)
    device.download(optimizer->second().raw(), optimizer_->second(), optimizer->second().bytes());
}

}  // namespace nacre
