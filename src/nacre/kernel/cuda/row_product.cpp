#include "nacre/kernel/cuda/row_product.h"

#include <algorithm>

#include "nacre/kernel/cuda/defines.h"
#include "nacre/kernel/cuda/product_tail.h"
#include "nacre/kernel/cuda/rows_text.h"

namespace nacre::cuda {
namespace {

constexpr int kTall = kRowsOfBlock[0], kSmall = kRowsOfBlock[1];
constexpr int64_t kFewSlices = 4;

// Copies slices of the rows of an input and of its matrix to shared memory, through a ring of
// stages.
constexpr const char* kCopies = R"(
#define A_FLOATS (BM * PITCH)
template <int K, int V> INLINE void copy_rows(const float* x, i64 first, i64 rows, int k0, u32 to, int tid) {
  constexpr int across = DEPTH / V, apart = THREADS / across;
  const int r0 = tid / across, k = tid % across * V;
  const bool inside = K % DEPTH == 0 || k0 + k < K;
  const float* from = x + (first + r0) * K + k0 + k;
  to += place(r0, k) * 4;
#pragma unroll
  for (int r = 0; r < BM; r += apart) {
    const bool has = inside && first + r0 + r < rows;
    // place() reorders the words of a row in a pattern that repeats every 8 rows. If `apart` is a
    // multiple of 8, words of the same column are thus at a constant distance.
    const u32 further = (apart % 8 == 0 ? r * PITCH : place(r0 + r, k) - place(r0, k)) * 4;
    copy_async<V>(to + further, has ? from + r * K : x, has);
  }
}
template <int LD> INLINE void copy_matrix(const float* w, int k0, u32 to, int tid) {
  constexpr int apart = THREADS / (DEPTH / 4);
  const int n = tid / (DEPTH / 4), k = tid % (DEPTH / 4) * 4;
  const bool inside = LD % DEPTH == 0 || k0 + k < LD;
  const float* from = w + n * LD + k0 + k;
  to += place(n, k) * 4;
#pragma unroll
  for (int r = 0; r < BN; r += apart) {
    const bool has = inside && (N % BN == 0 || n + r < N);
    if (BN % apart == 0 || n + r < BN) copy_async<4>(to + r * PITCH * 4, has ? from + r * LD : w, has);
  }
}
)";

// The copies run ahead across tiles: while the threads of a block run the tail of one tile, slices
// of the next tile arrive.
constexpr const char* kKernel = R"(
${ENTRY} {
  extern __shared__ __align__(1024) float shared[];
  const int tid = threadIdx.x, warp = tid / 32;
  const u32 base = shared_at(shared);
  const i64 tiles = (rows + BM - 1) / BM;
  if (blockIdx.x >= tiles) return;
  const int steps = (int)((tiles - 1 - blockIdx.x) / gridDim.x + 1) * SLICES;
  const auto copy = [&](int s) {
    const i64 first = (blockIdx.x + (i64)(s / SLICES) * gridDim.x) * BM;
    const int slice = s % SLICES;
    const u32 stage = base + s % STAGES * (STAGE * 4);
${COPY}  };
  float sums[1][N_TILES][4];
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < steps) copy(s);
    copies_end();
  }
${SETUP}  int done = 0;
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    clear(sums);
${PREFETCH}    for (int slice = 0; slice < SLICES; ++slice, ++done) {
      const float* a = shared + done % STAGES * STAGE;
      add_slice(sums, a, a + A_FLOATS, warp * 16, 0, [&] { if (done + STAGES - 1 < steps) copy(done + STAGES - 1); });
    }
    slices_end();
${TAIL}  }
}
)";

std::string number(int64_t x) { return std::to_string(x); }

// Computes the position of a row of a tile, as ProductTail::body() needs it.
constexpr const char* kRow = "const i64 pos0 = tile * BM + ${AT};\nif (pos0 >= rows) continue;\n";

}  // namespace

MmaTile tile_of(const RowProduct& what) {
  MmaTile tile{what.rows / 16, 1, 1, static_cast<int>(divide_up(what.n, 8))};
  const int64_t tail = ProductTail(*what.tail).shared_floats(tile.threads());
  const int64_t stage = (tile.rows() + tile.columns()) * kLdAlong;
  if (what.rows == kTall) {
    set_stages(tile, stage, tail, what.shared_bytes, 2);
  } else {
    set_stages(tile, stage, tail, what.shared_bytes / 2);
    tile.together = 2;
  }
  return tile;
}

int rows_of_block(const RowProduct& what) {
  RowProduct small = what;
  small.rows = kSmall;
  int64_t slices = 0;
  for (const int64_t k : what.k) slices += divide_up(k, kDepth);
  return slices <= kFewSlices && fits(small) ? kSmall : kTall;
}

bool fits(const RowProduct& what) {
  return what.n > 0 && what.n <= kWidestRowProduct && !what.k.empty() && what.k.size() <= 2 &&
         std::all_of(what.k.begin(), what.k.end(), [](int64_t k) { return k > 0; }) &&
         ProductTail::fits(*what.tail, what.n) && tile_of(what).stages >= 2;
}

Source row_product(const RowProduct& what) {
  const MmaTile tile = tile_of(what);
  const ProductTail tail(*what.tail);
  Entry entry("row_product", "THREADS, TOGETHER");
  entry.takes<RowProductParams>();
  std::string copy;
  int64_t slices = 0;
  for (size_t i = 0; i < what.k.size(); ++i) {
    const int64_t k = what.k[i];
    const std::string input = number(static_cast<int64_t>(i)), x = "x" + input, w = "w" + input;
    entry.takes<RowFactorParams>(input);
    copy += fill(R"(    if (slice >= ${FIRST} && slice < ${END}) {
      const int k0 = (slice - ${FIRST}) * DEPTH;
      copy_rows<${K}, ${V}>(${X}, first, rows, k0, stage, tid);
      copy_matrix<${LD}>(${MATRIX}, k0, stage + A_FLOATS * 4, tid);
    }
)",
                 {{"FIRST", slices},
                  {"END", slices + divide_up(k, kDepth)},
                  {"K", k},
                  {"V", copied_at_once(k)},
                  {"X", x},
                  {"LD", matrix_ld(k)},
                  {"MATRIX", w}});
    slices += divide_up(k, kDepth);
  }
  add_operands(entry, *what.tail, "p");
  const std::string text = tile_text(tile) +
                           defines({{"N", what.n}, {"SLICES", slices}, {"STAGE", tile.stage_bytes / 4}}) +
                           defines({{"A_ROW", kLdAlong}, {"A_DEPTH", 1}, {"B_COLUMN", kLdAlong}, {"B_DEPTH", 1}}) +
                           mma_text(tile, false) + slices_text() + kCopies +
                           fill(kKernel, {{"ENTRY", kEntryMark},
                                          {"COPY", copy},
                                          {"SETUP", indent(tail.setup(), 1)},
                                          {"PREFETCH", indent(tail.prefetch(kRow), 2)},
                                          {"TAIL", indent(tail.body(kRow, tile.stages * tile.stage_bytes / 4), 2)}});
  return entry.source(text, tile.threads(), tile.shared_bytes);
}

}  // namespace nacre::cuda
