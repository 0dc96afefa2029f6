// The register tile of the matrix products, compiled once for each instruction set (this file is
// included by foreach_target).
//
// A tile is a few rows by up to three vectors of C, held in registers while one walk over the depth
// adds the outer products of a column of A (broadcast element by element) and a row of B (vectors).
// Widths count half vectors, because layer widths such as 40 are two and a half AVX-512 vectors and
// a half vector costs half the time.
#if defined(NACRE_KERNEL_CPU_GEMM_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef NACRE_KERNEL_CPU_GEMM_TILE_INL_H
#undef NACRE_KERNEL_CPU_GEMM_TILE_INL_H
#else
#define NACRE_KERNEL_CPU_GEMM_TILE_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "nacre/kernel/cpu/gemm_pack-inl.h"

// The sums only live in registers if the loops over them are unrolled completely.
#undef NACRE_UNROLL
#if defined(__clang__)
#define NACRE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NACRE_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace nacre::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kLine = 64 / sizeof(float);

// Returns the number of rows of a tile of `halves` half vectors: as many as leave room for the
// operands in 32 (AVX-512) or 16 registers, and at most 12, because more rows gain nothing.
constexpr int tile_rows(int halves) { return std::min(12, (kLanes >= 16 ? 24 : 12) / ((halves + 1) / 2)); }

// Memory to prefetch while tiles are computed. A tile takes thousands of cycles, enough to bring
// the operands of the next tiles from main memory; without prefetching, products of tall matrices
// are a third slower. The fetches are spread over the depth, because a burst of them would fill the
// miss queue that the tile's own loads need.
//
// While row r of the tile that starts at `row` is computed, its fetches walk from at + (row + r) *
// stride in steps of `step`.
struct Stream {
  const float* at;
  int64_t stride;
  int64_t step;
};

// Fetches, for each row, `lines` cache lines from at + row * stride at once.
struct Lines {
  const float* at;
  int64_t stride;
  int64_t lines;

  HWY_INLINE void fetch(int64_t row) const {
    const float* p = at + row * stride;
    for (int64_t i = 0; i < lines; ++i) hwy::Prefetch(p + i * kLine);
  }
};

// What is done with the sums: C = act(sums + beta * C + bias) for the first `columns` columns.
struct Finish {
  float beta;
  const float* bias;
  bool relu;
  int64_t columns;
};

// A column panel of C and what it is computed from. Row k of B starts at b + k * ldb and is
// readable over the whole width of the panel. Element (row, k) of A is a[row * lda + k], or a[k *
// lda + row] for the kernels marked kTransposed.
struct Panel {
  int64_t depth;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  Finish finish;
  Stream stream;
  Lines lines;
};

// Stores kRows sums of one column of vectors. This is the general case, which handles partial
// vectors, old values of C, the bias and the activation.
template <int kRows, class D, class Sums>
HWY_INLINE void store_column(D d, const Sums& sums, float* HWY_RESTRICT c, int64_t ldc, int64_t column,
                             const Finish& finish) {
  const int64_t left = finish.columns - column;
  if (left <= 0) return;
  const auto mask = hn::FirstN(d, static_cast<size_t>(std::min<int64_t>(left, hn::MaxLanes(d))));
  const auto beta = hn::Set(d, finish.beta);
  const auto bias = finish.bias != nullptr ? hn::MaskedLoad(mask, d, finish.bias + column) : hn::Zero(d);
  NACRE_UNROLL for (int r = 0; r < kRows; ++r) {
    float* to = c + r * ldc + column;
    auto sum = sums(r);
    if (finish.beta != 0) sum = hn::MulAdd(beta, hn::MaskedLoad(mask, d, to), sum);
    if (finish.bias != nullptr) sum = hn::Add(sum, bias);
    // With the sum as the second operand, the x86 instruction keeps a NaN in the sum.
    if (finish.relu) sum = hn::Max(hn::Zero(d), sum);
    hn::BlendedStore(sum, mask, d, to);
  }
}

template <int kRows, int kHalves>
struct Tile {
  static constexpr int kVecs = kHalves / 2;
  static constexpr bool kOdd = kHalves % 2 != 0;

  hn::Vec<Full> sum[kRows][std::max(1, kVecs)];
  hn::Vec<Half> odd[kRows];

  HWY_INLINE void clear() {
    NACRE_UNROLL for (int r = 0; r < kRows; ++r) {
      NACRE_UNROLL for (int v = 0; v < kVecs; ++v) sum[r][v] = hn::Zero(Full());
      odd[r] = hn::Zero(Half());
    }
  }

  // Adds the products of one column of A and one row of B to the sums. Row r of A is read through
  // rows[r / 3]: x86 addresses reach three rows from one pointer, so that pointers, too, stay in
  // registers.
  template <bool kTransposed>
  HWY_INLINE void add(const float* const* rows, int64_t lda, const float* HWY_RESTRICT b) {
    const Full d;
    const Half h;
    hn::Vec<Full> bv[std::max(1, kVecs)];
    NACRE_UNROLL for (int v = 0; v < kVecs; ++v) bv[v] = hn::LoadU(d, b + v * kLanes);
    hn::Vec<Half> bo = hn::Zero(h);
    if constexpr (kOdd) bo = hn::LoadU(h, b + kVecs * kLanes);
    NACRE_UNROLL for (int r = 0; r < kRows; ++r) {
      const auto av = hn::Set(d, kTransposed ? rows[0][r] : rows[r / 3][r % 3 * lda]);
      NACRE_UNROLL for (int v = 0; v < kVecs; ++v) sum[r][v] = hn::MulAdd(av, bv[v], sum[r][v]);
      if constexpr (kOdd) odd[r] = hn::MulAdd(hn::LowerHalf(h, av), bo, odd[r]);
    }
  }

  HWY_INLINE void store_whole(float* HWY_RESTRICT c, int64_t ldc) const {
    NACRE_UNROLL for (int r = 0; r < kRows; ++r) {
      NACRE_UNROLL for (int v = 0; v < kVecs; ++v) hn::StoreU(sum[r][v], Full(), c + r * ldc + v * kLanes);
      if (kOdd) hn::StoreU(odd[r], Half(), c + r * ldc + kVecs * kLanes);
    }
  }

  HWY_INLINE void add_whole(float* HWY_RESTRICT c, int64_t ldc) const {
    const Full d;
    const Half h;
    NACRE_UNROLL for (int r = 0; r < kRows; ++r) {
      float* row = c + r * ldc;
      NACRE_UNROLL for (int v = 0; v < kVecs; ++v) {
        hn::StoreU(hn::Add(sum[r][v], hn::LoadU(d, row + v * kLanes)), d, row + v * kLanes);
      }
      float* end = row + kVecs * kLanes;
      if (kOdd) hn::StoreU(hn::Add(odd[r], hn::LoadU(h, end)), h, end);
    }
  }

  HWY_INLINE void store_general(float* HWY_RESTRICT c, int64_t ldc, const Finish& finish) const {
    NACRE_UNROLL for (int v = 0; v < kVecs; ++v) {
      store_column<kRows>(
          Full(), [&](int r) HWY_ATTR { return sum[r][v]; }, c, ldc, v * kLanes, finish);
    }
    if constexpr (kOdd) {
      store_column<kRows>(
          Half(), [&](int r) HWY_ATTR { return odd[r]; }, c, ldc, kVecs * kLanes, finish);
    }
  }
};

template <int kRows, int kHalves, bool kTransposed>
HWY_NOINLINE void run_tile(const Panel& p, int64_t row) {
  Tile<kRows, kHalves> tile;
  tile.clear();
  constexpr int kPointers = kTransposed ? 1 : (kRows + 2) / 3;
  const float* rows[kPointers];
  // With depth 0, a may be null, so do no pointer arithmetic on it.
  NACRE_UNROLL for (int i = 0; i < kPointers; ++i) rows[i] = p.depth == 0  ? p.a
                                                             : kTransposed ? p.a + row
                                                                           : p.a + (row + 3 * i) * p.lda;
  const int64_t lda = p.lda;
  const int64_t ldb = p.ldb;
  const int64_t step = p.stream.step;
  const float* HWY_RESTRICT b = p.b;
  int64_t left = p.depth;
  for (int r = 0; r < kRows; ++r) {
    p.lines.fetch(row + r);
    const float* ahead = p.stream.at + (row + r) * p.stream.stride;
    const int64_t steps = r + 1 < kRows ? p.depth / kRows : left;
    left -= steps;
    for (int64_t k = 0; k < steps; ++k) {
      hwy::Prefetch(ahead);
      ahead += step;
      tile.template add<kTransposed>(rows, lda, b);
      b += ldb;
      NACRE_UNROLL for (int i = 0; i < kPointers; ++i) {
        // The empty assembly hides from the compiler how the pointers are related; otherwise it
        // would recompute them from one another.
        const float* next = rows[i] + (kTransposed ? lda : 1);
        asm("" : "+r"(next));
        rows[i] = next;
      }
    }
  }
  float* c = p.c + row * p.ldc;
  const Finish& finish = p.finish;
  const bool plain = finish.bias == nullptr && !finish.relu && 2 * finish.columns == kHalves * kLanes;
  if (plain && finish.beta == 0) {
    tile.store_whole(c, p.ldc);
  } else if (plain && finish.beta == 1) {
    tile.add_whole(c, p.ldc);
  } else {
    tile.store_general(c, p.ldc, finish);
  }
}

template <int kRows, int kHalves, bool kTransposed>
HWY_INLINE void walk(const Panel& p, int64_t& row, int64_t end) {
  for (; row + kRows <= end; row += kRows) run_tile<kRows, kHalves, kTransposed>(p, row);
}

// Computes rows [row, end) of a panel of kHalves half vectors.
template <int kHalves, bool kTransposed>
void run_rows(const Panel& p, int64_t row, int64_t end) {
  constexpr int kRows = tile_rows(kHalves);
  walk<kRows, kHalves, kTransposed>(p, row, end);
  if constexpr (kRows > 8) walk<8, kHalves, kTransposed>(p, row, end);
  if constexpr (kRows > 4) walk<4, kHalves, kTransposed>(p, row, end);
  if constexpr (kRows > 2) walk<2, kHalves, kTransposed>(p, row, end);
  walk<1, kHalves, kTransposed>(p, row, end);
}

template <bool kTransposed>
void run_panel(const Panel& p, int halves, int64_t row, int64_t end) {
  using Run = void (*)(const Panel&, int64_t, int64_t);
  constexpr Run kRun[] = {run_rows<1, kTransposed>, run_rows<2, kTransposed>, run_rows<3, kTransposed>,
                          run_rows<4, kTransposed>, run_rows<5, kTransposed>, run_rows<6, kTransposed>};
  kRun[halves - 1](p, row, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace nacre::cpu
HWY_AFTER_NAMESPACE();

#endif
