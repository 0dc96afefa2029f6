#include "nacre/kernel/cpu/gemm.h"

#include <algorithm>
#include <atomic>

#include "nacre/base/parallel.h"
#include "nacre/kernel/cpu/gemm_kernels.h"

// NOLINTBEGIN(readability-function-size): these are the well-known argument lists of BLAS
namespace nacre::cpu {
namespace {

// Products smaller than this many multiply-adds run on the calling thread.
constexpr int64_t kSerialWork = 1 << 18;
// Number of bytes of A and C that one block of rows keeps in the second-level cache beside the
// packed B.
constexpr int64_t kBlockBytes = 256 << 10;

constexpr int64_t kTnWorkspaceBytes = 32 << 20;
constexpr int64_t kTnMaxChunks = 32;
constexpr int64_t kTnChunkRows = 512;

// The buffer in which a whole-matrix call packs B, read by all threads. It is static because calls
// must not allocate; its pages are only touched when they are used. One call owns the buffer at a
// time. A call that finds it taken packs panel by panel on its own stack, which is slower and gives
// the same bits.
constexpr int64_t kSharedPackFloats = 1 << 20;
alignas(64) float shared_pack[kSharedPackFloats];
std::atomic_flag shared_pack_taken = ATOMIC_FLAG_INIT;

class SharedPack {
 public:
  explicit SharedPack(int64_t floats)
      : owned_(floats <= kSharedPackFloats && !shared_pack_taken.test_and_set(std::memory_order_acquire)) {}
  ~SharedPack() {
    if (owned_) shared_pack_taken.clear(std::memory_order_release);
  }
  SharedPack(const SharedPack&) = delete;
  SharedPack& operator=(const SharedPack&) = delete;

  float* get() const { return owned_ ? shared_pack : nullptr; }

 private:
  bool owned_;
};

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

int64_t rows_per_block(int64_t N, int64_t K) {
  const int64_t row_bytes = static_cast<int64_t>(sizeof(float)) * (N + K);
  return std::clamp(round_up(kBlockBytes / row_bytes, kGemmBlockRows), kGemmBlockRows, 32 * kGemmBlockRows);
}

enum class Layout { nn, nt };

void gemm_rows(Layout layout, int64_t M, int64_t N, int64_t K, GemmOperand A, GemmOperand B, float* C, int64_t ldc,
               const GemmEpilogue& epilogue) {
  if (M <= 0 || N <= 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const auto rows = layout == Layout::nn ? kernels.rows_nn : kernels.rows_nt;
  if (M * N * std::max<int64_t>(K, 1) <= kSerialWork) {
    rows(M, N, K, A, B, C, ldc, epilogue);
    return;
  }
  const SharedPack pack(kernels.packed_size(N, K));
  float* packed = pack.get();
  if (packed != nullptr) (layout == Layout::nn ? kernels.pack_nn : kernels.pack_nt)(N, K, B, packed);
  // If B could not be packed for all threads, each block of rows packs B for itself. This only pays
  // for many rows, so the blocks are then larger.
  const int64_t block = packed != nullptr ? rows_per_block(N, K) : 16 * kGemmBlockRows;
  parallel_for(M, block, [&](int64_t begin, int64_t end) {
    const GemmOperand a = {A.data + begin * A.ld, A.ld};
    float* c = C + begin * ldc;
    if (packed != nullptr) {
      kernels.rows_packed(end - begin, N, K, a, packed, c, ldc, epilogue);
    } else {
      rows(end - begin, N, K, a, B, c, ldc, epilogue);
    }
  });
}

// Returns how many chunks of rows gemm_tn sums separately. The number depends only on the shape, so
// that the bits do not depend on the machine.
int64_t tn_chunks(int64_t M, int64_t K, int64_t N) {
  if (M * K * N <= kSerialWork) return 1;
  const int64_t fit = kTnWorkspaceBytes / (static_cast<int64_t>(sizeof(float)) * K * N);
  return std::max<int64_t>(1, std::min({M / kTnChunkRows, fit, kTnMaxChunks}));
}

}  // namespace

void gemm_nn(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
             int64_t ldc, const GemmEpilogue& epilogue) {
  gemm_rows(Layout::nn, M, N, K, {A, lda}, {B, ldb}, C, ldc, epilogue);
}

void gemm_nt(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
             int64_t ldc, const GemmEpilogue& epilogue) {
  gemm_rows(Layout::nt, M, N, K, {A, lda}, {B, ldb}, C, ldc, epilogue);
}

int64_t gemm_tn_workspace(int64_t M, int64_t K, int64_t N) {
  const int64_t chunks = tn_chunks(M, K, N);
  return chunks == 1 ? 0 : chunks * K * N * static_cast<int64_t>(sizeof(float));
}

void gemm_tn(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
             int64_t ldc, void* workspace, float beta) {
  if (K <= 0 || N <= 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const int64_t chunks = tn_chunks(M, K, N);
  if (chunks == 1) {
    // If there are few rows or C is large, tasks divide the rows of C instead of the M rows that
    // are summed.
    const int64_t rows = M * K * N <= kSerialWork ? K : 4 * kGemmBlockRows;
    parallel_for(K, rows, [&](int64_t begin, int64_t end) {
      kernels.rows_tn(M, N, end - begin, {A + begin, lda}, {B, ldb}, C + begin * ldc, ldc, beta);
    });
    return;
  }
  auto* partial = static_cast<float*>(workspace);
  parallel_tasks(chunks, [&](int64_t chunk) {
    const int64_t begin = M * chunk / chunks;
    const int64_t end = M * (chunk + 1) / chunks;
    kernels.rows_tn(end - begin, N, K, {A + begin * lda, lda}, {B + begin * ldb, ldb}, partial + chunk * K * N, N, 0);
  });
  parallel_for(K, std::max<int64_t>(1, 4096 / N), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      float* sum = partial + k * N;
      for (int64_t chunk = 1; chunk < chunks; ++chunk) {
        const float* term = sum + chunk * K * N;
        for (int64_t n = 0; n < N; ++n) sum[n] += term[n];
      }
      float* c = C + k * ldc;
      for (int64_t n = 0; n < N; ++n) c[n] = beta == 0 ? sum[n] : sum[n] + beta * c[n];
    }
  });
}

void gemm_tile_nn(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
                  int64_t ldc, const GemmEpilogue& epilogue) {
  gemm_kernels().rows_nn(M, N, K, {A, lda}, {B, ldb}, C, ldc, epilogue);
}

void gemm_tile_nt(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
                  int64_t ldc, const GemmEpilogue& epilogue) {
  gemm_kernels().rows_nt(M, N, K, {A, lda}, {B, ldb}, C, ldc, epilogue);
}

void gemm_tile_tn(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* B, int64_t ldb, float* C,
                  int64_t ldc, float beta) {
  gemm_kernels().rows_tn(M, N, K, {A, lda}, {B, ldb}, C, ldc, beta);
}

int64_t gemm_packed_size(int64_t N, int64_t K) { return gemm_kernels().packed_size(N, K); }

void gemm_pack_nn(int64_t N, int64_t K, const float* B, int64_t ldb, float* packed) {
  gemm_kernels().pack_nn(N, K, {B, ldb}, packed);
}

void gemm_pack_nt(int64_t N, int64_t K, const float* B, int64_t ldb, float* packed) {
  gemm_kernels().pack_nt(N, K, {B, ldb}, packed);
}

void gemm_tile_packed(int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const float* packed, float* C,
                      int64_t ldc, const GemmEpilogue& epilogue) {
  gemm_kernels().rows_packed(M, N, K, {A, lda}, packed, C, ldc, epilogue);
}

void gemm_warm_up() {
  gemm_kernels();
  const SharedPack pack(kSharedPackFloats);
  if (float* packed = pack.get()) std::fill(packed, packed + kSharedPackFloats, 0.0f);
}

std::string gemm_library() { return std::string("own register-tile kernel, ") + gemm_kernels().name; }

}  // namespace nacre::cpu
// NOLINTEND(readability-function-size)
