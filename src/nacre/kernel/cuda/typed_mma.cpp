#include "nacre/kernel/cuda/typed_mma.h"

#include <algorithm>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int64_t kDepth = 32;  // of the slices that stand in shared memory
constexpr int kMostStages = 4;
constexpr int64_t kWidest = 256;       // columns of a block
constexpr int64_t kTwoBlocks = 112 << 10;  // of shared memory: two blocks then share a multiprocessor
constexpr int kTotalThreads = 256;

int64_t parts(int64_t total, int64_t most) { return (total + most - 1) / most; }

// Rows of a slice whose columns a warp reads along: 4 rows · 8 columns must fall into different banks.
int64_t ld_across(int64_t width) {
  while (width % 32 != 8 && width % 32 != 24) width += 8;
  return width;
}
// Rows of kDepth elements that a warp reads 8 of, 4 elements each.
constexpr int64_t kLdAlong = kDepth + 4;

int64_t vector_of(int64_t width) { return width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1; }

void set_stages(MmaTile& tile, int64_t stage_floats, int64_t limit) {
  const int64_t stage = stage_floats * 4;
  const bool small = tile.warps_m * tile.warps_n <= 4 && 3 * stage <= kTwoBlocks;
  tile.stages = static_cast<int>(std::min<int64_t>(small ? kTwoBlocks / stage : limit / stage, kMostStages));
  tile.shared_bytes = tile.stages * stage;
}

constexpr const char* kMma = R"(
#define NO_ROW 0xffffffffu
struct Run { u32 type, begin, end, unused; };

template <int V> INLINE void copy_async(float* to, const float* from, bool has) {
  const u32 at = (u32)__cvta_generic_to_shared(to);
  if constexpr (V == 4) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(has ? 16 : 0));
  else if constexpr (V == 2) asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at), "l"(from), "r"(has ? 8 : 0));
  else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(has ? 4 : 0));
}
INLINE void copies_end() {
  asm volatile("cp.async.commit_group;");
}
// All but the last LEFT groups of copies have arrived.
template <int LEFT> INLINE void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT));
}
// c[16, 8] += a[16, 8] · b[8, 8] in tf32, spread over a warp.
INLINE void mma(float* c, const u32* a, const u32* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One slice: sums += a · b. Element (row, depth) of a lies at row · A_ROW + depth · A_DEPTH, that of b (column, depth)
// likewise.
INLINE void multiply(float (*sums)[N_TILES][4], const float* a, const float* b, int lane) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int d = 0; d < DEPTH; d += 8) {
    u32 af[M_TILES][4], bf[N_TILES][2];
#pragma unroll
    for (int i = 0; i < M_TILES; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        af[i][j] = __float_as_uint(a[(i * 16 + g + j % 2 * 8) * A_ROW + (d + t + j / 2 * 4) * A_DEPTH]);
      }
    }
#pragma unroll
    for (int i = 0; i < N_TILES; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) bf[i][j] = __float_as_uint(b[(i * 8 + g) * B_COLUMN + (d + t + j * 4) * B_DEPTH]);
    }
#pragma unroll
    for (int i = 0; i < M_TILES; ++i) {
#pragma unroll
      for (int j = 0; j < N_TILES; ++j) mma(sums[i][j], af[i], bf[j]);
    }
  }
}
INLINE void clear(float (*sums)[N_TILES][4]) {
#pragma unroll
  for (int i = 0; i < M_TILES; ++i) {
#pragma unroll
    for (int j = 0; j < N_TILES; ++j) zero<4>(sums[i][j]);
  }
}
)";

// Slices of the rows and of the matrix follow one another through a ring of stages; with slots, through the types.
constexpr const char* kProduct = R"(
#define A_COPIES ((BM * DEPTH / VA + THREADS - 1) / THREADS)
#define A_ACROSS (DEPTH / VA)
INLINE u32 row_of(const u32* map, u32 position, u32 end, int slot) {
  if (position >= end) return NO_ROW;
#if SLOTS_IN
  return __ldg(map + (i64)position * SLOTS_IN + slot);
#else
  return map ? __ldg(map + position) : position;
#endif
}
INLINE void copy_matrix(const float* w, float* to, int k0, int n0, int tid) {
#if TRANSPOSE
  for (int i = tid; i < BN * (DEPTH / VB); i += THREADS) {
    const int n = i / (DEPTH / VB), k = i % (DEPTH / VB) * VB;
    const bool has = n0 + n < N && k0 + k < K;
    copy_async<VB>(to + n * B_COLUMN + k, has ? w + (i64)(n0 + n) * LDW + k0 + k : w, has);
  }
#else
  for (int i = tid; i < DEPTH * (BN / VB); i += THREADS) {
    const int k = i / (BN / VB), n = i % (BN / VB) * VB;
    const bool has = n0 + n < N && k0 + k < K;
    copy_async<VB>(to + k * B_DEPTH + n, has ? w + (i64)(k0 + k) * LDW + n0 + n : w, has);
  }
#endif
}
extern "C" __global__ void __launch_bounds__(THREADS) typed_product(
    const float* __restrict__ x, const u32* __restrict__ map_in, const float* __restrict__ w, float* __restrict__ out,
    const u32* __restrict__ map_out, const Run* __restrict__ runs, i64 count) {
  extern __shared__ __align__(16) float shared[];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const i64 number = (i64)blockIdx.x / COLUMN_BLOCKS;
  const int n0 = (int)(blockIdx.x % COLUMN_BLOCKS) * BN;
  Run run = {0u, (u32)(number * BM), (u32)(number * BM + BM < count ? number * BM + BM : count), 0u};
  if (runs) run = runs[number];
  const float* matrix = w + (i64)run.type * (K * N);

  u32 row[A_COPIES];
  const auto copy = [&](int step) {
    const int slot = step / SLICES, k0 = step % SLICES * DEPTH;
    if (k0 == 0) {
#pragma unroll
      for (int i = 0; i < A_COPIES; ++i) row[i] = row_of(map_in, run.begin + (tid + i * THREADS) / A_ACROSS, run.end, slot);
    }
    float* a = shared + step % STAGES * STAGE;
#pragma unroll
    for (int i = 0; i < A_COPIES; ++i) {
      const int at = tid + i * THREADS, r = at / A_ACROSS, k = at % A_ACROSS * VA;
      const bool has = row[i] != NO_ROW && k0 + k < K;
      if (BM * A_ACROSS % THREADS == 0 || r < BM) {
        copy_async<VA>(a + r * A_ROW + k, has ? x + (i64)row[i] * K + k0 + k : x, has);
      }
    }
    copy_matrix(matrix + (i64)slot * (K * N), a + BM * A_ROW, k0, n0, tid);
  };

  float sums[M_TILES][N_TILES][4];
  clear(sums);
  const int wm = warp / WARPS_N * (M_TILES * 16), wn = warp % WARPS_N * (N_TILES * 8);
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < STEPS) copy(s);
    copies_end();
  }
  for (int step = 0; step < STEPS; ++step) {
    copies_wait<STAGES - 2>();
    __syncthreads();
    if (step + STAGES - 1 < STEPS) copy(step + STAGES - 1);
    copies_end();
    const float* a = shared + step % STAGES * STAGE;
    multiply(sums, a + wm * A_ROW, a + BM * A_ROW + wn * B_COLUMN, lane);
  }

#pragma unroll
  for (int i = 0; i < M_TILES * 2; ++i) {
    const u32 position = run.begin + wm + i * 8 + lane / 4;
    if (position >= run.end) continue;
#if !SLOTS_OUT
    const u32 to = map_out ? __ldg(map_out + position) : position;
    if (to == NO_ROW) continue;
#endif
#pragma unroll
    for (int j = 0; j < N_TILES; ++j) {
      const int c = n0 + wn + j * 8 + lane % 4 * 2;
      const float* v = sums[i / 2][j] + i % 2 * 2;
#if SLOTS_OUT
#pragma unroll
      for (int e = 0; e < 2; e += WIDTH % 2 == 0 ? 2 : 1) {
        if (c + e >= N) continue;
        const u32 to = __ldg(map_out + (i64)position * SLOTS_OUT + (c + e) / WIDTH);
        if (to == NO_ROW) continue;
        float* at = out + (i64)to * WIDTH + (c + e) % WIDTH;
        if (WIDTH % 2 == 0) store<2>(at, v);
        else *at = v[e];
      }
#else
      float* at = out + (i64)to * N + c;
      if (N % 2 == 0) {
        if (c < N) store<2>(at, v);
      } else {
        if (c < N) at[0] = v[0];
        if (c + 1 < N) at[1] = v[1];
      }
#endif
    }
  }
}
)";

// Both sides' rows of DEPTH positions at a time. Their numbers are read two slices ahead.
constexpr const char* kGrad = R"(
INLINE u32 row_at(const u32* map, i64 position, u32 end) {
  if (position >= (i64)end) return NO_ROW;
  return map ? __ldg(map + position) : (u32)position;
}
template <int WIDE, int LD, int V> INLINE void copy_rows(const float* x, const u32* rows, float* to, int first, int width, int tid) {
  for (int i = tid; i < DEPTH * (WIDE / V); i += THREADS) {
    const int r = i / (WIDE / V), c = i % (WIDE / V) * V;
    const u32 row = rows[r];
    const bool has = row != NO_ROW && first + c < width;
    copy_async<V>(to + r * LD + c, has ? x + (i64)row * width + first + c : x, has);
  }
}
extern "C" __global__ void __launch_bounds__(THREADS) typed_grad(
    const float* __restrict__ x, const u32* __restrict__ map_x, const float* __restrict__ g,
    const u32* __restrict__ map_g, const Run* __restrict__ runs, float* __restrict__ partials) {
  extern __shared__ __align__(16) float shared[];
  __shared__ u32 rows[2][2 * DEPTH];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const i64 number = (i64)blockIdx.x / (ROW_BLOCKS * COLUMN_BLOCKS);
  const int m0 = (int)(blockIdx.x / COLUMN_BLOCKS % ROW_BLOCKS) * BM, n0 = (int)(blockIdx.x % COLUMN_BLOCKS) * BN;
  const Run run = runs[number];
  const int steps = (int)((run.end - run.begin + DEPTH - 1) / DEPTH);
  const auto fetch = [&](int step) {
    const i64 position = (i64)run.begin + (i64)step * DEPTH + tid % DEPTH;
    return row_at(tid < DEPTH ? map_x : map_g, position, run.end);
  };
  const auto copy = [&](int step) {
    float* a = shared + step % STAGES * STAGE;
    copy_rows<BM, A_DEPTH, VA>(x, rows[step % 2], a, m0, K, tid);
    copy_rows<BN, B_DEPTH, VB>(g, rows[step % 2] + DEPTH, a + DEPTH * A_DEPTH, n0, N, tid);
  };

  float sums[M_TILES][N_TILES][4];
  clear(sums);
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
  for (int step = 0; step < steps; ++step) {
    copies_wait<STAGES - 2>();
    __syncthreads();
    const int ahead = step + STAGES - 1;
    if (ahead < steps) copy(ahead);
    copies_end();
    if (tid < 2 * DEPTH) {
      rows[(ahead + 1) % 2][tid] = next;
      next = fetch(ahead + 2);
    }
    const float* a = shared + step % STAGES * STAGE;
    multiply(sums, a + wm, a + DEPTH * A_DEPTH + wn, lane);
  }

  float* to = partials + number * (K * N);
#pragma unroll
  for (int i = 0; i < M_TILES * 2; ++i) {
    const int r = m0 + wm + i * 8 + lane / 4;
    if (r >= K) continue;
#pragma unroll
    for (int j = 0; j < N_TILES; ++j) {
      const int c = n0 + wn + j * 8 + lane % 4 * 2;
      const float* v = sums[i / 2][j] + i % 2 * 2;
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
extern "C" __global__ void __launch_bounds__(THREADS) typed_grad_total(
    const float* __restrict__ partials, const int* __restrict__ first, float* __restrict__ dw) {
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

std::string tile_text(const MmaTile& t) {
  return prelude() + defines({{"THREADS", t.threads()}, {"WARPS_N", t.warps_n}, {"M_TILES", t.m}, {"N_TILES", t.n}}) +
         defines({{"BM", t.rows()}, {"BN", t.columns()}, {"DEPTH", kDepth}, {"STAGES", t.stages}});
}

Source source(const char* name, std::string text, int threads, int64_t shared_bytes) {
  Source s;
  s.name = name;
  s.text = std::move(text);
  s.threads = threads;
  s.shared_bytes = shared_bytes;
  return s;
}

int64_t product_columns(const TypedProduct& what) { return what.n * std::max<int64_t>(1, what.slots_out); }

struct ProductLayout {
  int64_t a_row, b_column, b_depth, stage;
};
ProductLayout layout_of(const TypedProduct& what, const MmaTile& tile) {
  const int64_t across = ld_across(tile.columns());
  return {kLdAlong, what.transpose ? kLdAlong : 1, what.transpose ? 1 : across,
          tile.rows() * kLdAlong + (what.transpose ? tile.columns() * kLdAlong : kDepth * across)};
}

}  // namespace

int64_t column_blocks(const TypedProduct& what) { return parts(product_columns(what), kWidest); }

MmaTile tile_of(const TypedProduct& what) {
  const int64_t columns = parts(product_columns(what), column_blocks(what));
  MmaTile tile;
  if (columns <= 64) {
    tile = {4, 1, 2, static_cast<int>(parts(columns, 8))};
  } else if (columns <= 128) {
    tile = {2, 2, 4, static_cast<int>(parts(columns, 16))};
  } else {
    tile = {2, 4, 4, static_cast<int>(parts(columns, 32))};
  }
  set_stages(tile, layout_of(what, tile).stage, what.shared_bytes);
  return tile;
}

bool fits(const TypedProduct& what) { return tile_of(what).stages >= 2; }

Source typed_product(const TypedProduct& what) {
  const MmaTile tile = tile_of(what);
  const ProductLayout layout = layout_of(what, tile);
  const int64_t columns = product_columns(what), slices = parts(what.k, kDepth);
  const int64_t ldw = what.transpose ? what.k : columns;
  return source("typed_product",
                tile_text(tile) + defines({{"K", what.k}, {"N", columns}, {"WIDTH", what.n}, {"LDW", ldw}}) +
                    defines({{"SLOTS_IN", what.slots_in}, {"SLOTS_OUT", what.slots_out}}) +
                    defines({{"TRANSPOSE", what.transpose ? 1 : 0}, {"COLUMN_BLOCKS", column_blocks(what)}}) +
                    defines({{"SLICES", slices}, {"STEPS", slices * std::max<int64_t>(1, what.slots_in)}}) +
                    defines({{"VA", vector_of(what.k)}, {"VB", vector_of(ldw)}}) +
                    defines({{"A_ROW", layout.a_row}, {"A_DEPTH", 1}, {"B_COLUMN", layout.b_column}}) +
                    defines({{"B_DEPTH", layout.b_depth}, {"STAGE", layout.stage}}) + kMma + kProduct,
                tile.threads(), tile.shared_bytes);
}

MmaTile tile_of(const TypedGrad& what) {
  const int64_t columns = parts(what.n, parts(what.n, kWidest));
  MmaTile tile;
  const auto rows = [&](int64_t most) { return parts(what.k, parts(what.k, most)); };
  if (columns <= 64) {
    tile = {4, 1, static_cast<int>(parts(rows(256), 64)), static_cast<int>(parts(columns, 8))};
  } else if (columns <= 128) {
    tile = {2, 2, static_cast<int>(parts(rows(128), 32)), static_cast<int>(parts(columns, 16))};
  } else {
    tile = {2, 4, static_cast<int>(parts(rows(128), 32)), static_cast<int>(parts(columns, 32))};
  }
  set_stages(tile, kDepth * (ld_across(tile.rows()) + ld_across(tile.columns())), what.shared_bytes);
  return tile;
}

bool fits(const TypedGrad& what) { return tile_of(what).stages >= 2; }

int64_t blocks_of_run(const TypedGrad& what) {
  const MmaTile tile = tile_of(what);
  return parts(what.k, tile.rows()) * parts(what.n, tile.columns());
}

Source typed_grad(const TypedGrad& what) {
  const MmaTile tile = tile_of(what);
  const int64_t lda = ld_across(tile.rows()), ldb = ld_across(tile.columns());
  return source("typed_grad",
                tile_text(tile) + defines({{"K", what.k}, {"N", what.n}, {"ROW_BLOCKS", parts(what.k, tile.rows())}}) +
                    defines({{"COLUMN_BLOCKS", parts(what.n, tile.columns())}, {"STAGE", kDepth * (lda + ldb)}}) +
                    defines({{"VA", vector_of(what.k)}, {"VB", vector_of(what.n)}}) +
                    defines({{"A_ROW", 1}, {"A_DEPTH", lda}, {"B_COLUMN", 1}, {"B_DEPTH", ldb}}) + kMma + kGrad,
                tile.threads(), tile.shared_bytes);
}

Source typed_grad_total(const TypedGrad& what, int64_t types) {
  return source("typed_grad_total",
                prelude() + defines({{"THREADS", kTotalThreads}, {"TYPES", types}, {"K", what.k}, {"N", what.n}}) + kTotal,
                kTotalThreads, 0);
}

}  // namespace nacre::cuda
