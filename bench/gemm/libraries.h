// The matrix products under test. All are called in the way the engine calls them: blocks of rows,
// one thread per call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nacre::bench {

// nn: C[M,N] = A[M,K] · B[K,N]   nt: C[M,N] = A[M,K] · B[N,K]ᵀ   tn: C[K,N] = A[M,K]ᵀ · B[M,N]
enum class Product { nn, nt, tn };

struct Problem {
  Product product;
  int64_t M, N, K;
  const float* A;
  const float* B;
  float* C;
};

struct Library {
  std::string name;
  // Runs on all threads; null for variants that have only tiles.
  void (*whole)(const Problem& problem);
  void (*tile)(const Problem& problem);  // runs on the calling thread
};

std::vector<Library> libraries();

// Returns the single-precision operations per second of one core that does nothing but fused
// multiply-adds.
double measure_peak();

// Returns the processor time of all threads of this program. Unlike the wall clock, it does not
// count the time that other programs take.
double cpu_seconds();

}  // namespace nacre::bench
