#include "nacre/kernel/cuda/argmax.h"

#include <algorithm>
#include <bit>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int kThreads = 256;

int64_t group_of(int64_t classes) {
  return std::min<int64_t>(32,
                           static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, classes)))));
}

// A class beats another if its score is larger, or equal and it comes first. A row with a score that is not a number
// has no prediction: -1.
constexpr const char* kArgmax = R"(
extern "C" __global__ void __launch_bounds__(THREADS) argmax(const float* __restrict__ x, int* __restrict__ out,
                                                             long long rows) {
  const long long r = (long long)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  const int lane = threadIdx.x % GROUP;
  int best = CLASSES;
  float score = 0.0f;
  bool known = true;
  if (r < rows) {
    for (int c = lane; c < CLASSES; c += GROUP) {
      const float v = x[r * CLASSES + c];
      known = known && v == v;
      if (best == CLASSES || v > score) {
        best = c;
        score = v;
      }
    }
  }
  if (!known) best = -1;
  for (int step = GROUP / 2; step > 0; step /= 2) {
    const float other_score = __shfl_xor_sync(0xffffffffu, score, step);
    const int other = __shfl_xor_sync(0xffffffffu, best, step);
    if (best < 0 || other < 0) {
      best = -1;
    } else if (other < CLASSES && (best == CLASSES || other_score > score || (other_score == score && other < best))) {
      best = other;
      score = other_score;
    }
  }
  if (r < rows && lane == 0) out[r] = best;
}
)";

}  // namespace

int64_t argmax_rows_of_block(int64_t classes) { return kThreads / group_of(classes); }

Source argmax(int64_t classes) {
  Source s;
  s.name = "argmax";
  s.text = defines({{"THREADS", kThreads}, {"CLASSES", classes}, {"GROUP", group_of(classes)}}) + kArgmax;
  s.threads = kThreads;
  return s;
}

}  // namespace nacre::cuda
