#include <algorithm>
#include <ctime>

#include "libraries.h"
#include "nacre/base/parallel.h"

namespace nacre::bench {
namespace {

// Twelve independent chains cover the latency of a multiply-add. The code is assembly, because a
// compiler that keeps one of the chains in memory would measure something else.
constexpr int kChains = 12;
#define NACRE_CHAINS(reg)                                                            \
  "vfmadd231ps " reg "0, " reg "1, " reg "2\n vfmadd231ps " reg "0, " reg "1, " reg  \
  "3\n"                                                                              \
  "vfmadd231ps " reg "0, " reg "1, " reg "4\n vfmadd231ps " reg "0, " reg "1, " reg  \
  "5\n"                                                                              \
  "vfmadd231ps " reg "0, " reg "1, " reg "6\n vfmadd231ps " reg "0, " reg "1, " reg  \
  "7\n"                                                                              \
  "vfmadd231ps " reg "0, " reg "1, " reg "8\n vfmadd231ps " reg "0, " reg "1, " reg  \
  "9\n"                                                                              \
  "vfmadd231ps " reg "0, " reg "1, " reg "10\n vfmadd231ps " reg "0, " reg "1, " reg \
  "11\n"                                                                             \
  "vfmadd231ps " reg "0, " reg "1, " reg "12\n vfmadd231ps " reg "0, " reg "1, " reg "13\n"
#define NACRE_CLOBBERS \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13"

void chains(bool avx512, int64_t rounds) {
  if (avx512) {
    for (int64_t r = 0; r < rounds; ++r) asm volatile(NACRE_CHAINS("%%zmm")::: NACRE_CLOBBERS);
  } else {
    for (int64_t r = 0; r < rounds; ++r) asm volatile(NACRE_CHAINS("%%ymm")::: NACRE_CLOBBERS);
  }
}

}  // namespace

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double measure_peak() {
  const bool avx512 = __builtin_cpu_supports("avx512f");
  constexpr int64_t kRounds = 1000000;
  const double operations = 2.0 * (avx512 ? 16 : 8) * kChains * kRounds;
  double best = 0;
  for (int repeat = 0; repeat < 40; ++repeat) {
    const double start = cpu_seconds();
    chains(avx512, kRounds);
    best = std::max(best, operations / (cpu_seconds() - start));
  }
  return best;
}

}  // namespace nacre::bench
