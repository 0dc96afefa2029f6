#include "nacre/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kChunk = 1 << 14;

struct StepFactors {
  float lr, decay, decoupled, beta1, beta2, rest1, rest2, correction1, correction2, epsilon, momentum;
  float clip = 1;         // factor of the gradient
  float average_old = 0;  // shares of the average's old value and of the new weight
  float average_new = 0;
  bool first_step = false;
};

// One parameter: weights, gradient, moments (null where not used).
struct Slices {
  float* w;
  const float* g;
  float* m;
  float* v;
  float* average;
};

void average_chunk(const StepFactors& f, const float* w, float* average, int64_t b, int64_t e) {
  if (average == nullptr) return;
  for (int64_t i = b; i < e; ++i) average[i] = f.average_old * average[i] + f.average_new * w[i];
}

void adam_chunk(const StepFactors& f, const Slices& s, int64_t b, int64_t e) {
  const auto [w, g, m, v, average] = s;
  for (int64_t i = b; i < e; ++i) {
    const float grad = f.clip * g[i] + f.decay * w[i];
    m[i] = f.beta1 * m[i] + f.rest1 * grad;
    v[i] = f.beta2 * v[i] + f.rest2 * grad * grad;
    const float denominator = std::sqrt(v[i]) * f.correction2 + f.epsilon;
    w[i] = w[i] * f.decoupled - f.lr * f.correction1 * m[i] / denominator;
  }
  average_chunk(f, w, average, b, e);
}

void sgd_chunk(const StepFactors& f, const Slices& s, int64_t b, int64_t e) {
  const auto [w, g, m, v, average] = s;
  for (int64_t i = b; i < e; ++i) {
    float grad = f.clip * g[i] + f.decay * w[i];
    if (m != nullptr) grad = m[i] = f.first_step ? grad : f.momentum * m[i] + grad;
    w[i] -= f.lr * grad;
  }
  average_chunk(f, w, average, b, e);
}

}  // namespace

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

double average_kept(double decay, int64_t step) {
  return std::min(decay, static_cast<double>(1 + step) / static_cast<double>(10 + step));
}

double clip_factor(double clip_norm, double norm) {
  const double factor = clip_norm / (norm + 1e-6);
  return clip_norm > 0 && factor < 1 ? factor : 1;
}

Optimizer::Optimizer(const OptimizerOptions& options, const Parameters& parameters) : options_(options) {
  check_optimizer(options);
  const bool adam = options.name != "sgd";
  if (adam || options.momentum > 0) first_ = Tensor::zeros(DType::f32, {parameters.trained_size()});
  if (adam) second_ = Tensor::zeros(DType::f32, {parameters.trained_size()});
  if (options.ema > 0) average_ = Tensor::zeros(DType::f32, {parameters.trained_size()});
  start_average(parameters);
}

void Optimizer::start_average(const Parameters& parameters) {
  if (average_.defined()) std::copy_n(parameters.data(), parameters.trained_size(), average_.data<float>());
}

// Chunks are added in order: the same bits on any number of threads.
double Optimizer::gradient_norm(const Parameters& parameters, const std::vector<const float*>& gradients) {
  double sum = 0;
  for (size_t k = 0; k < gradients.size(); ++k) {
    const Parameter& p = parameters.list()[k];
    const float* g = gradients[k];
    if (!p.trained || g == nullptr) continue;
    squares_.assign((p.size + kChunk - 1) / kChunk, 0);
    parallel_for(p.size, kChunk, [&](int64_t b, int64_t e) {
      double& part = squares_[b / kChunk];
      for (int64_t i = b; i < e; ++i) part += static_cast<double>(g[i]) * g[i];
    });
    for (const double part : squares_) sum += part;
  }
  return std::sqrt(sum);
}

void Optimizer::step(Parameters& parameters, const std::vector<const float*>& gradients, double lr) {
  ++steps_;
  const bool adamw = options_.name == "adamw";
  const bool sgd = options_.name == "sgd";
  StepFactors f{};
  f.lr = static_cast<float>(lr);
  f.decay = adamw ? 0.0F : static_cast<float>(options_.weight_decay);
  f.decoupled = adamw ? static_cast<float>(1 - lr * options_.weight_decay) : 1.0F;
  f.beta1 = static_cast<float>(options_.beta1);
  f.beta2 = static_cast<float>(options_.beta2);
  // Taken in double: in float 1 - 0.999 is off by 5e-5 of itself.
  f.rest1 = static_cast<float>(1 - options_.beta1);
  f.rest2 = static_cast<float>(1 - options_.beta2);
  f.correction1 = static_cast<float>(1 / (1 - std::pow(options_.beta1, static_cast<double>(steps_))));
  f.correction2 = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, static_cast<double>(steps_))));
  f.epsilon = static_cast<float>(options_.epsilon);
  f.momentum = static_cast<float>(options_.momentum);
  f.first_step = steps_ == 1;
  if (options_.clip_norm > 0)
    f.clip = static_cast<float>(clip_factor(options_.clip_norm, gradient_norm(parameters, gradients)));
  const double kept = average_kept(options_.ema, steps_);
  f.average_old = static_cast<float>(kept);
  f.average_new = static_cast<float>(1 - kept);
  for (size_t k = 0; k < gradients.size(); ++k) {
    const Parameter& p = parameters.list()[k];
    if (!p.trained || gradients[k] == nullptr) continue;
    const auto part = [&](Tensor& t) { return t.defined() ? t.data<float>() + p.offset : nullptr; };
    const Slices slices{parameters.data(p), gradients[k], part(first_), part(second_), part(average_)};
    parallel_for(p.size, kChunk, [&](int64_t b, int64_t e) {
      if (sgd) {
        sgd_chunk(f, slices, b, e);
      } else {
        adam_chunk(f, slices, b, e);
      }
    });
  }
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
