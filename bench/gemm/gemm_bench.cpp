// Prints for each library and shape: GFLOP/s by the wall clock (median, slowest and fastest of
// several repeats), GFLOP/s per core by processor time (median), and the latter as a share of a
// core's multiply-add peak. On a machine that is not idle, compare processor times.
// Usage: gemm_bench [--threads N] [--repeats N] [--only LIBRARY] [--rows N] [--shapes N]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "libraries.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre::bench {
namespace {

struct Options {
  int threads = 2;
  int repeats = 15;
  int64_t rows = 169343;
  int shapes = 100;  // use only this many shapes, from the first on
  std::string only;
};

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], Free>;

// Returns random values in memory aligned to cache lines, as the engine's arena is.
Floats random_values(int64_t count, uint64_t seed) {
  const auto bytes = (static_cast<size_t>(count) * sizeof(float) + 63) / 64 * 64;
  Floats values(static_cast<float*>(std::aligned_alloc(64, bytes)));
  parallel_for(count, 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      values[static_cast<size_t>(i)] = uniform01(philox(seed, 0, static_cast<uint64_t>(i))[0]) - 0.5f;
    }
  });
  return values;
}

const char* name_of(Product product) { return product == Product::nn ? "nn" : product == Product::nt ? "nt" : "tn"; }

struct Data {
  explicit Data(Product product, int64_t M, int64_t N, int64_t K)
      : a(random_values(M * K, 1)),
        b(random_values(product == Product::tn ? M * N : K * N, 2)),
        c(random_values(product == Product::tn ? K * N : M * N, 3)),
        problem{product, M, N, K, a.get(), b.get(), c.get()} {}

  // Compares a few elements with a sum in double precision, so that a wrong product is never timed.
  bool right() const {
    const Problem& p = problem;
    const int64_t rows = p.product == Product::tn ? p.K : p.M;
    const int64_t depth = p.product == Product::tn ? p.M : p.K;
    for (int64_t i = 0; i < 50; ++i) {
      const int64_t r = i * 7919 % rows;
      const int64_t n = i * 104729 % p.N;
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double x = p.product == Product::tn ? p.A[k * p.K + r] : p.A[r * p.K + k];
        sum += x * (p.product == Product::nt ? p.B[n * p.K + k] : p.B[k * p.N + n]);
      }
      if (!(std::abs(sum - p.C[r * p.N + n]) < 1e-5 * std::sqrt(static_cast<double>(depth)) + 1e-6)) return false;
    }
    return true;
  }

  Floats a, b, c;
  Problem problem;
};

void report(const std::string& library, Data& data, void (*multiply)(const Problem&), int inner, const Options& options,
            double peak) {
  const Problem& p = data.problem;
  std::printf("%-13s %s %7lld %4lld %4lld  ", library.c_str(), name_of(p.product), static_cast<long long>(p.M),
              static_cast<long long>(p.K), static_cast<long long>(p.N));
  std::fill_n(p.C, p.N * (p.product == Product::tn ? p.K : p.M), -1.0f);
  multiply(p);
  if (!data.right()) {
    std::printf("wrong or not offered\n");
    return;
  }
  std::vector<double> rates;
  std::vector<double> core_rates;
  const double work = 2e-9 * static_cast<double>(p.M * p.N * p.K) * inner;
  for (int i = 0; i < options.repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_seconds();
    for (int j = 0; j < inner; ++j) multiply(p);
    core_rates.push_back(work / (cpu_seconds() - cpu_start));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    rates.push_back(work / seconds.count());
  }
  std::sort(rates.begin(), rates.end());
  std::sort(core_rates.begin(), core_rates.end());
  const double core = core_rates[core_rates.size() / 2];
  std::printf("%7.1f  [%6.1f, %6.1f]  core %6.1f = %3.0f %%\n", rates[rates.size() / 2], rates.front(), rates.back(),
              core, 100 * core / peak);
  std::fflush(stdout);
}

void run(const Options& options) {
  set_num_threads(options.threads);
  const std::vector<Library> all = libraries();
  const double peak = measure_peak() * 1e-9;
  std::printf("peak of a core: %.1f GFLOP/s\nwhole matrices on %d threads\n", peak, options.threads);
  constexpr int64_t kShapes[][2] = {{128, 256}, {256, 256}, {256, 40}, {602, 256}, {1433, 16}, {256, 47}, {8, 64}};
  int left = options.shapes;
  for (const auto& [K, N] : kShapes) {
    if (left-- <= 0) break;
    for (const Product product : {Product::nn, Product::nt, Product::tn}) {
      Data data(product, options.rows, N, K);
      for (const Library& library : all) {
        if (library.whole == nullptr || (!options.only.empty() && library.name != options.only)) continue;
        report(library.name, data, library.whole, 1, options, peak);
      }
    }
  }
  std::printf("tiles on one thread\n");
  for (const int64_t M : {32, 64, 128, 512}) {
    for (const Product product : {Product::nn, Product::nt, Product::tn}) {
      Data data(product, M, 256, 256);
      for (const Library& library : all) {
        if (!options.only.empty() && library.name.rfind(options.only, 0) != 0) continue;
        report(library.name, data, library.tile, static_cast<int>(8192 / M), options, peak);
      }
    }
  }
}

}  // namespace
}  // namespace nacre::bench

int main(int argc, char** argv) {
  // OpenMP, which oneDNN uses, reads this variable when the program is loaded, so the program
  // starts itself again with it.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
  }
  nacre::bench::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) options.threads = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--repeats") == 0) options.repeats = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--rows") == 0) options.rows = std::atoll(argv[i + 1]);
    if (std::strcmp(argv[i], "--shapes") == 0) options.shapes = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--only") == 0) options.only = argv[i + 1];
  }
  nacre::bench::run(options);
  return 0;
}
