// Dense f32 matrix products for the CPU back end, tuned for tall matrices of few columns: millions
// of rows (vertices) by a few hundred columns (features).
//
// All matrices are row-major with leading dimensions in elements; C must not overlap A or B. Any
// size is allowed, including 0. Every element of C is one chain of fused multiply-adds over K in
// fixed order, so the bits of a row depend neither on the number of threads nor on the rows around
// it: the whole-matrix functions and the tile functions agree exactly. No call allocates.
#pragma once

#include <cstdint>
#include <string>

namespace nacre::cpu {

enum class Activation : uint8_t { none, relu };

// What is done with a product: C = act(product + beta * C + bias), with bias one value per column.
// C is not read when beta is 0.
struct GemmEpilogue {
  const float* bias = nullptr;
  Activation act = Activation::none;
  float beta = 0;
};

// Compute C[M,N] = A[M,K] · B, in parallel over blocks of rows. B is [K,N] for nn and [N,K] for nt.
void gemm_nn(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
             int64_t ldc, const GemmEpilogue& epilogue = {});
void gemm_nt(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
             int64_t ldc, const GemmEpilogue& epilogue = {});

// gemm_tn() computes C[K,N] = A[M,K]ᵀ · B[M,N] + beta * C, in parallel over chunks of the M rows
// whose partial sums are kept in `workspace` and added in order. `workspace` holds
// gemm_tn_workspace(M, K, N) bytes (at most 32 MiB; 0 for small products) and needs no particular
// contents; K and N are interchangeable in its size.
int64_t gemm_tn_workspace(int64_t M, int64_t K, int64_t N);
void gemm_tn(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
             int64_t ldc, void* workspace, float beta = 0);

// Compute the same products on the calling thread, for tiles inside other kernels. gemm_tile_tn
// sums all M rows in one chain of row blocks, so its result agrees with that of gemm_tn only up to
// rounding.
void gemm_tile_nn(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
                  int64_t ldc, const GemmEpilogue& epilogue = {});
void gemm_tile_nt(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
                  int64_t ldc, const GemmEpilogue& epilogue = {});
void gemm_tile_tn(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
                  int64_t ldc, float beta = 0);

// Pack a matrix B that many tiles are multiplied by: the elements are rearranged once into the
// order in which the kernel reads them. `packed` holds gemm_packed_size(N, K) floats. Its layout
// depends on the machine's instruction set.
int64_t gemm_packed_size(int64_t N, int64_t K);
void gemm_pack_nn(int64_t N, int64_t K, const float* B, int64_t ldb, float* packed);
void gemm_pack_nt(int64_t N, int64_t K, const float* B, int64_t ldb, float* packed);
// Computes C[M,N] = A[M,K] · B for the matrix B that was packed, on the calling thread, with the
// same bits as gemm_tile_nn or gemm_tile_nt.
void gemm_tile_packed(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* packed, float* C,
                      int64_t ldc, const GemmEpilogue& epilogue = {});

// Picks the kernel for this machine and touches the shared buffers, so that the first product is
// not slower than later ones.
void gemm_warm_up();

// Returns the name of the kernel that runs on this machine, for reports.
std::string gemm_library();

}  // namespace nacre::cpu
