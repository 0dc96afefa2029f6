#include "nacre/train/gpu_device.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/cost/gpu_profile.h"
#include "nacre/device/null_device.h"
#include "nacre/device/precision.h"
#include "nacre/engine/gpu/device_sampling.h"
#include "nacre/engine/gpu/gpu_backend.h"
#include "nacre/engine/gpu/partition.h"
#include "nacre/train/batch_computer.h"
#include "nacre/train/device_scorer.h"
#include "nacre/train/rank_devices.h"

namespace nacre {
namespace {

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

}  // namespace

GpuDevice::GpuDevice(const DeviceChoice& choice, std::shared_ptr<GpuContext> context)
    : RunDevice(context->device().info().name, make_gpu_backend(context)),
      choice_(choice),
      context_(std::move(context)) {}

std::shared_ptr<GpuCompiler> GpuDevice::open_beside() const {
  if (choice_.multiprocessors > 0) return nullptr;
  DevicePlugin& plugin = *device_plugin();
  return GpuCompiler::open(plugin, plugin.open(choice_.index, 0));
}

int64_t GpuDevice::memory_limit(const RunConfig& config, int64_t left) const {
  return config.memory_limit > 0 ? config.memory_limit : left;
}

int64_t GpuDevice::free_at_start() const { return context_->device().info().free_bytes; }

int64_t GpuDevice::peak_bytes() const { return context_->device().peak_bytes(); }

int GpuDevice::batches_ahead() const {
  // Several threads take longer to prepare a batch than a GPU takes to compute it, so with a GPU
  // more batches are prepared ahead.
  const int few = LoaderOptions{}.in_flight;
  return std::clamp(num_threads() * 3 / 4, few, 12);
}

DrawAnswer GpuDevice::draw_batches(const DrawRequest& request) const {
  const std::string why_not = GpuSampler::why_not(request.asked);
  if (!why_not.empty()) return {nullptr, "sampling on the device does not support " + why_not};
  const int64_t free = backend()->available_bytes();
  if (request.bytes > (request.required ? free : free / 4)) {
    return {nullptr, "the graph and its tables take " + size_of(request.bytes) + ", but only " + size_of(free) +
                         " of device memory are free"};
  }
  const std::shared_ptr<GpuCompiler> beside = open_beside();
  if (!beside) return {nullptr, "a part of a GPU (cuda:0@32) cannot sample while it computes"};
  const DeviceSampling::Options options{request.ahead, {.edges = false, .scale = request.scaled}, request.skips};
  const auto sampling = std::make_shared<DeviceSampling>(beside, request.sampler, request.order(), options);
  return {[sampling] { return sampling->make_batch_sampler(); }, "",
          [sampling](const BatchOrder& order) { sampling->reorder(order); }};
}

std::unique_ptr<BatchComputer> GpuDevice::make_batch_computer(const BatchParts& parts) const {
  return make_device_batches(parts, *this);
}

std::unique_ptr<Scorer> GpuDevice::make_scorer(const RunData& run) const {
  return std::make_unique<DeviceScorer>(run, context_);
}

std::shared_ptr<const GpuDevice> open_gpu(const DeviceChoice& choice, const RunConfig& config,
                                          std::shared_ptr<GraphViews> views) {
  DevicePlugin& plugin = *device_plugin();
  const std::shared_ptr<Device> device = plugin.open(choice.index, choice.multiprocessors);
  const DeviceInfo& info = device->info();
  const std::shared_ptr<GpuCompiler> compiler = GpuCompiler::open(plugin, device);
  if (views) views->partition_with(partition_on(compiler));
  GpuOptions options{.precision = parse_precision(config.precision),
                     .tune = !config.deterministic,
                     .busy_multiprocessors = busy_multiprocessors(config.ranks.devices, config.device)};
  // Only a searched plan may depend on rates that were measured on this machine, because plans by
  // rules are the same on every machine.
  if (config.plan == "auto" && !config.deterministic) {
    const auto profile = load_gpu_profile(gpu_label(info.name, info.multiprocessors));
    if (profile) options.rates = variant_rates(*profile, options.precision);
  }
  return std::make_shared<GpuDevice>(choice, std::make_shared<GpuContext>(compiler, std::move(views), options));
}

std::shared_ptr<Backend> absent_gpu(const DeviceInfo& gpu, const RunConfig& config, std::shared_ptr<GraphViews> views) {
  const auto compiler = std::make_shared<GpuCompiler>(make_null_device(gpu), [](const auto&) { return std::string(); });
  const GpuOptions options{.precision = parse_precision(config.precision), .tune = !config.deterministic};
  return make_gpu_backend(std::make_shared<GpuContext>(compiler, std::move(views), options));
}

GpuContext& gpu_of(const RunDevice& device) {
  const auto* gpu = dynamic_cast<const GpuDevice*>(&device);
  NACRE_CHECK(gpu != nullptr, device.name() + " is no GPU");
  return *gpu->context();
}

}  // namespace nacre
