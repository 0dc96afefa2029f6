#include "nacre/kernel/cuda/moments.h"

#include <algorithm>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int kMomentThreads = 256;
constexpr int64_t kRunRows = 512;
constexpr int64_t kMostRuns = 256;

// The threads of a block form LANES lanes of 32 columns. The function adds the sums of a column
// over the lanes in order and returns the result in lane 0.
constexpr const char* kAcrossLanes = R"(
#define LANES (THREADS / 32)
__device__ double across_lanes(double value) {
  __shared__ double sums[THREADS];
  __syncthreads();
  sums[threadIdx.x] = value;
  __syncthreads();
  double sum = 0.0;
  if (threadIdx.x < 32) {
    for (int lane = 0; lane < LANES; ++lane) sum += sums[lane * 32 + threadIdx.x];
  }
  return sum;
}
)";

constexpr const char* kColumnSums = R"(
${ENTRY} {
  const long long run = blockIdx.x / TILES;
  const int column = (int)(blockIdx.x % TILES) * 32 + (threadIdx.x & 31);
  const long long begin = run * rows_of_run;
  const long long end = begin + rows_of_run < rows ? begin + rows_of_run : rows;
  const bool inside = column < WIDTH;
  double first = 0.0, second = 0.0;
  const float center = KIND != 0 && inside ? mean[column] : 0.0f;
  if (inside) {
#pragma unroll 4
    for (long long r = begin + (threadIdx.x >> 5); r < end; r += LANES) {
      const float v = x[r * WIDTH + column];
      if (KIND == 0) first += (double)v;
      if (KIND == 1) {
        const double d = (double)v - (double)center;
        first += d * d;
      }
      if (KIND == 2) {
        const double gradient = g[r * WIDTH + column];
        first += gradient;
        second += gradient * (double)(v - center);
      }
    }
  }
  first = across_lanes(first);
  if (KIND == 2) second = across_lanes(second);
  if (threadIdx.x < 32 && inside) {
    double* place = places + run * (KIND == 2 ? 2 : 1) * WIDTH;
    place[column] = first;
    if (KIND == 2) place[WIDTH + column] = second;
  }
}
)";

// Adds the sums of a column over the runs. Each lane adds its share of them.
constexpr const char* kRunSum = R"(
__device__ double sum_of_places(const double* __restrict__ places, long long runs, int stride, int column) {
  double sum = 0.0;
  if (column < stride) {
    for (long long run = threadIdx.x >> 5; run < runs; run += LANES) sum += places[run * stride + column];
  }
  return across_lanes(sum);
}
)";

constexpr const char* kColumnMean = R"(
${ENTRY} {
  const int column = (int)blockIdx.x * 32 + (threadIdx.x & 31);
  const double sum = sum_of_places(places, runs, WIDTH, column);
  if (threadIdx.x < 32 && column < WIDTH) out[column] = (float)(sum / (rows == 0 ? 1.0 : (double)rows));
}
)";

// Computes dx = (g - mean(g) - (x - mean) · slope) / σ with slope = mean(g · (x - mean)) / σ².
constexpr const char* kGradTerms = R"(
${ENTRY} {
  const int column = (int)blockIdx.x * 32 + (threadIdx.x & 31);
  const bool inside = column < WIDTH;
  const double sum_g = sum_of_places(places, runs, 2 * WIDTH, inside ? column : 2 * WIDTH);
  const double sum_gx = sum_of_places(places, runs, 2 * WIDTH, inside ? WIDTH + column : 2 * WIDTH);
  if (threadIdx.x >= 32 || !inside) return;
  const double n = rows == 0 ? 1.0 : (double)rows;
  const double rstd = 1.0 / sqrt((double)moments[WIDTH + column] + (double)epsilon);
  out[column] = (float)rstd;
  out[WIDTH + column] = (float)(sum_g / n);
  out[2 * WIDTH + column] = (float)(sum_gx * rstd * rstd / n);
}
)";

constexpr const char* kStandardizeGrad = R"(
${ENTRY} {
  const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  if (i >= elements) return;
  const int column = (int)(i % WIDTH);
  out[i] = terms[column] * (g[i] - terms[WIDTH + column] - (x[i] - moments[column]) * terms[2 * WIDTH + column]);
}
)";

template <class Params>
Source moment_source(const char* name, int64_t width, int64_t kind, std::initializer_list<const char*> parts) {
  std::string text =
      defines({{"THREADS", kMomentThreads}, {"WIDTH", width}, {"TILES", moments_tiles(width)}, {"KIND", kind}});
  for (const char* part : parts) text += part;
  return Entry(name).takes<Params>().source(text, kMomentThreads);
}

}  // namespace

int64_t moments_rows_of_run(int64_t rows) { return std::max(kRunRows, (rows + kMostRuns - 1) / kMostRuns); }

int64_t moments_runs(int64_t rows) {
  const int64_t each = moments_rows_of_run(rows);
  return std::max<int64_t>(1, (rows + each - 1) / each);
}

Source column_sums(ColumnSums kind, int64_t width) {
  return moment_source<ColumnSumsParams>("column_sums", width, static_cast<int64_t>(kind), {kAcrossLanes, kColumnSums});
}

Source column_mean(int64_t width) {
  return moment_source<ColumnMeanParams>("column_mean", width, 0, {kAcrossLanes, kRunSum, kColumnMean});
}

Source standardize_grad_terms(int64_t width) {
  return moment_source<StandardizeTermsParams>("grad_terms", width, 0, {kAcrossLanes, kRunSum, kGradTerms});
}

Source standardize_grad(int64_t width) {
  return moment_source<StandardizeGradParams>("standardize_grad", width, 0, {kStandardizeGrad});
}

}  // namespace nacre::cuda
