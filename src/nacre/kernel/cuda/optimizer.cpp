#include "nacre/kernel/cuda/optimizer.h"

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr const char* kStep = R"(
struct Piece { const float* gradient; long long offset, size; };
struct Numbers {
  float lr, decay, decoupled, beta1, beta2, rest1, rest2, correction1, correction2, epsilon, momentum;
  int first_step;
};

extern "C" __global__ void __launch_bounds__(THREADS) optimizer_step(
    const Numbers* __restrict__ numbers, const Piece* __restrict__ pieces, float* __restrict__ values,
    float* __restrict__ first, float* __restrict__ second) {
  const Numbers f = *numbers;
  const Piece piece = pieces[blockIdx.x];
  for (long long j = threadIdx.x; j < piece.size; j += THREADS) {
    const long long i = piece.offset + j;
    const float w = values[i];
    float grad = piece.gradient[j] + f.decay * w;
#if SGD
    if (first) {
      if (!f.first_step) grad = f.momentum * first[i] + grad;
      first[i] = grad;
    }
    values[i] = w - f.lr * grad;
#else
    const float m = f.beta1 * first[i] + f.rest1 * grad;
    const float v = f.beta2 * second[i] + f.rest2 * grad * grad;
    first[i] = m;
    second[i] = v;
    values[i] = w * f.decoupled - f.lr * f.correction1 * m / (sqrtf(v) * f.correction2 + f.epsilon);
#endif
  }
}
)";

}  // namespace

Source optimizer_step(bool sgd) {
  Source s;
  s.name = "optimizer_step";
  s.threads = 256;
  s.text = defines({{"THREADS", s.threads}, {"SGD", sgd ? 1 : 0}}) + kStep;
  return s;
}

}  // namespace nacre::cuda
