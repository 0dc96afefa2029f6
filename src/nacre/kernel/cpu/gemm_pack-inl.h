// The packed form of B, compiled once for each instruction set (this file is included by
// foreach_target). The columns are cut into panels that lie one after another. A panel holds all
// rows of its columns, padded with zeros to a width for which there is a register tile.
#if defined(NACRE_KERNEL_CPU_GEMM_PACK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NACRE_KERNEL_CPU_GEMM_PACK_INL_H
#undef NACRE_KERNEL_CPU_GEMM_PACK_INL_H
#else
#define NACRE_KERNEL_CPU_GEMM_PACK_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "nacre/kernel/cpu/gemm_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Full = hn::ScalableTag<float>;
using Half = hn::Half<Full>;
constexpr int64_t kLanes = hn::MaxLanes(Full());
// Panel widths are multiples of this. The scalar baseline has no half vectors.
constexpr int64_t kStep = kLanes > 1 ? kLanes / 2 : 1;
constexpr int64_t kMaxWidth = 3 * kLanes;

constexpr int halves_of(int64_t width) { return static_cast<int>(2 * width / kLanes); }

// Returns the width of the next panel. Panels are two vectors wide; the last one takes the
// remaining columns, up to three vectors.
inline int64_t panel_width(int64_t columns) {
  const int64_t width = (columns + kStep - 1) / kStep * kStep;
  return width <= kMaxWidth ? width : 2 * kLanes;
}

// Calls body(n, width) for the panels that start in [begin, end) of N columns. Returns where the
// next panel starts.
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

// Packs rows of a panel. The number of whole vectors, kWhole, is a constant so that the copy is
// straight code: compilers turn a loop into a call or a string instruction, which costs several
// times as much for so few bytes.
template <int kWhole>
void pack_rows(int64_t depth, int64_t columns, int64_t width, GemmOperand B, float* HWY_RESTRICT to) {
  const Full d;
  const hn::CappedTag<float, kStep> s;
  for (int64_t k = 0; k < depth; ++k) {
    const float* HWY_RESTRICT from = B.data + k * B.ld;
    if constexpr (kWhole > 0) hn::StoreU(hn::LoadU(d, from), d, to);
    if constexpr (kWhole > 1) hn::StoreU(hn::LoadU(d, from + kLanes), d, to + kLanes);
    if constexpr (kWhole > 2) hn::StoreU(hn::LoadU(d, from + 2 * kLanes), d, to + 2 * kLanes);
    for (int64_t n = kWhole * kLanes; n < width; n += kStep) {
      const int64_t left = std::clamp<int64_t>(columns - n, 0, kStep);
      hn::StoreU(hn::MaskedLoad(hn::FirstN(s, static_cast<size_t>(left)), s, from + n), s, to + n);
    }
    to += width;
  }
}

// Packs columns [0, columns) of `depth` rows of B[K,N].
inline void pack_panel_nn(int64_t depth, int64_t columns, int64_t width, GemmOperand B, float* HWY_RESTRICT to) {
  using Pack = void (*)(int64_t, int64_t, int64_t, GemmOperand, float*);
  constexpr Pack kPack[] = {pack_rows<0>, pack_rows<1>, pack_rows<2>, pack_rows<3>};
  kPack[columns / kLanes](depth, columns, width, B, to);
}

#if HWY_TARGET == HWY_SCALAR
inline int64_t transpose_blocks(int64_t, int64_t, int64_t, GemmOperand, float*) { return 0; }
#else
// Writes columns of a panel from rows of B, by transposing blocks of four by four elements. Returns
// how many columns of the panel it has finished.
inline int64_t transpose_blocks(int64_t depth, int64_t columns, int64_t width, GemmOperand B, float* HWY_RESTRICT to) {
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const int64_t whole = depth / 4 * 4;
  int64_t n = 0;
  for (; n + 4 <= columns; n += 4) {
    const float* HWY_RESTRICT from = B.data + n * B.ld;
    for (int64_t k = 0; k < whole; k += 4) {
      const auto r0 = hn::LoadU(d, from + k);
      const auto r1 = hn::LoadU(d, from + k + B.ld);
      const auto r2 = hn::LoadU(d, from + k + 2 * B.ld);
      const auto r3 = hn::LoadU(d, from + k + 3 * B.ld);
      const auto a = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
      const auto b = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
      const auto e = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
      const auto f = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
      float* HWY_RESTRICT out = to + k * width + n;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)), d, out);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)), d, out + width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, e, f)), d, out + 2 * width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, e, f)), d, out + 3 * width);
    }
    for (int64_t k = whole; k < depth; ++k) {
      for (int64_t i = 0; i < 4; ++i) to[k * width + n + i] = from[i * B.ld + k];
    }
  }
  return n;
}
#endif

// Packs columns of B[N,K]: row n of B becomes column n of the panel.
inline void pack_panel_nt(int64_t depth, int64_t columns, int64_t width, GemmOperand B, float* HWY_RESTRICT to) {
  for (int64_t n = transpose_blocks(depth, columns, width, B, to); n < width; ++n) {
    for (int64_t k = 0; k < depth; ++k) to[k * width + n] = n < columns ? B.data[n * B.ld + k] : 0.0f;
  }
}

inline int64_t packed_size(int64_t N, int64_t K) {
  int64_t floats = 0;
  for_panels(N, 0, N, [&](int64_t, int64_t width) { floats += width * K; });
  return floats;
}

inline void pack_nn(int64_t N, int64_t K, GemmOperand B, float* packed) {
  for_panels(N, 0, N, [&](int64_t n, int64_t width) {
    pack_panel_nn(K, std::min(width, N - n), width, {B.data + n, B.ld}, packed + n * K);
  });
}

inline void pack_nt(int64_t N, int64_t K, GemmOperand B, float* packed) {
  for_panels(N, 0, N, [&](int64_t n, int64_t width) {
    pack_panel_nt(K, std::min(width, N - n), width, {B.data + n * B.ld, B.ld}, packed + n * K);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#endif
