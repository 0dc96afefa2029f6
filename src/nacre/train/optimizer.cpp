#include "nacre/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "nacre/base/error.h"

namespace nacre {

void check_optimizer(const OptimizerOptions& options) {
  if (options.name != "adam" && options.name != "adamw" && options.name != "sgd") {
    throw UserError("--optimizer", "unknown optimiser '" + options.name + "'", "choose adam, adamw or sgd");
  }
  const auto in_unit = [](double x) { return x >= 0 && x < 1; };
  if (!(options.lr > 0) || !std::isfinite(options.lr)) throw UserError("--lr", "must be a positive number");
  if (!(options.weight_decay >= 0) || !std::isfinite(options.weight_decay))
    throw UserError("--weight-decay", "must not be negative");
  if (!in_unit(options.momentum)) throw UserError("--momentum", "must be at least 0 and less than 1");
  if (!in_unit(options.beta1)) throw UserError("--beta1", "must be at least 0 and less than 1");
  if (!in_unit(options.beta2)) throw UserError("--beta2", "must be at least 0 and less than 1");
  if (!(options.epsilon > 0) || !std::isfinite(options.epsilon)) throw UserError("--eps", "must be positive");
  if (!(options.clip_norm >= 0) || !std::isfinite(options.clip_norm))
    throw UserError("--clip-grad-norm", "must be a positive number", "leave it out to clip nothing");
  if (!in_unit(options.ema))
    throw UserError("--ema", "must be at least 0 and less than 1", "0.999 is usual; leave it out to keep no average");
}

OptimizerState::OptimizerState(const OptimizerOptions& options, const Parameters& parameters, int tracks)
    : options_(options) {
  check_optimizer(options);
  const bool adam = options.name != "sgd";
  if (adam || options.momentum > 0) first_ = Tensor::zeros(DType::f32, {parameters.trained_size()});
  if (adam) second_ = Tensor::zeros(DType::f32, {parameters.trained_size()});
  if (options.ema > 0) average_ = Tensor::zeros(DType::f32, {parameters.trained_size()});
  if (tracks > 0) tracks_ = Tensor::zeros(DType::f32, {tracks, parameters.size()});
  start_average(parameters);
}

void OptimizerState::start_average(const Parameters& parameters) {
  if (average_.defined()) std::copy_n(parameters.data(), parameters.trained_size(), average_.data<float>());
}

void check_schedule(const ScheduleOptions& s) {
  if (s.name != "constant" && s.name != "step" && s.name != "cosine" && s.name != "linear" && s.name != "plateau") {
    throw UserError("--lr-schedule", "unknown schedule '" + s.name + "'",
                    "choose constant, step, cosine, linear or plateau");
  }
  if (s.warmup < 0) throw UserError("--warmup", "must not be negative");
  if (s.patience < 0) throw UserError("--lr-patience", "must not be negative");
  if (s.step_size < 1) throw UserError("--lr-step", "must be at least 1");
  if (!(s.gamma > 0) || s.gamma > 1) throw UserError("--lr-gamma", "must be greater than 0 and at most 1");
  if (!(s.final_ratio >= 0) || s.final_ratio > 1) throw UserError("--lr-final", "must be between 0 and 1");
}

double scheduled_lr(const ScheduleOptions& s, double base, int epoch, int epochs) {
  if (epoch < s.warmup) return base * (epoch + 1) / s.warmup;
  if (s.name == "step") return base * std::pow(s.gamma, (epoch - s.warmup) / s.step_size);
  const double progress = static_cast<double>(epoch - s.warmup) / std::max(1, epochs - 1 - s.warmup);
  if (s.name == "cosine") {
    return base * (s.final_ratio + (1 - s.final_ratio) * 0.5 * (1 + std::cos(std::numbers::pi * progress)));
  }
  if (s.name == "linear") return base * (1 - (1 - s.final_ratio) * progress);
  return base;
}

}  // namespace nacre
