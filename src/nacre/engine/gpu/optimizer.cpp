#include "nacre/engine/gpu/optimizer.h"

#include <algorithm>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/kernel/cuda/optimizer.h"

namespace nacre {

GpuOptimizer::GpuOptimizer(GpuContext& context, const GpuOptimizerOptions& options,
                           const std::vector<GpuParameter>& parameters, float* values, int64_t trained_size)
    : context_(context), options_(options), values_(values) {
  const bool sgd = options.name == "sgd";
  NACRE_CHECK(sgd || options.name == "adam" || options.name == "adamw", "unknown optimiser " + options.name);
  const auto take = [&](int64_t bytes) {
    bytes_ += bytes;
    return context.allocate(bytes);
  };
  const int64_t moment_bytes = trained_size * static_cast<int64_t>(sizeof(float));
  const auto zeros = [&] {
    auto memory = take(moment_bytes);
    if (moment_bytes > 0) context.device().fill(memory.get(), 0, moment_bytes);
    return memory;
  };
  if (!sgd || options.momentum > 0) first_ = zeros();
  if (!sgd) second_ = zeros();
  if (options.ema > 0) {
    average_ = zeros();
    spare_ = take(moment_bytes);
    average_bytes_ = moment_bytes;
  }
  std::vector<cuda::OptimizerPiece> pieces;
  for (const GpuParameter& p : parameters) {
    if (p.gradient == nullptr) continue;
    for (int64_t b = 0; b < p.size; b += cuda::kOptimizerPiece) {
      pieces.push_back({p.gradient + b, p.offset + b, std::min(cuda::kOptimizerPiece, p.size - b)});
    }
  }
  numbers_ = take(sizeof(cuda::OptimizerNumbers));
  const auto piece_bytes = static_cast<int64_t>(pieces.size() * sizeof(cuda::OptimizerPiece));
  pieces_ = take(std::max<int64_t>(1, piece_bytes));
  if (piece_bytes > 0) context.device().upload(pieces_.get(), pieces.data(), piece_bytes);
  const auto count = static_cast<int64_t>(pieces.size());
  const bool clips = options.clip_norm > 0 && count > 0;
  if (clips) {
    squares_ = take(count * static_cast<int64_t>(sizeof(double)));
    factor_ = take(sizeof(float));
  }
  const cuda::OptimizerStepParams params = {.numbers = numbers_.get(),
                                            .pieces = pieces_.get(),
                                            .values = values,
                                            .first = first(),
                                            .second = second(),
                                            .average = average(),
                                            .factor = factor_.get()};
  step_ = context.launch(cuda::optimizer_step(sgd), count, params);
  if (!clips) return;
  const cuda::GradientSquaresParams of_squares = {.pieces = pieces_.get(), .slots = squares_.get()};
  const cuda::GradientFactorParams of_factor = {
      .numbers = numbers_.get(), .slots = squares_.get(), .count = count, .factor = factor_.get()};
  step_ = [squares = context.launch(cuda::gradient_squares(), count, of_squares),
           factor = context.launch(cuda::gradient_factor(), 1, of_factor), apply = step_] {
    squares();
    factor();
    apply();
  };
}

void GpuOptimizer::exchange_average() {
  if (average_bytes_ == 0) return;
  Device& device = context_.device();
  device.copy(spare_.get(), values_, average_bytes_);
  device.copy(values_, average_.get(), average_bytes_);
  device.copy(average_.get(), spare_.get(), average_bytes_);
}

void GpuOptimizer::begin(double lr, double average_kept) {
  ++steps_;
  const bool adamw = options_.name == "adamw";
  const auto step = static_cast<double>(steps_);
  cuda::OptimizerNumbers f;
  f.lr = static_cast<float>(lr);
  f.decay = adamw ? 0.0F : static_cast<float>(options_.weight_decay);
  f.decoupled = adamw ? static_cast<float>(1 - lr * options_.weight_decay) : 1.0F;
  f.beta1 = static_cast<float>(options_.beta1);
  f.beta2 = static_cast<float>(options_.beta2);
  // Taken in double: in float 1 - 0.999 is off by 5e-5 of itself.
  f.rest1 = static_cast<float>(1 - options_.beta1);
  f.rest2 = static_cast<float>(1 - options_.beta2);
  f.correction1 = static_cast<float>(1 / (1 - std::pow(options_.beta1, step)));
  f.correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, step)));
  f.epsilon = static_cast<float>(options_.epsilon);
  f.momentum = static_cast<float>(options_.momentum);
  f.first_step = steps_ == 1 ? 1 : 0;
  f.clip_norm = static_cast<float>(options_.clip_norm);
  f.average_old = static_cast<float>(average_kept);
  f.average_new = static_cast<float>(1 - average_kept);
  static_assert(sizeof f <= kFewBytes);
  context_.device().upload_few(numbers_.get(), &f, sizeof f);
}

}  // namespace nacre
