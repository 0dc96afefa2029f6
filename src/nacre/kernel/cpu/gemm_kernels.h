// The single-threaded kernels behind gemm.h, one set per instruction set, chosen at run time.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/kernel/cpu/gemm.h"

namespace nacre::cpu {

// A multiple of the number of rows of every register tile. Products are cut into blocks whose
// number of rows is a multiple of this constant.
inline constexpr int64_t kGemmBlockRows = 24;

struct GemmOperand {
  const float* data;
  int64_t ld;
};

struct GemmKernels {
  const char* name;
  // Returns the number of floats that a packed B[K,N] takes.
  int64_t (*packed_size)(int64_t N, int64_t K);
  void (*pack_nn)(int64_t N, int64_t K, GemmOperand B, float* packed);
  void (*pack_nt)(int64_t N, int64_t K, GemmOperand B, float* packed);
  // Computes C = act(A · packed B + beta * C + bias) for M rows.
  void (*rows_packed)(int64_t M, int64_t N, int64_t K, GemmOperand A, const float* packed, float* C, int64_t ldc,
                      const GemmEpilogue& epilogue);
  void (*rows_nn)(int64_t M, int64_t N, int64_t K, GemmOperand A, GemmOperand B, float* C, int64_t ldc,
                  const GemmEpilogue& epilogue);
  void (*rows_nt)(int64_t M, int64_t N, int64_t K, GemmOperand A, GemmOperand B, float* C, int64_t ldc,
                  const GemmEpilogue& epilogue);
  // Computes C[K,N] = Aᵀ · B + beta * C.
  void (*rows_tn)(int64_t M, int64_t N, int64_t K, GemmOperand A, GemmOperand B, float* C, int64_t ldc, float beta);
};

// gemm_kernels() returns the best set for this machine, and gemm_all_kernels() all sets that this
// machine can run, the best first (used by tests).
const GemmKernels& gemm_kernels();
std::vector<const GemmKernels*> gemm_all_kernels();

}  // namespace nacre::cpu
