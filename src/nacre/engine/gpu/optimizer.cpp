#include "nacre/engine/gpu/optimizer.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/kernel/cuda/optimizer.h"

namespace nacre {

GpuOptimizer::GpuOptimizer(std::shared_ptr<GpuContext> context, const OptimizerOptions& options,
                           const std::vector<TrainedParameter>& parameters, const OptimizerMemory& memory)
    : Optimizer(options), context_(std::move(context)), memory_(memory) {
  const bool sgd = options.name == "sgd";
  NACRE_CHECK(sgd || options.name == "adam" || options.name == "adamw", "unknown optimiser " + options.name);
  if (memory.average != nullptr) spare_ = context_->allocate(memory.size * static_cast<int64_t>(sizeof(float)));
  std::vector<cuda::OptimizerPiece> pieces;
  for (const TrainedParameter& p : parameters) {
    if (p.gradient == nullptr) continue;
    for (int64_t b = 0; b < p.size; b += cuda::kOptimizerPiece) {
      pieces.push_back({p.gradient + b, p.offset + b, std::min(cuda::kOptimizerPiece, p.size - b)});
    }
  }
  numbers_ = context_->allocate(sizeof(OptimizerNumbers));
  const auto piece_bytes = static_cast<int64_t>(pieces.size() * sizeof(cuda::OptimizerPiece));
  pieces_ = context_->allocate(std::max<int64_t>(1, piece_bytes));
  if (piece_bytes > 0) context_->device().upload(pieces_.get(), pieces.data(), piece_bytes);
  const auto count = static_cast<int64_t>(pieces.size());
  const bool clips = options.clip_norm > 0 && count > 0;
  if (clips) {
    squares_ = context_->allocate(count * static_cast<int64_t>(sizeof(double)));
    factor_ = context_->allocate(sizeof(float));
  }
  const cuda::OptimizerStepParams params = {.numbers = numbers_.get(),
                                            .pieces = pieces_.get(),
                                            .values = memory.weights,
                                            .first = memory.first,
                                            .second = memory.second,
                                            .average = memory.average,
                                            .factor = factor_.get()};
  launch_ = context_->launch(cuda::optimizer_step(sgd), count, params);
  if (!clips) return;
  const cuda::GradientSquaresParams of_squares = {.pieces = pieces_.get(), .places = squares_.get()};
  const cuda::GradientFactorParams of_factor = {
      .numbers = numbers_.get(), .places = squares_.get(), .count = count, .factor = factor_.get()};
  launch_ = [squares = context_->launch(cuda::gradient_squares(), count, of_squares),
             factor = context_->launch(cuda::gradient_factor(), 1, of_factor), apply = launch_] {
    squares();
    factor();
    apply();
  };
}

void GpuOptimizer::exchange_average() {
  if (memory_.average == nullptr) return;
  const int64_t bytes = memory_.size * static_cast<int64_t>(sizeof(float));
  Device& device = context_->device();
  device.copy(spare_.get(), memory_.weights, bytes);
  device.copy(memory_.weights, memory_.average, bytes);
  device.copy(memory_.average, spare_.get(), bytes);
}

void GpuOptimizer::step(double lr) {
  const OptimizerNumbers numbers = count_step(lr);
  static_assert(sizeof numbers <= kFewBytes);
  context_->device().upload_few(numbers_.get(), &numbers, sizeof numbers);
  launch_();
}

}  // namespace nacre
