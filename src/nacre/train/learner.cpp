#include "nacre/train/learner.h"

#include <algorithm>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"

namespace nacre {
namespace {

constexpr int64_t kLossesKept = 4096;
// At most this many steps may be queued, which is enough that a device never waits for the host to
// launch work. More steps would keep the memory of batches that are over, and would delay copies
// for later batches, which start behind the queued work.
constexpr size_t kQueuedSteps = 2;

}  // namespace

Learner::Learner(Parameters parameters, std::shared_ptr<Backend> backend)
    : backend_(std::move(backend)),
      parameters_(std::move(parameters)),
      weights_(backend_, parameters_.data(), parameters_.bytes()) {}

void Learner::optimize_with(const OptimizerOptions& options, int tracks) {
  state_ = std::make_unique<OptimizerState>(options, parameters_, tracks);
}

int64_t Learner::optimizer_bytes() const {
  if (!state_) return 0;
  // A device exchanges the average and the weights through another array of the average's size.
  return state_->bytes() + (backend_->on_host() ? 0 : state_->average().bytes());
}

void* Learner::on_track(void* place, int64_t batch) const {
  const auto* weights = reinterpret_cast<const char*>(weights_.data());
  const auto* at = static_cast<const char*>(place);
  if (tracks_.data() == nullptr || at < weights || at >= weights + parameter_bytes()) return place;
  return reinterpret_cast<char*>(tracks_.data()) + batch % tracks() * parameter_bytes() + (at - weights);
}

void* Learner::leaf(const std::string& name, const void* host, int64_t bytes) {
  if (host == nullptr || backend_->on_host()) return const_cast<void*>(host);
  std::shared_ptr<void>& copy = leaves_[name];
  if (!copy) copy = backend_->borrow(host, bytes);
  return copy.get();
}

MirroredArray Learner::mirror(Tensor& values) {
  return values.defined() ? MirroredArray(backend_, values.data<float>(), values.bytes()) : MirroredArray();
}

void Learner::start(const std::vector<const float*>& gradients) {
  if (state_->steps() == 0) state_->start_average(parameters_);
  first_ = mirror(state_->first());
  second_ = mirror(state_->second());
  average_ = mirror(state_->average());
  tracks_ = mirror(state_->tracks());
  std::vector<TrainedParameter> trained;
  for (size_t k = 0; k < gradients.size(); ++k) {
    const Parameter& p = list()[k];
    if (p.trained) trained.push_back({p.offset, p.size, gradients[k]});
  }
  optimizer_ = backend_->make_optimizer(
      state_->options(), trained,
      {weights_.data(), first_.data(), second_.data(), average_.data(), parameters_.trained_size()});
  loss_memory_ = backend_->allocate(kLossesKept * 4);
  weights_changed();
}

void Learner::update(double lr) {
  const TraceSpan span("train", "optimizer");
  optimizer_->step(lr);
  weights_are_old_ = state_is_old_ = true;
  if (DeviceEvent end = backend_->mark()) queued_.push_back(std::move(end));
  if (queued_.size() <= kQueuedSteps) return;
  const TraceSpan waiting("train", "wait for the device");
  const double start = now_seconds();
  backend_->await(queued_.front());
  awaited_ += now_seconds() - start;
  queued_.pop_front();
}

// The batch has written state such as running statistics on its track. So this function copies the
// state from the track to the weights, and after the update all weights to the track.
void Learner::update(double lr, int64_t batch) {
  if (tracks_.data() == nullptr) return update(lr);
  float* const track = static_cast<float*>(on_track(weights_.data(), batch));
  const int64_t trained = parameters_.trained_size();
  backend_->copy(weights_.data() + trained, track + trained, (parameters_.size() - trained) * 4);
  update(lr);
  backend_->copy(track, weights_.data(), parameter_bytes());
}

void Learner::begin_tracks() {
  for (int64_t t = 0; t < tracks(); ++t)
    backend_->copy(on_track(weights_.data(), t), weights_.data(), parameter_bytes());
  if (tracks() > 0) state_is_old_ = true;
}

void Learner::keep_loss(Executor& executor) { keep_loss(executor.pointer(executor.plan().dfg.output("loss"))); }

void Learner::keep_loss(const void* loss, int64_t batches) {
  if (num_losses_ == kLossesKept) fetch_losses();
  loss_batches_.push_back(batches);
  backend_->copy(static_cast<float*>(loss_memory_.get()) + num_losses_++, loss, 4);
}

void Learner::fetch_losses() {
  if (num_losses_ == 0) return;
  const size_t before = losses_.size();
  losses_.resize(before + static_cast<size_t>(num_losses_));
  backend_->read(losses_.data() + before, loss_memory_.get(), num_losses_ * 4);
  num_losses_ = 0;
}

void Learner::take_losses(double& sum) {
  fetch_losses();
  for (size_t i = 0; i < losses_.size(); ++i) sum += losses_[i] * static_cast<double>(loss_batches_[i]);
  losses_.clear();
  loss_batches_.clear();
}

Parameters& Learner::parameters() {
  if (weights_are_old_) weights_.fetch();
  weights_are_old_ = false;
  return parameters_;
}

OptimizerState& Learner::optimizer() {
  if (!state_is_old_) return *state_;
  state_->set_steps(optimizer_->steps());
  for (const MirroredArray* array : {&first_, &second_, &average_, &tracks_}) array->fetch();
  state_is_old_ = false;
  return *state_;
}

void Learner::weights_changed() {
  weights_are_old_ = false;
  weights_.send();
  if (!optimizer_ || state_is_old_) return;
  optimizer_->set_steps(state_->steps());
  for (const MirroredArray* array : {&first_, &second_, &average_, &tracks_}) array->send();
}

void Learner::use_average(bool use) {
  if (!state_ || !state_->average().defined() || use == average_in_use_) return;
  average_in_use_ = use;
  if (optimizer_) {
    optimizer_->exchange_average();
    weights_are_old_ = state_is_old_ = true;
    return;
  }
  auto* average = state_->average().data<float>();
  std::swap_ranges(average, average + parameters_.trained_size(), parameters_.data());
}

}  // namespace nacre
