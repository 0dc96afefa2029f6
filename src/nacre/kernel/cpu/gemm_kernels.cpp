#include "nacre/kernel/cpu/gemm_kernels.h"

#include <algorithm>

// The kernels are compiled for two instruction sets beside the baseline: AVX2 with FMA, and
// AVX-512.
#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/gemm_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include "nacre/kernel/cpu/gemm_pack-inl.h"
#include "nacre/kernel/cpu/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

// The depth is cut into equal blocks whose slice of a panel stays in cache. A sum over several
// blocks is carried through C, so every function that computes a row must use the same blocks, on
// all instruction sets.
constexpr int64_t kMaxDepth = 384;
// Largest depth of a block for tn: few enough rows that A, B and the rows fetched ahead fit the
// second-level cache together with C.
constexpr int64_t kMaxDepthTn = 128;
// Number of columns whose packed B (at the largest depth) takes half of the second-level cache.
constexpr int64_t kBlockColumns = 320;
// Rows longer than this many cache lines are left to the hardware prefetcher, which follows them
// well.
constexpr int64_t kMaxStreamLines = 16;
// Products of at most this many rows read B in place if they can, because packing would not pay.
constexpr int64_t kFewRows = 24;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int rows_of(int64_t width) { return tile_rows(halves_of(width)); }

// Calls body(k, depth, first, last) for each block of the depth. If K is 0, calls it once with
// depth 0, for the epilogue.
template <class F>
void for_depth(int64_t K, int64_t largest, const F& body) {
  const int64_t block = std::max<int64_t>(1, ceil_div(K, std::max<int64_t>(1, ceil_div(K, largest))));
  int64_t k = 0;
  do {
    const int64_t depth = std::min(block, K - k);
    body(k, depth, k == 0, k + depth == K);
    k += depth;
  } while (k < K);
}

Finish finish_of(const GemmEpilogue& epilogue, bool first, bool last, int64_t n, int64_t columns) {
  return {first ? epilogue.beta : 1.0f, last && epilogue.bias != nullptr ? epilogue.bias + n : nullptr,
          last && epilogue.act == Activation::relu, columns};
}

// Returns a stream that fetches `lines` cache lines for each row of a tile. The fetches are spread
// over the steps along the depth in which the tile is computed.
Stream stream_of(const float* at, int64_t stride, int64_t lines, int64_t depth, int64_t width) {
  const int64_t steps = std::max<int64_t>(1, depth / rows_of(width));
  return {at, stride, ceil_div(lines * kLine, steps)};
}

// Returns the number of rows that pass over B together, so that all panels find them in the
// first-level cache. It is a multiple of the rows of each panel's tiles.
int64_t group_rows(int64_t N) {
  int64_t group = 0;
  for_panels(N, 0, N, [&](int64_t, int64_t width) {
    const int64_t rows = rows_of(width);
    group = group == 0 || group == rows ? rows : kGemmBlockRows;
  });
  return group;
}

// Computes a product with a packed B. One block of B stays in the second-level cache while all rows
// pass over it, one group of rows at a time. Each panel fetches its share of the next group and the
// lines of C that it is about to write.
void rows_packed(int64_t M, int64_t N, int64_t K, GemmOperand A, const float* packed, float* C, int64_t ldc,
                 const GemmEpilogue& epilogue) {
  const int64_t group = group_rows(N);
  for (int64_t begin = 0, end = 0; begin < N; begin = end) {
    int64_t panels = 0;
    end = for_panels(N, begin, std::min(N, begin + kBlockColumns), [&](int64_t, int64_t) { ++panels; });
    for_depth(K, kMaxDepth, [&](int64_t k, int64_t depth, bool first, bool last) {
      const GemmOperand a = {A.data + k, A.ld};
      const int64_t share = ceil_div(depth, kLine * panels);
      const int64_t lines = share <= kMaxStreamLines ? share : 0;
      for (int64_t row = 0; row < M; row += group) {
        const float* next = a.data + group * a.ld;
        for_panels(N, begin, end, [&](int64_t n, int64_t width) {
          const Panel panel = {depth,
                               a.data,
                               a.ld,
                               packed + n * K + k * width,
                               width,
                               C + n,
                               ldc,
                               finish_of(epilogue, first, last, n, std::min(width, N - n)),
                               stream_of(next, a.ld, lines, depth, width),
                               {C + n, ldc, ceil_div(width, kLine)}};
          run_panel<false>(panel, halves_of(width), row, std::min(M, row + group));
          next += lines * kLine;
        });
      }
    });
  }
}

template <bool kTransposedB>
void rows_unpacked(int64_t M, int64_t N, int64_t K, GemmOperand A, GemmOperand B, float* C, int64_t ldc,
                   const GemmEpilogue& epilogue) {
  alignas(64) float packed[kMaxDepth * kMaxWidth];
  for_panels(N, 0, N, [&](int64_t n, int64_t width) {
    const int64_t columns = std::min(width, N - n);
    const bool in_place = !kTransposedB && M <= kFewRows && columns == width;
    for_depth(K, kMaxDepth, [&](int64_t k, int64_t depth, bool first, bool last) {
      GemmOperand b = {packed, width};
      if (in_place) {
        b = {B.data + k * B.ld + n, B.ld};
      } else if (kTransposedB) {
        pack_panel_nt(depth, columns, width, {B.data + n * B.ld + k, B.ld}, packed);
      } else {
        pack_panel_nn(depth, columns, width, {B.data + k * B.ld + n, B.ld}, packed);
      }
      const Panel panel = {depth,          A.data + k,     A.ld, b.data,
                           b.ld,           C + n,          ldc,  finish_of(epilogue, first, last, n, columns),
                           {A.data, 0, 0}, {C + n, ldc, 0}};
      run_panel<false>(panel, halves_of(width), 0, M);
    });
  });
}

// Computes a product with a transposed A. The outer products of `depth` rows at a time are added to
// C, which stays in the second-level cache. Meanwhile each row of each panel fetches its share of
// the next rows of A and B.
void rows_tn(int64_t M, int64_t N, int64_t K, GemmOperand A, GemmOperand B, float* C, int64_t ldc, float beta) {
  if (K <= 0 || N <= 0) return;
  alignas(64) float packed[kMaxDepthTn * kMaxWidth];
  const GemmEpilogue epilogue = {nullptr, Activation::none, beta};
  int64_t panels = 0;
  for_panels(N, 0, N, [&](int64_t, int64_t) { ++panels; });
  for_depth(M, kMaxDepthTn, [&](int64_t m, int64_t depth, bool first, bool last) {
    const GemmOperand a = {A.data + m * A.ld, A.ld};
    const GemmOperand b = {B.data + m * B.ld, B.ld};
    const int64_t a_lines = ceil_div(depth * a.ld, kLine * K * panels);
    const int64_t b_lines = ceil_div(depth * b.ld, kLine * K * panels);
    const float* next_a = a.data + depth * a.ld;
    const float* next_b = b.data + depth * b.ld;
    for_panels(N, 0, N, [&](int64_t n, int64_t width) {
      const int64_t columns = std::min(width, N - n);
      GemmOperand near = {b.data + n, b.ld};
      if (K > rows_of(width) || columns < width) {
        pack_panel_nn(depth, columns, width, near, packed);
        near = {packed, width};
      }
      const Panel panel = {depth,
                           a.data,
                           a.ld,
                           near.data,
                           near.ld,
                           C + n,
                           ldc,
                           finish_of(epilogue, first, last, n, columns),
                           stream_of(next_a, a_lines * kLine, a_lines, depth, width),
                           {next_b, b_lines * kLine, b_lines}};
      run_panel<true>(panel, halves_of(width), 0, K);
      next_a += K * a_lines * kLine;
      next_b += K * b_lines * kLine;
    });
  });
}

}  // namespace

const GemmKernels* kernels() {
  static const GemmKernels set = {hwy::TargetName(HWY_TARGET), packed_size,         pack_nn, pack_nt, rows_packed,
                                  rows_unpacked<false>,        rows_unpacked<true>, rows_tn};
  return &set;
}

}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nacre::cpu {
HWY_EXPORT(kernels);

const GemmKernels& gemm_kernels() {
  static const GemmKernels& chosen = *HWY_DYNAMIC_DISPATCH(kernels)();
  return chosen;
}

std::vector<const GemmKernels*> gemm_all_kernels() {
  std::vector<const GemmKernels*> all;
#if HWY_TARGETS & HWY_AVX3
  if (hwy::SupportedTargets() & HWY_AVX3) all.push_back(N_AVX3::kernels());
#endif
#if HWY_TARGETS & HWY_AVX2
  if (hwy::SupportedTargets() & HWY_AVX2) all.push_back(N_AVX2::kernels());
#endif
  all.push_back(HWY_STATIC_DISPATCH(kernels)());
  return all;
}

}  // namespace nacre::cpu
#endif
