#include "nacre/kernel/cuda/loss.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int64_t kBlockRows = 1024;
constexpr int64_t kMostBlocks = 1024;

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

// A label that is no class makes the loss NaN, so that it is noticed.
constexpr const char* kNllTerm = R"(
typedef int Label;
__device__ double term(const float* __restrict__ x, const Label* __restrict__ label,
                       const float* __restrict__ weight, long long r) {
  const int l = label[r];
  const float w = weight[r];
  if (l < 0 || w == 0.0f) return 0.0;
  if (l >= CLASSES) return __longlong_as_double(0x7ff8000000000000LL);
  double value = x[r * CLASSES + l];
#if SMOOTH
  double all = 0.0;
  for (long long i = r * CLASSES; i < (r + 1) * CLASSES; ++i) all += x[i];
  value = (1.0 - SMOOTHING) * value + SMOOTHING * all / CLASSES;
#endif
  return -((double)w * value);
}
)";

// Computes log(1 + e^x) - t · x, written so that a large |x| neither overflows nor cancels.
constexpr const char* kBceTerm = R"(
typedef unsigned char Label;
__device__ double term(const float* __restrict__ x, const Label* __restrict__ target,
                       const float* __restrict__ weight, long long r) {
#if WEIGHT_OF_EACH
  const float w = 1.0f;
#else
  const float w = weight[r];
  if (w == 0.0f) return 0.0;
#endif
  double row = 0.0;
  for (long long i = r * CLASSES; i < (r + 1) * CLASSES; ++i) {
    const double v = x[i];
    const double loss = fmax(v, 0.0) + log1p(exp(-fabs(v))) - (target[i] != 0 ? 1.0 - SMOOTHING / 2 : SMOOTHING / 2) * v;
#if WEIGHT_OF_EACH
    if (weight[i] != 0.0f) row += (double)weight[i] * loss;
#else
    row += loss;
#endif
  }
  return (double)w * row;
}
)";

constexpr const char* kSum = R"(
${ENTRY} {
  const long long begin = blockIdx.x * rows_of_block;
  const long long end = begin + rows_of_block < rows ? begin + rows_of_block : rows;
  double sum = 0.0;
  for (long long r = begin + threadIdx.x; r < end; r += THREADS) sum += term(x, label, weight, r);
  sum = block_sum(sum);
  if (threadIdx.x == 0) places[blockIdx.x] = sum;
}
)";

constexpr const char* kTotal = R"(
${ENTRY} {
  double sum = 0.0;
  for (long long i = threadIdx.x; i < count; i += THREADS) sum += places[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *out = (float)sum;
}
)";

constexpr const char* kNllGrad = R"(
typedef int Label;
${ENTRY} {
  const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (i >= elements) return;
  const long long r = i / CLASSES;
  const int l = label[r];
#if SMOOTH
  const float each = (float)(SMOOTHING / CLASSES), own = (float)(1.0 - SMOOTHING);
  const float share = l < 0 ? 0.0f : l == (int)(i - r * CLASSES) ? own + each : each;
  out[i] = share == 0.0f ? 0.0f : -*gradient * weight[r] * share;
#else
  out[i] = l == (int)(i - r * CLASSES) ? -*gradient * weight[r] : 0.0f;
#endif
}
)";

constexpr const char* kBceGrad = R"(
typedef unsigned char Label;
${ENTRY} {
  const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (i >= elements) return;
  const float scale = *gradient * weight[WEIGHT_OF_EACH ? i : i / CLASSES];
  out[i] = scale == 0.0f ? 0.0f : scale * (1.0f / (1.0f + expf(-x[i])) - (label[i] != 0 ? (float)(1.0 - SMOOTHING / 2) : (float)(SMOOTHING / 2)));
}
)";

constexpr int kLossThreads = 256;

template <class Params>
Source source(const char* name, const LossShape& loss, std::initializer_list<const char*> parts) {
  std::string text = defines({{"THREADS", kLossThreads},
                              {"CLASSES", loss.classes},
                              {"SMOOTH", loss.smoothing > 0 ? 1 : 0},
                              {"WEIGHT_OF_EACH", loss.weight_of_each ? 1 : 0}});
  std::array<char, 40> number{};
  std::snprintf(number.data(), number.size(), "%.17g", loss.smoothing);
  text += "#define SMOOTHING ((double)" + std::string(number.data()) + ")\n";
  for (const char* part : parts) text += part;
  return Entry(name).takes<Params>().source(text, kLossThreads);
}

}  // namespace

int64_t loss_rows_of_block(int64_t rows) { return std::max(kBlockRows, (rows + kMostBlocks - 1) / kMostBlocks); }

int64_t loss_blocks(int64_t rows) {
  const int64_t each = loss_rows_of_block(rows);
  return (rows + each - 1) / each;
}

Source loss_sum(const LossShape& loss) {
  return source<LossSumParams>("loss_sum", loss, {kBlockSum, loss.kind == LossKind::nll ? kNllTerm : kBceTerm, kSum});
}

Source loss_total() { return source<LossTotalParams>("loss_total", {.classes = 1}, {kBlockSum, kTotal}); }

Source loss_grad(const LossShape& loss) {
  return source<LossGradParams>("loss_grad", loss, {loss.kind == LossKind::nll ? kNllGrad : kBceGrad});
}

}  // namespace nacre::cuda
