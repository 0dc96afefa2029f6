#include "nacre/kernel/cuda/mma.h"

#include <algorithm>

#include "nacre/kernel/cuda/defines.h"
#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {
namespace {

constexpr int kMostStages = 4;
int64_t whole_units(int64_t floats) { return divide_up(floats * 4, kStageUnit) * kStageUnit; }

constexpr const char* kMma = R"(
// Returns the address for writes to shared memory. It has 32 bits and takes half the instructions of a pointer.
INLINE u32 shared_at(const float* p) { return (u32)__cvta_generic_to_shared(p); }
template <int WORDS> INLINE void copy_async(u32 to, const float* from, bool has) {
  if constexpr (WORDS == 4) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(has ? 16 : 0));
  else if constexpr (WORDS == 2) asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(has ? 8 : 0));
  else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(has ? 4 : 0));
}
INLINE void copies_end() {
  asm volatile("cp.async.commit_group;");
}
// Waits until all groups of copies but the last LEFT have arrived.
template <int LEFT> INLINE void copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LEFT));
}
// The hardware ignores the low 13 bits of its operands: numbers lose 3.1e-4 (evenly distributed ones) to 3.5e-4 (normal
// ones) of their size, and so would every sum of products, layer after layer. Results are made larger by both losses.
#define CUT_OFF 1.000665f
// Computes c[16, 8] += a[16, 8] · b[8, 8] in tf32. The elements are spread over a warp.
INLINE void mma(float* c, const u32* a, const u32* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Computes sums += a · b for one slice. Element (row, depth) of a lies at row · A_ROW + depth · A_DEPTH, and element
// (column, depth) of b likewise.
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

// Defines how groups of four warps divide the result of a block among themselves, if the
// architecture has products of four warps (wgmma).
constexpr const char* kFourWarps = R"(
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WGMMA 1
#undef M_TILES
#undef N_TILES
#undef WARPS_N
#define M_TILES 1
#define N_TILES (BN / 8)
#define WARPS_N 1
#endif
)";

// Returns the function wgmma(d, a, b), which computes d[64, columns] += a · b in tf32, spread over
// four warps. b describes a slice in shared memory, and so does a unless it is in registers, as
// mma() takes it.
std::string wgmma_text(int64_t columns, bool a_in_registers) {
  const auto place = [](int64_t i) { return "%" + std::to_string(i); };
  std::string places, operands;
  int64_t next = 0;
  for (; next < columns / 2; ++next) {
    const std::string comma = next == 0 ? "" : ", ";
    places += comma + place(next);
    operands += comma + "\"+f\"(d[" + std::to_string(next) + "])";
  }
  std::string a = place(next), inputs = "\"l\"(a)";
  if (a_in_registers) {
    a = "{" + place(next) + ", " + place(next + 1) + ", " + place(next + 2) + ", " + place(next + 3) + "}";
    inputs = "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])";
    next += 3;
  }
  return std::string(R"(
#if WGMMA
// Returns the description of a slice for the hardware: rows have 128 bytes, groups of 8 rows are 1024 bytes apart,
// and the 16-byte words of a row are in another order, which depends on the row (place()).
INLINE u64 described(const float* at) {
  return (u64)(((u32)__cvta_generic_to_shared(at) & 0x3ffffu) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
INLINE int place(int row, int k) { return row * DEPTH + (((k / 4) ^ (row % 8)) * 4 + k % 4); }
INLINE void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INLINE void wgmma_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until the products have ended. The next products see all copies that have arrived.
INLINE void wgmma_wait() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
INLINE void wgmma(float* d, )") +
         (a_in_registers ? "const u32* a" : "u64 a") +
         ", u64 b) {\n  asm volatile(\"wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
         "k8.f32.tf32.tf32 {" + places + "}, " + a + ", " + place(next + 1) + ", 1, 1, 1;\"\n      : " + operands +
         "\n      : " + inputs + ", \"l\"(b));\n}\n#endif\n";
}

// The functions of slices_text(), for slices whose rows run along the summed dimension in both
// operands.
constexpr const char* kSlices = R"(
#if WGMMA
#define PITCH DEPTH
#else
#define PITCH A_ROW
INLINE int place(int row, int k) { return row * A_ROW + k; }
#endif
// Computes sums += a · b for slices whose copies were begun STAGES - 1 slices ago. `copy_next` begins the copies of a
// later slice into the stage that the slice before has left. Warps that multiply alone have rows from wm and columns
// from wn on.
template <class CopyNext>
INLINE void add_slice(float (*sums)[N_TILES][4], const float* a, const float* b, int wm, int wn, const CopyNext& copy_next) {
  copies_wait<STAGES - 2>();
#if WGMMA
  wgmma_wait();
  __syncthreads();
  wgmma_begin();
#pragma unroll
  for (int d = 0; d < DEPTH; d += 8) {
    wgmma(&sums[0][0][0], described(a + threadIdx.x / 128 * 64 * DEPTH + d), described(b + d));
  }
  wgmma_end();
#else
  __syncthreads();
#endif
  copy_next();
  copies_end();
#if !WGMMA
  multiply(sums, a + wm * A_ROW, b + wn * B_COLUMN, threadIdx.x % 32);
#endif
}
INLINE void slices_end() {
#if WGMMA
  wgmma_wait();
#endif
}
)";

}  // namespace

std::string slices_text() { return kSlices; }

void set_stages(MmaTile& tile, int64_t floats, int64_t fixed, int64_t limit, int64_t wanted) {
  tile.stage_bytes = whole_units(floats);
  tile.fixed_bytes = whole_units(fixed);
  const auto stages = [&](int64_t together) {
    return (limit / together - kStageUnit - tile.fixed_bytes) / tile.stage_bytes;
  };
  tile.together = tile.columns() <= 128 && stages(2) >= wanted ? 2 : 1;
  tile.stages = static_cast<int>(std::clamp<int64_t>(stages(tile.together), 0, kMostStages));
  tile.shared_bytes = tile.fixed_bytes + tile.stages * tile.stage_bytes;
}

std::string tile_text(const MmaTile& t) {
  return prelude() + defines({{"THREADS", t.threads()}, {"WARPS_N", t.warps_n}, {"M_TILES", t.m}, {"N_TILES", t.n}}) +
         defines({{"BM", t.rows()}, {"BN", t.columns()}, {"DEPTH", kDepth}, {"STAGES", t.stages}}) +
         defines({{"TOGETHER", t.together}});
}

std::string mma_text(const MmaTile& tile, bool a_in_registers) {
  if (tile.rows() != 128 && tile.rows() != 64) return kMma;
  return kFourWarps + (kMma + wgmma_text(tile.columns(), a_in_registers));
}

}  // namespace nacre::cuda
