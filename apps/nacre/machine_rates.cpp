#include "machine_rates.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gemm.h"
#include "nacre/tensor/tensor.h"

namespace nacre::cli {
namespace {

template <class Work>
double best_seconds(int repeats, Work work) {
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const double start = now_seconds();
    work();
    best = std::min(best, now_seconds() - start);
  }
  return best;
}

double read_bandwidth() {
  constexpr int64_t words = 32 << 20;  // 256 MiB, larger than any cache
  Buffer<uint64_t> memory(words);
  parallel_for(words, 1 << 16,
               [&](int64_t b, int64_t e) { std::fill(memory.data() + b, memory.data() + e, uint64_t{1}); });
  std::vector<uint64_t> sums(words >> 16);
  const double seconds = best_seconds(5, [&] {
    parallel_for(words, 1 << 16, [&](int64_t b, int64_t e) {
      uint64_t parts[8] = {};
      for (int64_t i = b; i < e; i += 8) {
        for (int64_t l = 0; l < 8; ++l) parts[l] += memory[i + l];
      }
      sums[b >> 16] = std::accumulate(parts, parts + 8, uint64_t{0});
    });
  });
  // The sums must be used; otherwise the compiler could drop the reads.
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0}) == 0 ? 0 : words * 8 / seconds;
}

double gemm_rate() {
  constexpr int64_t m = 16384;
  constexpr int64_t n = 256;
  Tensor a(DType::f32, {m, n});
  Tensor b(DType::f32, {n, n});
  Tensor c(DType::f32, {m, n});
  std::fill_n(a.data<float>(), a.size(), 0.5F);
  std::fill_n(b.data<float>(), b.size(), 0.25F);
  cpu::gemm_warm_up();
  const double seconds =
      best_seconds(8, [&] { cpu::gemm_nn(m, n, n, a.data<float>(), n, b.data<float>(), n, c.data<float>(), n); });
  return 2.0 * m * n * n / seconds;
}

}  // namespace

MachineRates measure_rates() { return {read_bandwidth(), gemm_rate()}; }

}  // namespace nacre::cli
