#include "nacre/kernel/cpu/optimizer.h"

#include <cmath>

#include "nacre/base/parallel.h"

namespace nacre::cpu {
namespace {

constexpr int64_t kChunk = 1 << 14;

void average_chunk(const OptimizerNumbers& f, const float* w, float* average, int64_t b, int64_t e) {
  if (average == nullptr) return;
  for (int64_t i = b; i < e; ++i) average[i] = f.average_old * average[i] + f.average_new * w[i];
}

void adam_chunk(const OptimizerNumbers& f, float clip, const OptimizedParameter& p, int64_t b, int64_t e) {
  const auto [w, g, m, v, average, size] = p;
  for (int64_t i = b; i < e; ++i) {
    const float grad = clip * g[i] + f.decay * w[i];
    m[i] = f.beta1 * m[i] + f.rest1 * grad;
    v[i] = f.beta2 * v[i] + f.rest2 * grad * grad;
    const float denominator = std::sqrt(v[i]) * f.correction2 + f.epsilon;
    w[i] = w[i] * f.decoupled - f.lr * f.correction1 * m[i] / denominator;
  }
  average_chunk(f, w, average, b, e);
}

void sgd_chunk(const OptimizerNumbers& f, float clip, const OptimizedParameter& p, int64_t b, int64_t e) {
  const auto [w, g, m, v, average, size] = p;
  for (int64_t i = b; i < e; ++i) {
    float grad = clip * g[i] + f.decay * w[i];
    if (m != nullptr) grad = m[i] = f.first_step != 0 ? grad : f.momentum * m[i] + grad;
    w[i] -= f.lr * grad;
  }
  average_chunk(f, w, average, b, e);
}

}  // namespace

void adam_step(const OptimizerNumbers& numbers, float clip, const OptimizedParameter& p) {
  parallel_for(p.size, kChunk, [&](int64_t b, int64_t e) { adam_chunk(numbers, clip, p, b, e); });
}

void sgd_step(const OptimizerNumbers& numbers, float clip, const OptimizedParameter& p) {
  parallel_for(p.size, kChunk, [&](int64_t b, int64_t e) { sgd_chunk(numbers, clip, p, b, e); });
}

double add_squares(double sum, const float* values, int64_t size, std::vector<double>& chunks) {
  chunks.assign(static_cast<size_t>((size + kChunk - 1) / kChunk), 0);
  parallel_for(size, kChunk, [&](int64_t b, int64_t e) {
    double& chunk = chunks[static_cast<size_t>(b / kChunk)];
    for (int64_t i = b; i < e; ++i) chunk += static_cast<double>(values[i]) * values[i];
  });
  for (const double chunk : chunks) sum += chunk;
  return sum;
}

}  // namespace nacre::cpu
