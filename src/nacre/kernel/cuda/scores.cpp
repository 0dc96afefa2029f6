#include "nacre/kernel/cuda/scores.h"

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int kScoreThreads = 256;

constexpr const char* kTypes = R"(
typedef long long i64;
typedef unsigned u32;
#if MULTIPLE
typedef unsigned char Label;
#else
typedef int Label;
#endif
)";

constexpr const char* kSum = R"(// Leaves the sum of one double of each thread at `place`, added in a fixed order.
__device__ void leave_sum(double value, double* __restrict__ place) {
  __shared__ double sums[THREADS];
  __syncthreads();
  sums[threadIdx.x] = value;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *place = sums[0];
}
)";

// Counts over the rows of a piece. LANES threads share a row.
constexpr const char* kRows = R"(
${ENTRY} {
  const ScorePiece piece = pieces[blockIdx.x];
  const int lane = threadIdx.x % LANES;
  long long first = 0, second = 0, third = 0;
  for (long long i = piece.begin + threadIdx.x / LANES; i < piece.end; i += THREADS / LANES) {
    const long long row = rows[i];
    const long long at = by_row ? row : i;
    const float* __restrict__ x = logits + row * classes;
#if MULTIPLE
    for (long long c = lane; c < classes; c += LANES) {
      const int yes = x[c] > 0.0f ? 1 : 0;
      const int truth = labels[at * classes + c] != 0 ? 1 : 0;
      first += yes & truth;
      second += yes;
      third += truth;
    }
#else
    const int label = labels[at];
    if (label < 0) continue;
    int beaten = label >= classes ? 1 : 0;
    const float own = beaten ? 0.0f : x[label];
    // Comparisons with NaN are false: such a row is beaten.
    for (long long c = lane; c < classes; c += LANES) {
      const float other = x[c];
      if (!(c < label ? own > other : own >= other)) beaten = 1;
    }
    const unsigned group = LANES == 32 ? 0xffffffffu : ((1u << (LANES % 32)) - 1u) << (threadIdx.x % 32 / LANES * LANES);
    for (int d = LANES / 2; d > 0; d /= 2) beaten |= __shfl_xor_sync(group, beaten, d);
    if (lane == 0) {
      first += 1 - beaten;
      second += 1;
    }
#endif
  }
  double* place = places + blockIdx.x * 3LL;
  leave_sum((double)first, place);
  leave_sum((double)second, place + 1);
  leave_sum((double)third, place + 2);
}
)";

// A thread works on a whole row and adds its terms in double precision, in the order of the
// classes, as the host does.
constexpr const char* kLoss = R"(
${ENTRY} {
  const ScorePiece piece = pieces[blockIdx.x];
  double sum = 0.0;
  long long counted = 0;
  for (long long i = piece.begin + threadIdx.x; i < piece.end; i += THREADS) {
    const long long row = rows[i];
    const long long at = by_row ? row : i;
    const float* __restrict__ x = logits + row * classes;
    double loss = 0.0;
#if MULTIPLE
    for (long long c = 0; c < classes; ++c) {
      const double z = x[c];
      loss += log1p(exp(-fabs(z))) + fmax(z, 0.0) - (labels[at * classes + c] != 0 ? z : 0.0);
    }
    loss /= (double)classes;
#else
    const int label = labels[at];
    if (label < 0) continue;
    double top = x[0];
    for (long long c = 1; c < classes; ++c) top = fmax(top, (double)x[c]);
    for (long long c = 0; c < classes; ++c) loss += exp((double)x[c] - top);
    // A label that is no class makes the loss not a number: it cannot pass unseen.
    loss = label < classes ? log(loss) + top - (double)x[label] : __longlong_as_double(0x7ff8000000000000LL);
#endif
    sum += loss;
    ++counted;
  }
  double* place = places + blockIdx.x * 3LL;
  leave_sum(sum, place);
  leave_sum((double)counted, place + 1);
  leave_sum(0.0, place + 2);
}
)";

constexpr const char* kTotals = R"(
${ENTRY} {
  const long long begin = first[blockIdx.x], end = first[blockIdx.x + 1];
  double sums[3] = {0.0, 0.0, 0.0};
  for (long long i = begin + threadIdx.x; i < end; i += THREADS) {
    for (int k = 0; k < 3; ++k) sums[k] += places[i * 3 + k];
  }
  for (int k = 0; k < 3; ++k) leave_sum(sums[k], out + blockIdx.x * 3LL + k);
}
)";

template <class Params>
Source score_source(const char* name, ScoreLabels labels, int lanes, const char* body) {
  const int64_t multiple = labels == ScoreLabels::multiple ? 1 : 0;
  return Entry(name).takes<Params>().source(
      defines({{"THREADS", kScoreThreads}, {"MULTIPLE", multiple}, {"LANES", lanes}}) + kTypes +
          struct_text<ScorePiece>() + kSum + body,
      kScoreThreads);
}

static_assert(kScoreSums == 3, "the sources above count three");

}  // namespace

Source score_rows(ScoreLabels labels, int64_t classes) {
  return score_source<ScoreParams>("score_rows", labels, classes <= 64 ? 8 : 32, kRows);
}

Source score_loss(ScoreLabels labels) { return score_source<ScoreParams>("score_loss", labels, 1, kLoss); }

Source score_totals() { return score_source<ScoreTotalsParams>("score_totals", ScoreLabels::single, 1, kTotals); }

}  // namespace nacre::cuda
