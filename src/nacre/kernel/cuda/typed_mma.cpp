#include "nacre/kernel/cuda/typed_mma.h"

#include <algorithm>

#include "nacre/kernel/cuda/defines.h"
#include "nacre/kernel/cuda/product_tail.h"
#include "nacre/kernel/cuda/rows_text.h"

namespace nacre::cuda {
namespace {

// The largest number of columns of a block. In products without cells a block has at most half as
// many, so that two blocks run on a multiprocessor at the same time.
constexpr int64_t kWidest = 256;
constexpr int kTotalThreads = 256;
constexpr int kResidentStages = 3;  // stages of the rows if the matrix is resident

// Returns the distance of the rows of a slice whose columns a warp reads along. The 4 rows and 8
// columns of a read must fall into different banks.
int64_t ld_across(int64_t width) {
  while (width % 32 != 8 && width % 32 != 24) width += 8;
  return width;
}
// Returns a tile of 128 rows and 256 threads. Its eight warps divide only the rows if there are at
// most 64 columns; otherwise two times four warps divide rows and columns.
MmaTile tile_of_columns(int64_t columns) {
  if (columns <= 64) return {8, 1, 1, static_cast<int>(divide_up(columns, 8))};
  return {2, 4, 4, static_cast<int>(divide_up(columns, 32))};
}

int fewest_stages(const TypedProduct& what) { return what.resident ? kResidentStages : 2; }

// Returns how many floats of shared memory the transposed slices of a gradient's second factor
// take. Two slices take turns.
int64_t turned_of(const MmaTile& tile) { return 2 * tile.columns() * kDepth; }

std::string run_text() { return "\n#define NO_ROW 0xffffffffu\n" + struct_text<MmaRun>(); }

// Slices of the rows and of the matrix pass through a ring of stages. With cells, they are the
// slices of one type after the other and then, with OWN, of the position's own row. If the matrix
// is RESIDENT, it stands before the ring, and only slices of the rows pass through the ring.
//
// If the architecture has the instructions (WGMMA), products of four warps read both slices from
// shared memory. The rows of these slices have 128 bytes. The order of the 16-byte words of a row
// depends on the low bits of the row number, as the hardware expects.
constexpr const char* kProduct = R"(
#define A_FLOATS (BM * PITCH)
#define MATRIX (BN * PITCH)
// A thread copies the same words of rows that are a multiple of 8 apart. The order of the words in a row repeats
// every 8 rows (place()), so the addresses of its copies differ by constants.
#define ACROSS (DEPTH / V)
#define APART (THREADS / ACROSS)
#define COPIES ((BM + APART - 1) / APART)
#define KEPT (COPIES <= 8)
#define MATRIX_APART (THREADS / (DEPTH / 4))
// Cell number CELLS stands for the position's own row, which comes after the cells of the types.
#if OWN
#define BY_CELL(of_type, own) (cell == CELLS ? (own) : (of_type))
#else
#define BY_CELL(of_type, own) (of_type)
#endif
INLINE u32 row_of(const u32* map, const u32* vertices, u32 position, u32 end, int cell) {
  if (position >= end) return NO_ROW;
#if CELLS
  return __ldg(BY_CELL(map + (i64)position * CELLS + cell, vertices + position));
#else
  return map ? __ldg(map + position) : position;
#endif
}
INLINE void copy_matrix(const float* w, u32 to, int k0, int n0, int tid) {
  const int n = tid / (DEPTH / 4), k = tid % (DEPTH / 4) * 4;
  const bool inside = W_LD % DEPTH == 0 || k0 + k < W_LD;
  const float* from = inside ? w + (i64)(n0 + n) * W_LD + k0 + k : w;
  to += place(n, k) * 4;
#pragma unroll
  for (int r = 0; r < BN; r += MATRIX_APART) {
    const bool has = inside && (N % BN == 0 || n0 + n + r < N);
    if (BN % MATRIX_APART == 0 || n + r < BN) copy_async<4>(to + r * PITCH * 4, has ? from + r * W_LD : w, has);
  }
}
${ENTRY} {
  extern __shared__ __align__(1024) float shared[];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const int n0 = (int)(blockIdx.x % COLUMN_BLOCKS) * BN;
  const MmaRun run = runs[blockIdx.x / COLUMN_BLOCKS];
  const float* matrix = w + (i64)run.type * (N * W_LD);
#if MASKED
  u32 types = run.types;
  const int steps = (__popc(types) + OWN) * SLICES;
#elif RESIDENT
  const int steps = (int)((run.end - run.begin + BM - 1) / BM) * SLICES;
#else
  const int steps = (CELLS ? CELLS + OWN : 1) * SLICES;
#endif

  // The numbers of the rows that the thread copies. If they are few, they are kept for all slices.
  u32 row[KEPT ? COPIES : 1];
  const u32 base = shared_at(shared);
  int cell = 0;
  const auto copy = [&](int step) {
    const int k0 = step % SLICES * DEPTH;
#if CELLS
    if (k0 == 0) {
#if MASKED
      cell = OWN && types == 0 ? CELLS : __ffs(types) - 1;
      types &= types - 1;
#else
      cell = step / SLICES;
#endif
    }
#endif
    const u32 first = run.begin + (RESIDENT ? step / SLICES * BM : 0);
    if (KEPT && k0 == 0) {
#pragma unroll
      for (int i = 0; i < COPIES; ++i) row[i] = row_of(map_in, map_out, first + tid / ACROSS + i * APART, run.end, cell);
    }
    const u32 stage = base + (RING + step % STAGES * STAGE) * 4;
    const int k = tid % ACROSS * V;
    const bool inside = K % DEPTH == 0 || k0 + k < K;
    const float* rows = BY_CELL(x, own);
    const float* start = inside ? rows + k0 + k : rows;
    const u32 to = stage + place(tid / ACROSS, k) * 4;
    constexpr int at_once = KEPT ? COPIES : 2;
#pragma unroll (at_once)
    for (int i = 0; i < COPIES; ++i) {
      const u32 from = KEPT ? row[KEPT ? i : 0] : row_of(map_in, map_out, first + tid / ACROSS + i * APART, run.end, cell);
      const bool has = inside && from != NO_ROW;
      if (BM % APART == 0 || tid / ACROSS + i * APART < BM) {
        copy_async<V>(to + i * (APART * PITCH * 4), start + (i64)(has ? from : 0u) * K, has);
      }
    }
#if !RESIDENT
    copy_matrix(BY_CELL(matrix + (i64)cell * (N * W_LD), own_matrix), stage + A_FLOATS * 4, k0, n0, tid);
#endif
  };

  float sums[M_TILES][N_TILES][4];
  const int wm = warp / WARPS_N * (M_TILES * 16), wn = warp % WARPS_N * (N_TILES * 8);
#if !OWN
  const auto write = [&](u32 first) {
#pragma unroll
    for (int i = 0; i < M_TILES * 2; ++i) {
      const u32 position = first + wm + i * 8 + lane / 4;
      if (position >= run.end) continue;
      const u32 to = map_out ? __ldg(map_out + position) : position;
#pragma unroll
      for (int j = 0; j < N_TILES; ++j) {
        const int c = n0 + wn + j * 8 + lane % 4 * 2;
        const float v[2] = {sums[i / 2][j][i % 2 * 2] * CUT_OFF, sums[i / 2][j][i % 2 * 2 + 1] * CUT_OFF};
        float* at = out + (i64)to * N + c;
        if (N % 2 == 0) {
          if (c < N) store<2>(at, v);
        } else {
          if (c < N) at[0] = v[0];
          if (c + 1 < N) at[1] = v[1];
        }
      }
    }
  };
#endif
#if MASKED && !OWN
  if (steps == 0) {  // none of the run's vertices has a row of any type
    clear(sums);
    write(run.begin);
    return;
  }
#endif
#if RESIDENT
  for (int s = 0; s < SLICES; ++s) copy_matrix(matrix, base + s * MATRIX * 4, s * DEPTH, n0, tid);
#endif
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < steps) copy(s);
    copies_end();
  }
${SETUP}  // With a resident matrix, one tile of the run follows the other, and the copies run ahead across tiles. The loop
  // shows that a tile has at least one slice; otherwise the compiler would wait for each product before the next.
  const int of_tile = RESIDENT ? SLICES : steps;
  int done = 0;
  do {
    clear(sums);
${PREFETCH}    int slice = 0;
    do {
      const float* a = shared + RING + done % STAGES * STAGE;
      const float* b = RESIDENT ? shared + slice * MATRIX : a + A_FLOATS;
      add_slice(sums, a, b, wm, wn, [&] { if (done + STAGES - 1 < steps) copy(done + STAGES - 1); });
      ++done;
    } while (++slice < of_tile);
    slices_end();
#if OWN
${TAIL}#else
    write(run.begin + (RESIDENT ? (done / SLICES - 1) * BM : 0));
#endif
  } while (RESIDENT && done < steps);
}
)";

// A slice has the rows of both factors at DEPTH positions. The numbers of the rows are read two
// slices ahead.
constexpr const char* kGrad = R"(
INLINE u32 row_at(const u32* map, i64 position, u32 end) {
  if (position >= (i64)end) return NO_ROW;
  return map ? __ldg(map + position) : (u32)position;
}
// Copies the columns [first, first + ACROSS) of the rows, as far as the rows have them. If a thread copies the same
// words of rows that lie evenly apart, the addresses of its copies in shared memory differ by constants.
template <int ACROSS, int LD, int WORDS, int WIDTH> INLINE void copy_rows(const float* x, const u32* rows, u32 to, int first, int tid) {
  constexpr int words = ACROSS / WORDS;
  if constexpr (THREADS % words == 0 && DEPTH % (THREADS / words) == 0) {
    constexpr int apart = THREADS / words;
    const int r = tid / words, c = tid % words * WORDS;
    const bool inside = WIDTH % ACROSS == 0 || first + c < WIDTH;
    const float* from = inside ? x + first + c : x;
    to += (r * LD + c) * 4;
    u32 row[DEPTH / apart];
#pragma unroll
    for (int i = 0; i < DEPTH / apart; ++i) row[i] = rows[r + i * apart];
#pragma unroll
    for (int i = 0; i < DEPTH / apart; ++i) {
      const bool has = inside && row[i] != NO_ROW;
      copy_async<WORDS>(to + i * (apart * LD * 4), from + (i64)(has ? row[i] : 0u) * WIDTH, has);
    }
  } else {
#pragma unroll
    for (int j = 0; j < (DEPTH * words + THREADS - 1) / THREADS; ++j) {
      const int i = tid + j * THREADS, r = i / words, c = i % words * WORDS;
      if (DEPTH * words % THREADS != 0 && r >= DEPTH) continue;
      const u32 row = rows[r];
      const bool has = row != NO_ROW && first + c < WIDTH;
      copy_async<WORDS>(to + (r * LD + c) * 4, has ? x + (i64)row * WIDTH + first + c : x, has);
    }
  }
}
#define B_FLOATS (DEPTH * B_DEPTH)
#if WGMMA
// Turns columns into rows of DEPTH, as the hardware wants its second factor. Squares of 4 · 4 are dealt out to threads
// so that no two threads meet in a bank, neither when they read nor when they write.
INLINE void turn(const float* from, float* to, int tid) {
  const int k = tid % 8, n0 = tid / 64 * 8 + (tid + tid / 8) % 8;
#pragma unroll
  for (int n = n0; n < n0 + (BN + 31) / 32 * 8; n += THREADS / 8) {
    if (BN % (THREADS / 2) != 0 && n * 4 >= BN) continue;
    float square[4][4];
#pragma unroll
    for (int j = 0; j < 4; ++j) load<4>(from + (k * 4 + j) * B_DEPTH + n * 4, square[j]);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float column[4] = {square[0][j], square[1][j], square[2][j], square[3][j]};
      store<4>(to + place(n * 4 + j, k * 4), column);
    }
  }
}
#endif
${ENTRY} {
  extern __shared__ __align__(1024) float shared[];
  __shared__ u32 rows[2][2 * DEPTH];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const i64 number = (i64)blockIdx.x / (ROW_BLOCKS * COLUMN_BLOCKS);
  const int m0 = (int)(blockIdx.x / COLUMN_BLOCKS % ROW_BLOCKS) * BM, n0 = (int)(blockIdx.x % COLUMN_BLOCKS) * BN;
  const MmaRun run = runs[number];
  const int steps = (int)((run.end - run.begin + DEPTH - 1) / DEPTH);
  const auto fetch = [&](int step) {
    const i64 position = (i64)run.begin + (i64)step * DEPTH + tid % DEPTH;
    return row_at(tid < DEPTH ? map_x : map_g, position, run.end);
  };
  const u32 ring = shared_at(shared + TURNED);
  const auto copy = [&](int step) {
    const u32 stage = ring + step % STAGES * (STAGE * 4);
    copy_rows<BN, B_DEPTH, VB, N>(g, rows[step % 2] + DEPTH, stage, n0, tid);
    copy_rows<BM, A_DEPTH, VA, K>(x, rows[step % 2], stage + B_FLOATS * 4, m0, tid);
  };

  float sums[M_TILES][N_TILES][4];
  clear(sums);
#if WGMMA
  u32 af[DEPTH / 8][4];
#endif
  const int wm = warp / WARPS_N * (M_TILES * 16), wn = warp % WARPS_N * (N_TILES * 8);
  for (int s = 0; s < STAGES - 1; ++s) {
    if (tid < 2 * DEPTH) rows[s % 2][tid] = fetch(s);
    __syncthreads();
    copy(s);
    copies_end();
    __syncthreads();
  }
  u32 next = NO_ROW;
  if (tid < 2 * DEPTH) {
    rows[(STAGES - 1) % 2][tid] = fetch(STAGES - 1);
    next = fetch(STAGES);
  }
  int step = 0;
  do {  // runs are not empty
    copies_wait<STAGES - 2>();
    const float* b = shared + TURNED + step % STAGES * STAGE;
#if WGMMA
    __syncthreads();
    float* turned = shared + step % 2 * (BN * DEPTH);
    turn(b, turned, tid);
    wgmma_wait();
    __syncthreads();
#pragma unroll
    for (int d = 0; d < DEPTH / 8; ++d) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        af[d][j] = __float_as_uint(b[B_FLOATS + (d * 8 + lane % 4 + j / 2 * 4) * A_DEPTH + wm + lane / 4 + j % 2 * 8]);
      }
    }
    wgmma_begin();
#pragma unroll
    for (int d = 0; d < DEPTH / 8; ++d) wgmma(&sums[0][0][0], af[d], described(turned + d * 8));
    wgmma_end();
#else
    __syncthreads();
#endif
    const int ahead = step + STAGES - 1;
    if (ahead < steps) copy(ahead);
    copies_end();
    if (tid < 2 * DEPTH) {
      rows[(ahead + 1) % 2][tid] = next;
      next = fetch(ahead + 2);
    }
#if !WGMMA
    multiply(sums, b + B_FLOATS + wm, b + wn, lane);
#endif
  } while (++step < steps);
#if WGMMA
  wgmma_wait();
#endif

  float* to = partials + number * (K * N);
#pragma unroll
  for (int i = 0; i < M_TILES * 2; ++i) {
    const int r = m0 + wm + i * 8 + lane / 4;
    if (r >= K) continue;
#pragma unroll
    for (int j = 0; j < N_TILES; ++j) {
      const int c = n0 + wn + j * 8 + lane % 4 * 2;
      const float v[2] = {sums[i / 2][j][i % 2 * 2] * CUT_OFF, sums[i / 2][j][i % 2 * 2 + 1] * CUT_OFF};
      float* at = to + (i64)r * N + c;
      if (N % 2 == 0) {
        if (c < N) store<2>(at, v);
      } else {
        if (c < N) at[0] = v[0];
        if (c + 1 < N) at[1] = v[1];
      }
    }
  }
}
)";

constexpr const char* kTotal = R"(
${ENTRY} {
  const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
  if (i >= (i64)TYPES * K * N) return;
  const int type = (int)(i / (K * N));
  const int end = first[type + 1];
  const float* from = partials + i % (K * N);
  float sum = 0.0f;
#pragma unroll 4
  for (int p = first[type]; p < end; ++p) sum += from[(i64)p * (K * N)];
  dw[i] = sum;
}
)";

}  // namespace

int64_t column_blocks(const TypedProduct& what) { return divide_up(what.n, what.cells > 0 ? kWidest : kWidest / 2); }

MmaTile tile_of(const TypedProduct& what) {
  MmaTile tile = tile_of_columns(divide_up(what.n, column_blocks(what)));
  int64_t fixed = 0, staged = tile.columns();
  if (what.resident) {
    fixed = divide_up(what.k, kDepth) * tile.columns() * kLdAlong;
    staged = 0;
  } else if (what.tail != nullptr) {
    tile = {8, 1, 1, static_cast<int>(divide_up(what.n, 8))};  // a warp has whole rows
    fixed = ProductTail(*what.tail).shared_floats(tile.threads());
  }
  set_stages(tile, (tile.rows() + staged) * kLdAlong, fixed, what.shared_bytes, fewest_stages(what));
  return tile;
}

bool fits(const TypedProduct& what) {
  if (what.tail != nullptr) {
    if (what.cells == 0 || what.resident || what.n > kWidest || !ProductTail::fits(*what.tail, what.n)) return false;
  }
  return tile_of(what).stages >= fewest_stages(what);
}

Source typed_product(const TypedProduct& what) {
  const MmaTile tile = tile_of(what);
  const bool own = what.tail != nullptr;
  // The text that computes the position of a row of a run, as ProductTail::body() needs it.
  const char* row =
      "const u32 position = run.begin + ${AT};\nif (position >= run.end) continue;\n"
      "const i64 pos0 = __ldg(map_out + position);\n";
  Entry entry("typed_product", "THREADS, TOGETHER");
  entry.takes<TypedProductParams>();
  std::string setup, prefetch, body;
  if (own) {
    const ProductTail tail(*what.tail);
    add_operands(entry.takes<TypedProductTailParams>(), *what.tail, "p");
    setup = tail.setup();
    prefetch = tail.prefetch(row);
    body = tail.body(row, 0);
  }
  return entry.source(
      tile_text(tile) + defines({{"K", what.k}, {"N", what.n}, {"V", copied_at_once(what.k)}, {"CELLS", what.cells}}) +
          defines({{"COLUMN_BLOCKS", column_blocks(what)}, {"STAGE", tile.stage_bytes / 4}}) +
          defines({{"SLICES", divide_up(what.k, kDepth)}, {"W_LD", matrix_ld(what.k)}}) +
          defines({{"RESIDENT", what.resident ? 1 : 0}, {"RING", tile.fixed_bytes / 4}}) +
          defines({{"MASKED", what.cells > 0 && what.cells <= kMostMasked ? 1 : 0}}) + defines({{"OWN", own ? 1 : 0}}) +
          defines({{"A_ROW", kLdAlong}, {"A_DEPTH", 1}, {"B_COLUMN", kLdAlong}, {"B_DEPTH", 1}}) +
          mma_text(tile, false) + slices_text() + run_text() +
          fill(kProduct, {{"ENTRY", kEntryMark},
                          {"SETUP", indent(setup, 1)},
                          {"PREFETCH", indent(prefetch, 2)},
                          {"TAIL", indent(body, 2)}}),
      tile.threads(), tile.shared_bytes);
}

MmaTile tile_of(const TypedGrad& what) {
  MmaTile tile = tile_of_columns(divide_up(what.n, divide_up(what.n, kWidest)));
  // If the result has few columns, a block computes more rows instead, so that each row of x is
  // read once.
  if (tile.warps_n == 1 && what.k > tile.rows()) tile.m = 2;
  set_stages(tile, kDepth * (ld_across(tile.rows()) + ld_across(tile.columns())), turned_of(tile),
             what.shared_bytes - kStageUnit);
  return tile;
}

bool fits(const TypedGrad& what) { return tile_of(what).stages >= 2; }

int64_t blocks_of_run(const TypedGrad& what) {
  const MmaTile tile = tile_of(what);
  return divide_up(what.k, tile.rows()) * divide_up(what.n, tile.columns());
}

Source typed_grad(const TypedGrad& what) {
  const MmaTile tile = tile_of(what);
  const int64_t lda = ld_across(tile.rows()), ldb = ld_across(tile.columns());
  return Entry("typed_grad", "THREADS, TOGETHER")
      .takes<TypedGradParams>()
      .source(
          tile_text(tile) + defines({{"K", what.k}, {"N", what.n}, {"ROW_BLOCKS", divide_up(what.k, tile.rows())}}) +
              defines({{"COLUMN_BLOCKS", divide_up(what.n, tile.columns())}, {"STAGE", tile.stage_bytes / 4}}) +
              defines({{"VA", copied_at_once(what.k)}, {"VB", copied_at_once(what.n)}, {"TURNED", turned_of(tile)}}) +
              defines({{"A_ROW", 1}, {"A_DEPTH", lda}, {"B_COLUMN", 1}, {"B_DEPTH", ldb}}) + mma_text(tile, true) +
              run_text() + kGrad,
          tile.threads(), tile.shared_bytes);
}

Source typed_grad_total(const TypedGrad& what, int64_t types) {
  return Entry("typed_grad_total")
      .takes<TypedGradTotalParams>()
      .source(
          prelude() + defines({{"THREADS", kTotalThreads}, {"TYPES", types}, {"K", what.k}, {"N", what.n}}) + kTotal,
          kTotalThreads);
}

}  // namespace nacre::cuda
