// The matrix products under test, all called the way the engine calls them: blocks of rows, one thread per call.
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
  void (*whole)(const Problem& problem);  // on all threads; null for variants that only concern tiles
  void (*tile)(const Problem& problem);   // on the calling thread
};

std::vector<Library> libraries();

// Single-precision operations per second of one core that does nothing but fused multiply-adds.
double measure_peak();

// Processor time of all threads of this program: unlike the wall clock it does not count time given to other programs.
double cpu_seconds();

}  // namespace nacre::bench
