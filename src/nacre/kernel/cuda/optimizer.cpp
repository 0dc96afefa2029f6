#include "nacre/kernel/cuda/optimizer.h"

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr const char* kTypes = R"(
struct Piece { const float* gradient; long long offset, size; };
struct Numbers {
  float lr, decay, decoupled, beta1, beta2, rest1, rest2, correction1, correction2, epsilon, momentum;
  int first_step;
  float clip_norm, average_old, average_new;
};
)";

// The sum of one double of each thread, in a fixed order; valid in thread 0.
constexpr const char* kBlockSum = R"(
__device__ double block_sum(double value) {
  __shared__ double sums[THREADS];
  sums[threadIdx.x] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}
)";

constexpr const char* kSquares = R"(
extern "C" __global__ void __launch_bounds__(THREADS) gradient_squares(const Piece* __restrict__ pieces,
                                                                       double* __restrict__ slots) {
  const Piece piece = pieces[blockIdx.x];
  double sum = 0.0;
  for (long long j = threadIdx.x; j < piece.size; j += THREADS) {
    const double g = piece.gradient[j];
    sum += g * g;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) slots[blockIdx.x] = sum;
}
)";

constexpr const char* kFactor = R"(
extern "C" __global__ void __launch_bounds__(THREADS) gradient_factor(
    const Numbers* __restrict__ numbers, const double* __restrict__ slots, long long count,
    float* __restrict__ factor) {
  double sum = 0.0;
  for (long long i = threadIdx.x; i < count; i += THREADS) sum += slots[i];
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  const double wanted = numbers->clip_norm / (sqrt(sum) + 1e-6);
  *factor = wanted < 1.0 ? (float)wanted : 1.0f;
}
)";

constexpr const char* kStep = R"(
extern "C" __global__ void __launch_bounds__(THREADS) optimizer_step(
    const Numbers* __restrict__ numbers, const Piece* __restrict__ pieces, float* __restrict__ values,
    float* __restrict__ first, float* __restrict__ second, float* __restrict__ average,
    const float* __restrict__ factor) {
  const Numbers f = *numbers;
  const float clip = factor ? *factor : 1.0f;
  const Piece piece = pieces[blockIdx.x];
  for (long long j = threadIdx.x; j < piece.size; j += THREADS) {
    const long long i = piece.offset + j;
    const float w = values[i];
    float grad = clip * piece.gradient[j] + f.decay * w;
#if SGD
    if (first) {
      if (!f.first_step) grad = f.momentum * first[i] + grad;
      first[i] = grad;
    }
    const float changed = w - f.lr * grad;
#else
    const float m = f.beta1 * first[i] + f.rest1 * grad;
    const float v = f.beta2 * second[i] + f.rest2 * grad * grad;
    first[i] = m;
    second[i] = v;
    const float changed = w * f.decoupled - f.lr * f.correction1 * m / (sqrtf(v) * f.correction2 + f.epsilon);
#endif
    values[i] = changed;
    if (average) average[i] = f.average_old * average[i] + f.average_new * changed;
  }
}
)";

}  // namespace

Source optimizer_step(bool sgd) {
  Source s;
  s.name = "optimizer_step";
  s.threads = 256;
  s.text = defines({{"THREADS", s.threads}, {"SGD", sgd ? 1 : 0}}) + kTypes + kStep;
  return s;
}

Source gradient_squares() {
  Source s;
  s.name = "gradient_squares";
  s.threads = 256;
  s.text = defines({{"THREADS", s.threads}}) + kTypes + kBlockSum + kSquares;
  return s;
}

Source gradient_factor() {
  Source s;
  s.name = "gradient_factor";
  s.threads = 256;
  s.text = defines({{"THREADS", s.threads}}) + kTypes + kBlockSum + kFactor;
  return s;
}

}  // namespace nacre::cuda
