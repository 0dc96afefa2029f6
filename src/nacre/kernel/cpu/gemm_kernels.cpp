#include "nacre/kernel/cpu/gemm_kernels.h"

#include <algorithm>

// Three instruction sets are enough: the x86-64 baseline, AVX2 with FMA, and AVX-512.
#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nacre/kernel/cpu/gemm_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/highway.h>

#include "nacre/kernel/cpu/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kMaxWidth = 3 * kLanes;
// The depth is cut into equal blocks whose slice of a panel stays in the first-level cache. A sum over several blocks
// is carried through C, so every way to compute a row must use the same blocks.
constexpr int64_t kMaxDepth = 384;
// For tn: few enough rows that A, B and what is fetched ahead of both share the second-level cache with C.
constexpr int64_t kMaxDepthTn = 128;
// Rows that pass over one block of B together: a multiple of every tile_rows().
constexpr int64_t kGroupRows = 24;
// Columns whose packed B (at the largest depth) takes half of the second-level cache.
constexpr int64_t kBlockColumns = 320;

// Columns are cut into panels of two vectors; the last one takes what remains, up to three, in half vectors where there
// are any (there are none on the scalar baseline).
int64_t panel_width(int64_t columns) {
  constexpr int64_t kStep = kLanes > 1 ? kLanes / 2 : 1;
  const int64_t width = (columns + kStep - 1) / kStep * kStep;
  return width <= kMaxWidth ? width : 2 * kLanes;
}

// Calls body(n, width) for the panels that start in [begin, end) of N columns; returns where the next one starts.
template <class F>
int64_t for_panels(int64_t N, int64_t begin, int64_t end, const F& body) {
  int64_t n = begin;
  while (n < end) {
    const int64_t width = panel_width(N - n);
    body(n, width);
    n += width;
  }
  return n;
}

int64_t depth_block(int64_t K, int64_t largest) {
  const int64_t blocks = std::max<int64_t>(1, (K + largest - 1) / largest);
  return std::max<int64_t>(1, (K + blocks - 1) / blocks);
}

// Runs body(k, depth, first, last) over the depth blocks; once with depth 0 when K is 0, for the epilogue.
template <class F>
void for_depth(int64_t K, int64_t largest, const F& body) {
  const int64_t block = depth_block(K, largest);
  int64_t k = 0;
  do {
    const int64_t depth = std::min(block, K - k);
    body(k, depth, k == 0, k + depth == K);
    k += depth;
  } while (k < K);
}

// Copies columns [0, columns) of `depth` rows of B side by side, `width` per row, filling up with zeros.
void pack_panel_nn(int64_t depth, int64_t columns, int64_t width, GemmOperand B, float* HWY_RESTRICT to) {
  const Full d;
  for (int64_t k = 0; k < depth; ++k) {
    const float* HWY_RESTRICT from = B.data + k * B.ld;
    int64_t n = 0;
    for (; n + kLanes <= columns; n += kLanes) hn::StoreU(hn::LoadU(d, from + n), d, to + n);
    for (; n < width; ++n) to[n] = n < columns ? from[n] : 0.0f;
    to += width;
  }
}

// The same for B[N,K]: row n of B becomes column n of the panel.
void pack_panel_nt(int64_t depth, int64_t columns, int64_t width, GemmOperand B, float* HWY_RESTRICT to) {
  for (int64_t n = 0; n < width; ++n) {
    const float* HWY_RESTRICT from = B.data + n * B.ld;
    for (int64_t k = 0; k < depth; ++k) to[k * width + n] = n < columns ? from[k] : 0.0f;
  }
}

Finish finish_of(const GemmEpilogue& epilogue, bool first, bool last, int64_t n, int64_t columns) {
  return {first ? epilogue.beta : 1.0f, last && epilogue.bias != nullptr ? epilogue.bias + n : nullptr,
          last && epilogue.act == Activation::relu, columns};
}

int64_t packed_size(int64_t N, int64_t K) {
  int64_t floats = 0;
  for_panels(N, 0, N, [&](int64_t, int64_t width) { floats += width * K; });
  return floats;
}

// Panel after panel, each with its whole depth.
void pack_nn(int64_t N, int64_t K, GemmOperand B, float* packed) {
  for_panels(N, 0, N, [&](int64_t n, int64_t width) {
    pack_panel_nn(K, std::min(width, N - n), width, {B.data + n, B.ld}, packed + n * K);
  });
}

void pack_nt(int64_t N, int64_t K, GemmOperand B, float* packed) {
  for_panels(N, 0, N, [&](int64_t n, int64_t width) {
    pack_panel_nt(K, std::min(width, N - n), width, {B.data + n * B.ld, B.ld}, packed + n * K);
  });
}

// One block of B stays in the second-level cache while all rows pass over it, a group at a time; each panel fetches its
// share of the group's successor and the lines of C it is about to write.
void rows_packed(int64_t M, int64_t N, int64_t K, GemmOperand A, const float* packed, float* C, int64_t ldc,
                 const GemmEpilogue& epilogue) {
  for (int64_t begin = 0, end = 0; begin < N; begin = end) {
    int64_t panels = 0;
    end = for_panels(N, begin, std::min(N, begin + kBlockColumns), [&](int64_t, int64_t) { ++panels; });
    for_depth(K, kMaxDepth, [&](int64_t k, int64_t depth, bool first, bool last) {
      const int64_t lines = (depth + kLine * panels - 1) / (kLine * panels);
      for (int64_t row = 0; row < M; row += kGroupRows) {
        const float* next = A.data + k + kGroupRows * A.ld;
        for_panels(N, begin, end, [&](int64_t n, int64_t width) {
          const Panel panel = {depth,
                               A.data + k,
                               A.ld,
                               1,
                               packed + n * K + k * width,
                               width,
                               C + n,
                               ldc,
                               finish_of(epilogue, first, last, n, std::min(width, N - n)),
                               {{next, A.ld, lines}, {C + n, ldc, (width + kLine - 1) / kLine}}};
          run_panel(panel, width, row, std::min(M, row + kGroupRows));
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
    for_depth(K, kMaxDepth, [&](int64_t k, int64_t depth, bool first, bool last) {
      if (kTransposedB) {
        pack_panel_nt(depth, columns, width, {B.data + n * B.ld + k, B.ld}, packed);
      } else {
        pack_panel_nn(depth, columns, width, {B.data + k * B.ld + n, B.ld}, packed);
      }
      const Panel panel = {depth,
                           A.data + k,
                           A.ld,
                           1,
                           packed,
                           width,
                           C + n,
                           ldc,
                           finish_of(epilogue, first, last, n, columns),
                           {{A.data, 0, 0}, {A.data, 0, 0}}};
      run_panel(panel, width, 0, M);
    });
  });
}

// Share of the next block of `depth` rows of an operand that each row of each panel fetches.
Ahead share_of(GemmOperand next, int64_t depth, int64_t rows, int64_t panel, int64_t panels) {
  const int64_t lines = (depth * next.ld + kLine * rows * panels - 1) / (kLine * rows * panels);
  return {next.data + panel * rows * lines * kLine, lines * kLine, lines};
}

void rows_tn(int64_t M, int64_t N, int64_t K, GemmOperand A, GemmOperand B, float* C, int64_t ldc, float beta) {
  if (K <= 0 || N <= 0) return;
  alignas(64) float packed[kMaxDepthTn * kMaxWidth];
  const GemmEpilogue epilogue = {nullptr, Activation::none, beta};
  int64_t panels = 0;
  for_panels(N, 0, N, [&](int64_t, int64_t) { ++panels; });
  for_depth(M, kMaxDepthTn, [&](int64_t m, int64_t depth, bool first, bool last) {
    const GemmOperand a = {A.data + m * A.ld, A.ld};
    const GemmOperand b = {B.data + m * B.ld, B.ld};
    int64_t index = 0;
    for_panels(N, 0, N, [&](int64_t n, int64_t width) {
      const int64_t columns = std::min(width, N - n);
      pack_panel_nn(depth, columns, width, {b.data + n, b.ld}, packed);
      const Panel panel = {depth,
                           a.data,
                           1,
                           a.ld,
                           packed,
                           width,
                           C + n,
                           ldc,
                           finish_of(epilogue, first, last, n, columns),
                           {share_of({a.data + depth * a.ld, a.ld}, depth, K, index, panels),
                            share_of({b.data + depth * b.ld, b.ld}, depth, K, index, panels)}};
      run_panel(panel, width, 0, K);
      ++index;
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

}  // namespace nacre::cpu
#endif
