#include "nacre/engine/optimizer.h"

#include <algorithm>
#include <cmath>

namespace nacre {

double average_kept(double decay, int64_t step) {
  return std::min(decay, static_cast<double>(1 + step) / static_cast<double>(10 + step));
}

double clip_factor(double clip_norm, double norm) {
  const double factor = clip_norm / (norm + 1e-6);
  return clip_norm > 0 && factor < 1 ? factor : 1;
}

OptimizerNumbers optimizer_numbers(const OptimizerOptions& options, int64_t step, double lr) {
  const bool adamw = options.name == "adamw";
  const auto time = static_cast<double>(step);
  OptimizerNumbers f{};
  f.lr = static_cast<float>(lr);
  f.decay = adamw ? 0.0F : static_cast<float>(options.weight_decay);
  f.decoupled = adamw ? static_cast<float>(1 - lr * options.weight_decay) : 1.0F;
  f.beta1 = static_cast<float>(options.beta1);
  f.beta2 = static_cast<float>(options.beta2);
  // The differences from 1 are computed in double, because in float 1 - 0.999 has an error of 5e-5
  // of its value.
  f.rest1 = static_cast<float>(1 - options.beta1);
  f.rest2 = static_cast<float>(1 - options.beta2);
  f.correction1 = static_cast<float>(1 / (1 - std::pow(options.beta1, time)));
  f.correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, time)));
  f.epsilon = static_cast<float>(options.epsilon);
  f.momentum = static_cast<float>(options.momentum);
  f.first_step = step == 1 ? 1 : 0;
  f.clip_norm = static_cast<float>(options.clip_norm);
  const double kept = average_kept(options.ema, step);
  f.average_old = static_cast<float>(kept);
  f.average_new = static_cast<float>(1 - kept);
  return f;
}

}  // namespace nacre
