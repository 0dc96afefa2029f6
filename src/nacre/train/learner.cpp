#include "nacre/train/learner.h"

#include <algorithm>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"

namespace nacre {
namespace {

constexpr int64_t kLossesOnGpu = 4096;
// Enough that a device never waits for the host's launches; more would only keep memory of batches that are over, and
// copies for later ones, which begin behind what is queued, from beginning.
constexpr size_t kQueuedSteps = 2;

}  // namespace

Learner::Learner(Parameters parameters, std::shared_ptr<GpuContext> gpu)
    : parameters_(std::move(parameters)), gpu_(std::move(gpu)) {
  if (gpu_) values_ = gpu_->allocate(parameters_.bytes());
}

void Learner::optimize_with(const OptimizerOptions& options) {
  optimizer_ = std::make_unique<Optimizer>(options, parameters_);
}

// On a GPU the average and the weights are exchanged by way of a third block.
int64_t Learner::optimizer_bytes() const {
  if (!optimizer_) return 0;
  return optimizer_->bytes() + (gpu_ && optimizer_->average().defined() ? optimizer_->average().bytes() : 0);
}

float* Learner::place(const Parameter& p) {
  return (gpu_ ? static_cast<float*>(values_.get()) : parameters_.data()) + p.offset;
}

void* Learner::leaf(const std::string& name, const void* host, int64_t bytes) {
  if (!gpu_ || host == nullptr) return const_cast<void*>(host);
  std::shared_ptr<void>& slot = leaves_[name];
  if (!slot) {
    slot = gpu_->allocate(bytes);
    if (bytes > 0) gpu_->device().upload(slot.get(), host, bytes);
  }
  return slot.get();
}

void Learner::start(std::vector<const float*> gradients) {
  gradients_ = std::move(gradients);
  if (optimizer_->steps() == 0) optimizer_->start_average(parameters_);
  if (!gpu_) return;
  const OptimizerOptions& o = optimizer_->options();
  std::vector<GpuParameter> trained;
  for (size_t k = 0; k < gradients_.size(); ++k) {
    const Parameter& p = list()[k];
    if (p.trained) trained.push_back({p.offset, p.size, gradients_[k]});
  }
  gpu_optimizer_ = std::make_unique<GpuOptimizer>(
      *gpu_, GpuOptimizerOptions{o.name, o.weight_decay, o.momentum, o.beta1, o.beta2, o.epsilon, o.clip_norm, o.ema},
      trained, static_cast<float*>(values_.get()), parameters_.trained_size());
  gpu_losses_ = gpu_->allocate(kLossesOnGpu * 4);
  weights_changed();
}

void Learner::update(double lr) {
  const TraceSpan span("train", "optimizer");
  if (!gpu_) return optimizer_->step(parameters_, gradients_, lr);
  gpu_optimizer_->begin(lr, average_kept(optimizer_->options().ema, gpu_optimizer_->steps() + 1));
  gpu_optimizer_->step()();
  values_are_old_ = moments_are_old_ = true;
  queued_.push_back(gpu_->device().record());
  if (queued_.size() <= kQueuedSteps) return;
  const TraceSpan waiting("train", "wait for the device");
  const double start = now_seconds();
  gpu_->device().await(queued_.front());
  awaited_ += now_seconds() - start;
  queued_.pop_front();
}

void Learner::keep_loss(Executor& executor) {
  if (!gpu_) {
    losses_.push_back(*executor.output("loss"));
    return;
  }
  if (num_gpu_losses_ == kLossesOnGpu) fetch_losses();
  const void* loss = executor.pointer(executor.plan().dfg.output("loss"));
  gpu_->device().copy(static_cast<float*>(gpu_losses_.get()) + num_gpu_losses_++, loss, 4);
}

void Learner::fetch_losses() {
  if (num_gpu_losses_ == 0) return;
  const size_t before = losses_.size();
  losses_.resize(before + static_cast<size_t>(num_gpu_losses_));
  gpu_->device().download(losses_.data() + before, gpu_losses_.get(), num_gpu_losses_ * 4);
  num_gpu_losses_ = 0;
}

void Learner::take_losses(double& sum) {
  fetch_losses();
  for (const float loss : losses_) sum += loss;
  losses_.clear();
}

Parameters& Learner::parameters() {
  if (values_are_old_) gpu_->device().download(parameters_.data(), values_.get(), parameters_.bytes());
  values_are_old_ = false;
  return parameters_;
}

Optimizer& Learner::optimizer() {
  if (!moments_are_old_) return *optimizer_;
  Device& device = gpu_->device();
  optimizer_->set_steps(gpu_optimizer_->steps());
  if (gpu_optimizer_->first() != nullptr)
    device.download(optimizer_->first().raw(), gpu_optimizer_->first(), optimizer_->first().bytes());
  if (gpu_optimizer_->second() != nullptr)
    device.download(optimizer_->second().raw(), gpu_optimizer_->second(), optimizer_->second().bytes());
  if (gpu_optimizer_->average() != nullptr)
    device.download(optimizer_->average().raw(), gpu_optimizer_->average(), optimizer_->average().bytes());
  moments_are_old_ = false;
  return *optimizer_;
}

void Learner::weights_changed() {
  if (!gpu_) return;
  values_are_old_ = false;
  Device& device = gpu_->device();
  device.upload(values_.get(), parameters_.data(), parameters_.bytes());
  if (!gpu_optimizer_ || moments_are_old_) return;
  gpu_optimizer_->set_steps(optimizer_->steps());
  if (gpu_optimizer_->first() != nullptr)
    device.upload(gpu_optimizer_->first(), optimizer_->first().raw(), optimizer_->first().bytes());
  if (gpu_optimizer_->second() != nullptr)
    device.upload(gpu_optimizer_->second(), optimizer_->second().raw(), optimizer_->second().bytes());
  if (gpu_optimizer_->average() != nullptr)
    device.upload(gpu_optimizer_->average(), optimizer_->average().raw(), optimizer_->average().bytes());
}

void Learner::use_average(bool use) {
  if (!optimizer_ || !optimizer_->average().defined() || use == average_in_use_) return;
  average_in_use_ = use;
  if (gpu_optimizer_) {
    gpu_optimizer_->exchange_average();
    values_are_old_ = moments_are_old_ = true;
    return;
  }
  auto* average = optimizer_->average().data<float>();
  std::swap_ranges(average, average + parameters_.trained_size(), parameters_.data());
}

}  // namespace nacre
