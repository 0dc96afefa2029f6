#include "libraries.h"

#include <cblas.h>
#include <dnnl.h>
#include <libxsmm.h>

#include <algorithm>

#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gemm.h"

namespace nacre::bench {
namespace {

// Rows per library call. The libraries rearrange B in every call, so their blocks must be larger
// than ours.
constexpr int64_t kRows = 2048;
constexpr int64_t kTnChunks = 32;

std::vector<float>& scratch() {
  static std::vector<float> memory;
  return memory;
}

Problem rows_of(const Problem& p, int64_t begin, int64_t end) {
  Problem part = p;
  part.M = end - begin;
  part.A = p.A + begin * p.K;
  if (p.product == Product::tn) {
    part.B = p.B + begin * p.N;
  } else {
    part.C = p.C + begin * p.N;
  }
  return part;
}

// Drives a library that has only single-threaded calls over blocks of rows. For tn, the sums of
// chunks are added in order.
template <void (*kTile)(const Problem&)>
void by_rows(const Problem& p) {
  if (p.product != Product::tn) {
    parallel_for(p.M, kRows, [&](int64_t begin, int64_t end) { kTile(rows_of(p, begin, end)); });
    return;
  }
  const int64_t size = p.K * p.N;
  scratch().resize(static_cast<size_t>(kTnChunks * size));
  parallel_tasks(kTnChunks, [&](int64_t chunk) {
    Problem part = rows_of(p, p.M * chunk / kTnChunks, p.M * (chunk + 1) / kTnChunks);
    part.C = scratch().data() + chunk * size;
    kTile(part);
  });
  parallel_for(size, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) p.C[i] = 0;
    for (int64_t chunk = 0; chunk < kTnChunks; ++chunk) {
      const float* part = scratch().data() + chunk * size;
      for (int64_t i = begin; i < end; ++i) p.C[i] += part[i];
    }
  });
}

void own_tile(const Problem& p) {
  if (p.product == Product::nn) cpu::gemm_tile_nn(p.M, p.N, p.K, p.A, p.K, p.B, p.N, p.C, p.N);
  if (p.product == Product::nt) cpu::gemm_tile_nt(p.M, p.N, p.K, p.A, p.K, p.B, p.K, p.C, p.N);
  if (p.product == Product::tn) cpu::gemm_tile_tn(p.M, p.N, p.K, p.A, p.K, p.B, p.N, p.C, p.N);
}

void own_packed(const Problem& p) {
  if (p.product == Product::tn) return own_tile(p);
  // Packing is not timed, because it is done once for many tiles.
  static thread_local std::vector<float> packed;
  static thread_local Product packed_for;
  const auto size = static_cast<size_t>(cpu::gemm_packed_size(p.N, p.K));
  if (packed.size() != size || packed_for != p.product) {
    packed_for = p.product;
    packed.resize(size);
    if (p.product == Product::nn) cpu::gemm_pack_nn(p.N, p.K, p.B, p.N, packed.data());
    if (p.product == Product::nt) cpu::gemm_pack_nt(p.N, p.K, p.B, p.K, packed.data());
  }
  cpu::gemm_tile_packed(p.M, p.N, p.K, p.A, p.K, packed.data(), p.C, p.N);
}

void own_whole(const Problem& p) {
  if (p.product == Product::nn) cpu::gemm_nn(p.M, p.N, p.K, p.A, p.K, p.B, p.N, p.C, p.N);
  if (p.product == Product::nt) cpu::gemm_nt(p.M, p.N, p.K, p.A, p.K, p.B, p.K, p.C, p.N);
  if (p.product == Product::tn) {
    scratch().resize(static_cast<size_t>(cpu::gemm_tn_workspace(p.M, p.K, p.N)) / sizeof(float));
    cpu::gemm_tn(p.M, p.N, p.K, p.A, p.K, p.B, p.N, p.C, p.N, scratch().data());
  }
}

void openblas_tile(const Problem& p) {
  const int m = static_cast<int>(p.M);
  const int n = static_cast<int>(p.N);
  const int k = static_cast<int>(p.K);
  if (p.product == Product::tn) {
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, n, m, 1, p.A, k, p.B, n, 0, p.C, n);
  } else if (p.product == Product::nt) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, p.A, k, p.B, k, 0, p.C, n);
  } else {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, p.A, k, p.B, n, 0, p.C, n);
  }
}

void onednn_tile(const Problem& p) {
  if (p.product == Product::tn) {
    dnnl_sgemm('T', 'N', p.K, p.N, p.M, 1, p.A, p.K, p.B, p.N, 0, p.C, p.N);
  } else if (p.product == Product::nt) {
    dnnl_sgemm('N', 'T', p.M, p.N, p.K, 1, p.A, p.K, p.B, p.K, 0, p.C, p.N);
  } else {
    dnnl_sgemm('N', 'N', p.M, p.N, p.K, 1, p.A, p.K, p.B, p.N, 0, p.C, p.N);
  }
}

// libxsmm is column-major: our C is its Cᵀ[N,M] = Bᵀ · Aᵀ. These constants are the rows and the
// depth of one kernel.
constexpr libxsmm_blasint kXsmmRows = 64;
constexpr libxsmm_blasint kXsmmDepth = 256;

void libxsmm_nn(const Problem& p, const float* B) {
  const auto n = static_cast<libxsmm_blasint>(p.N);
  const auto k = static_cast<libxsmm_blasint>(p.K);
  const float alpha = 1;
  for (int64_t m = 0; m < p.M; m += kXsmmRows) {
    const auto rows = static_cast<libxsmm_blasint>(std::min<int64_t>(kXsmmRows, p.M - m));
    for (libxsmm_blasint d = 0; d < k; d += kXsmmDepth) {
      const libxsmm_blasint depth = std::min(kXsmmDepth, k - d);
      const float beta = d == 0 ? 0 : 1;
      const int flags = LIBXSMM_GEMM_FLAG_NONE;
      const auto kernel = libxsmm_smmdispatch(n, rows, depth, &n, &k, &n, &alpha, &beta, &flags, nullptr);
      kernel(B + int64_t{d} * n, p.A + m * k + d, p.C + m * n);
    }
  }
}

void libxsmm_tn(const Problem& p) {
  const auto n = static_cast<libxsmm_blasint>(p.N);
  const auto k = static_cast<libxsmm_blasint>(p.K);
  const float alpha = 1;
  for (int64_t m = 0; m < p.M; m += kXsmmDepth) {
    const auto depth = static_cast<libxsmm_blasint>(std::min<int64_t>(kXsmmDepth, p.M - m));
    for (libxsmm_blasint r = 0; r < k; r += kXsmmRows) {
      const auto rows = std::min(kXsmmRows, k - r);
      const float beta = m == 0 ? 0 : 1;
      const int flags = LIBXSMM_GEMM_FLAG_TRANS_B;
      const auto kernel = libxsmm_smmdispatch(n, rows, depth, &n, &k, &n, &alpha, &beta, &flags, nullptr);
      if (kernel == nullptr) return;
      kernel(p.B + m * n, p.A + m * k + r, p.C + int64_t{r} * n);
    }
  }
}

void libxsmm_tile(const Problem& p) {
  if (p.product == Product::tn) return libxsmm_tn(p);
  if (p.product == Product::nn) return libxsmm_nn(p, p.B);
  // libxsmm has no kernel for this transpose, so B is transposed once per call.
  static thread_local std::vector<float> turned;
  turned.resize(static_cast<size_t>(p.K * p.N));
  for (int64_t n = 0; n < p.N; ++n) {
    for (int64_t k = 0; k < p.K; ++k) turned[static_cast<size_t>(k * p.N + n)] = p.B[n * p.K + k];
  }
  libxsmm_nn(p, turned.data());
}

}  // namespace

std::vector<Library> libraries() {
  openblas_set_num_threads(1);
  libxsmm_init();
  cpu::gemm_warm_up();
  return {{"nacre", own_whole, own_tile},
          {"nacre packed", nullptr, own_packed},
          {"openblas", by_rows<openblas_tile>, openblas_tile},
          {"onednn", by_rows<onednn_tile>, onednn_tile},
          {"libxsmm", by_rows<libxsmm_tile>, libxsmm_tile}};
}

}  // namespace nacre::bench
