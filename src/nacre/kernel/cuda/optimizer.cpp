#include "nacre/kernel/cuda/optimizer.h"

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

std::string types_text() { return "\n" + struct_text<OptimizerPiece>() + struct_text<OptimizerNumbers>(); }

// Returns in thread 0 the sum of one double of each thread of the block, added in a fixed order.
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
${ENTRY} {
  const OptimizerPiece piece = pieces[blockIdx.x];
  double sum = 0.0;
  for (long long j = threadIdx.x; j < piece.size; j += THREADS) {
    const double g = piece.gradient[j];
    sum += g * g;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) places[blockIdx.x] = sum;
}
)";

constexpr const char* kFactor = R"(
${ENTRY} {
  double sum = 0.0;
  for (long long i = threadIdx.x; i < count; i += THREADS) sum += places[i];
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  const double wanted = numbers->clip_norm / (sqrt(sum) + 1e-6);
  *factor = wanted < 1.0 ? (float)wanted : 1.0f;
}
)";

constexpr const char* kStep = R"(
${ENTRY} {
  const OptimizerNumbers f = *numbers;
  const float clip = factor ? *factor : 1.0f;
  const OptimizerPiece piece = pieces[blockIdx.x];
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

constexpr int kOptimizerThreads = 256;

}  // namespace

Source optimizer_step(bool sgd) {
  return Entry("optimizer_step")
      .takes<OptimizerStepParams>()
      .source(defines({{"THREADS", kOptimizerThreads}, {"SGD", sgd ? 1 : 0}}) + types_text() + kStep,
              kOptimizerThreads);
}

Source gradient_squares() {
  return Entry("gradient_squares")
      .takes<GradientSquaresParams>()
      .source(defines({{"THREADS", kOptimizerThreads}}) + types_text() + kBlockSum + kSquares, kOptimizerThreads);
}

Source gradient_factor() {
  return Entry("gradient_factor")
      .takes<GradientFactorParams>()
      .source(defines({{"THREADS", kOptimizerThreads}}) + types_text() + kBlockSum + kFactor, kOptimizerThreads);
}

}  // namespace nacre::cuda
