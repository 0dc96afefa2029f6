#include "nacre/kernel/cuda/typed.h"

#include <algorithm>
#include <bit>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int kTypedThreads = 128;
// The lanes of a group hold the numbers of the rows in flight, so there must be at least as many
// lanes as rows in flight.
constexpr int kFewestLanes = 8;
constexpr int kMostFloats = 16;  // most floats of a row in the registers of a thread
constexpr int kFloatsInFlight = 64;
constexpr int kRowsInFlight = 8;

constexpr const char* kGroups = R"(
#define GROUPS (THREADS / LANES)
#define FULL (VECTORS == TILES * PER_THREAD * LANES)
)";

constexpr const char* kRow = R"(
INLINE u16 to_bf16(float x) {
  const u32 bits = __float_as_uint(x);
  if (x != x) return 0x7fff;
  return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#if BF16
typedef u16 Out;
INLINE void put_vector(Out* p, const float* r) {
#if V == 4
  *(uint2*)p = make_uint2((u32)to_bf16(r[0]) | (u32)to_bf16(r[1]) << 16, (u32)to_bf16(r[2]) | (u32)to_bf16(r[3]) << 16);
#elif V == 2
  *(u32*)p = (u32)to_bf16(r[0]) | (u32)to_bf16(r[1]) << 16;
#else
  *p = to_bf16(r[0]);
#endif
}
#else
typedef float Out;
INLINE void put_vector(Out* p, const float* r) { store<V>(p, r); }
#endif
INLINE void put_one(u16* p, float x) { *p = to_bf16(x); }
INLINE void put_one(float* p, float x) { *p = x; }
// Writes columns [c, c + V) of a row. If a row is no whole number of vectors, writes column by column.
INLINE void put(Out* row, int c, const float* r) {
  if (WIDTH % V == 0) {
    put_vector(row + c, r);
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      if (c + v < WIDTH) put_one(row + c + v, r[v]);
    }
  }
}

INLINE i64 place(i64 row, int per_row, i64 ld) {
  return per_row == 1 ? row * ld : row / per_row * ld + row % per_row * WIDTH;
}
// Return the first element of vector s of this thread, and whether the row has this element.
INLINE int column(int tile, int s, int lane) { return ((tile * PER_THREAD + s) * LANES + lane) * V; }
INLINE bool inside(int c) { return FULL || c < LENGTH; }
)";

// A group walks a run of entries and writes a sum where a pair ends. The rows in flight may belong
// to different pairs, so short pairs cost no more waiting than long ones.
constexpr const char* kTypedSum = R"(
#define NO_ROW 0xffffffffu
${ENTRY} {
  const i64 group = (i64)blockIdx.x * GROUPS + threadIdx.x / LANES;
  const int lane = threadIdx.x % LANES;
  const u32 mask = group_mask<LANES>();
  // All items are summed for one tile of columns before the next tile, because one tile of all rows may fit a cache.
  const i64 tile_number = group / num_items;
  if (tile_number >= TILES) return;
  const int tile = (int)tile_number;
  const Segment item = items[group % num_items];
  float sum[PER_THREAD][V];
#pragma unroll
  for (int s = 0; s < PER_THREAD; ++s) zero<V>(sum[s]);
  for (i64 base = item.begin; base < item.end; base += LANES) {
    const int n = item.end - base < LANES ? (int)(item.end - base) : LANES;
    u32 from = 0, to = NO_ROW;
    float factor = 0.0f;
    if (lane < n) {
      const i64 i = base + lane;
      from = other[i];
      factor = SCALED ? scale[edge ? (i64)edge[i] : i] : 1.0f;
      const bool last = i + 1 == item.end;
      if (item.partial >= 0) {
        if (last) to = (u32)item.partial;
      } else {
        const u32 pair = pair_of[i];
        if (last || pair_of[i + 1] != pair) to = cell_of ? (u32)(cell_of[pair] - first) : pair - item.row;
      }
    }
    for (int j = 0; j < n; j += BATCH) {
      float row[BATCH][PER_THREAD][V];
#pragma unroll
      for (int u = 0; u < BATCH; ++u) {
        const i64 r = (i64)__shfl_sync(mask, from, j + u, LANES) * LENGTH;
#pragma unroll
        for (int s = 0; s < PER_THREAD; ++s) {
          const int c = column(tile, s, lane);
          if (j + u < n && inside(c)) gather<V>(x + r + c, row[u][s]);
          else zero<V>(row[u][s]);
        }
      }
#pragma unroll
      for (int u = 0; u < BATCH; ++u) {
        const float f = __shfl_sync(mask, factor, j + u, LANES);
        const u32 done = __shfl_sync(mask, to, j + u, LANES);
#pragma unroll
        for (int s = 0; s < PER_THREAD; ++s) {
#pragma unroll
          for (int v = 0; v < V; ++v) sum[s][v] = SCALED ? fmaf(f, row[u][s][v], sum[s][v]) : sum[s][v] + row[u][s][v];
        }
        if (j + u >= n || done == NO_ROW) continue;
#pragma unroll
        for (int s = 0; s < PER_THREAD; ++s) {
          const int c = column(tile, s, lane);
          if (inside(c)) {
            if (item.partial >= 0) store<V>(partials + (i64)done * LENGTH + c, sum[s]);
            else put(out + place((i64)done, OUT_PER_ROW, OUT_LD), c, sum[s]);
          }
          zero<V>(sum[s]);
        }
      }
    }
  }
}
)";

constexpr const char* kZeroRows = R"(
${ENTRY} {
  const i64 group = (i64)blockIdx.x * GROUPS + threadIdx.x / LANES;
  const int lane = threadIdx.x % LANES;
  const int tile = (int)(group % TILES);
  if (group / TILES >= count) return;
  Out* at = out + place((i64)rows[group / TILES], OUT_PER_ROW, OUT_LD);
  float none[V];
  zero<V>(none);
#pragma unroll
  for (int s = 0; s < PER_THREAD; ++s) {
    const int c = column(tile, s, lane);
    if (inside(c)) put(at, c, none);
  }
}
)";

constexpr const char* kTypedJoin = R"(
${ENTRY} {
  const i64 group = (i64)blockIdx.x * GROUPS + threadIdx.x / LANES;
  const int lane = threadIdx.x % LANES;
  const int tile = (int)(group % TILES);
  if (group / TILES >= num_rows) return;
  const SplitRow row = rows[group / TILES];
#pragma unroll
  for (int s = 0; s < PER_THREAD; ++s) {
    const int c = column(tile, s, lane);
    if (!inside(c)) continue;
    const float* from = partials + (i64)row.first * LENGTH + c;
    float sum[V];
    zero<V>(sum);
#pragma unroll 4
    for (int i = 0; i < row.count; ++i) {
      float part[V];
      load<V>(from + (i64)i * LENGTH, part);
#pragma unroll
      for (int v = 0; v < V; ++v) sum[v] += part[v];
    }
    put(out + place((i64)row.row, OUT_PER_ROW, OUT_LD), c, sum);
  }
}
)";

constexpr const char* kCopyRows = R"(
${ENTRY} {
  const i64 group = (i64)blockIdx.x * GROUPS + threadIdx.x / LANES;
  const int lane = threadIdx.x % LANES;
  const int tile = (int)(group % TILES);
  const i64 begin = group / TILES * COPY_BATCH;
  float row[COPY_BATCH][PER_THREAD][V];
#pragma unroll
  for (int u = 0; u < COPY_BATCH; ++u) {
    i64 from = first_in + begin + u;
    bool has = begin + u < count;
    if (has && map_in) {
      const u32 mapped = map_in[from];
      has = mapped != 0xffffffffu;
      from = mapped;
    }
    const float* in = x + place(from, IN_PER_ROW, IN_LD);
#pragma unroll
    for (int s = 0; s < PER_THREAD; ++s) {
      const int c = column(tile, s, lane);
      if (has && inside(c)) gather<V>(in + c, row[u][s]);
      else zero<V>(row[u][s]);
    }
  }
#pragma unroll
  for (int u = 0; u < COPY_BATCH; ++u) {
    i64 to = first_out + begin + u;
    if (begin + u >= count) continue;
    if (map_out) {
      const u32 mapped = map_out[to];
      if (mapped == 0xffffffffu) continue;
      to = mapped;
    }
    Out* at = out + place(to, OUT_PER_ROW, OUT_LD);
#pragma unroll
    for (int s = 0; s < PER_THREAD; ++s) {
      const int c = column(tile, s, lane);
      if (inside(c)) put(at, c, row[u][s]);
    }
  }
}
)";

constexpr const char* kSumPairs = R"(
${ENTRY} {
  const i64 group = (i64)blockIdx.x * GROUPS + threadIdx.x / LANES;
  const int lane = threadIdx.x % LANES;
  const int tile = (int)(group % TILES);
  if (group / TILES >= count) return;
  const i64 vertex = first + group / TILES;
  const i64 end = vertex_ptr[vertex + 1];
  float sum[PER_THREAD][V];
#pragma unroll
  for (int s = 0; s < PER_THREAD; ++s) zero<V>(sum[s]);
#pragma unroll 4
  for (i64 i = vertex_ptr[vertex]; i < end; ++i) {
    const u32 number = pair[i];
    const i64 r = (i64)number - (shift ? shift[type[number]] : 0);
#pragma unroll
    for (int s = 0; s < PER_THREAD; ++s) {
      const int c = column(tile, s, lane);
      float part[V];
      if (inside(c)) gather<V>(p + r * WIDTH + c, part);
      else zero<V>(part);
#pragma unroll
      for (int v = 0; v < V; ++v) sum[s][v] += part[v];
    }
  }
#pragma unroll
  for (int s = 0; s < PER_THREAD; ++s) {
    const int c = column(tile, s, lane);
    if (inside(c)) store<V>(out + vertex * WIDTH + c, sum[s]);
  }
}
)";

constexpr const char* kArrange = R"(
${ENTRY} {
  const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
  if (i >= (i64)TYPES * K * N) return;
  const i64 n = i % N, t = HOW == 2 ? i / N % TYPES : i / N / K, k = HOW == 2 ? i / N / TYPES : i / N % K;
  i64 at = (t * K + k) * LD + n;
  if (HOW == 1) at = (k * TYPES + t) * N + n;
  if (HOW == 3) at = (t * N + n) * LD + k;
#if BF16
  to[at] = to_bf16(from[i]);
#else
  to[at] = from[i];
  // The thread of the last element fills the rest of the row with zeros.
  if (HOW == 0 && n + 1 == N) {
    for (int j = N; j < LD; ++j) to[at + j - n] = 0.0f;
  }
  if (HOW == 3 && k + 1 == K) {
    for (int j = K; j < LD; ++j) to[at + j - k] = 0.0f;
  }
#endif
}
)";

// `length` is the length of the rows that are read, at least their width.
std::string row_text(int64_t width, bool bf16, int64_t length, int64_t tiles = 1) {
  const RowSplit r = split_row(length, tiles);
  const int64_t batch = std::clamp(kFloatsInFlight / (r.vectors * r.vector), 1, kRowsInFlight);
  return prelude() +
         defines({{"THREADS", kTypedThreads},
                  {"WIDTH", width},
                  {"V", r.vector},
                  {"LANES", r.lanes},
                  {"PER_THREAD", r.vectors}}) +
         defines({{"TILES", r.tiles},
                  {"LENGTH", length},
                  {"VECTORS", length / r.vector},
                  {"BATCH", std::bit_floor<uint64_t>(batch)}}) +
         defines({{"COPY_BATCH", kCopyBatch}, {"BF16", bf16 ? 1 : 0}}) + kGroups + struct_text<Segment>() +
         struct_text<SplitRow>() + kRow;
}

template <class Params>
Source typed_source(const char* name, const std::string& text) {
  return Entry(name).takes<Params>().source(text, kTypedThreads);
}

std::string place_text(const char* per_row, const char* ld, const RowPlace& place, int64_t width) {
  return defines({{per_row, place.per_row}, {ld, place.ld == 0 ? width : place.ld}});
}

std::string typed_text(const TypedSum& what, const char* body) {
  return row_text(what.width, what.bf16, length_of(what), what.tiles) +
         place_text("OUT_PER_ROW", "OUT_LD", what.out, what.width) + defines({{"SCALED", what.scaled ? 1 : 0}}) + body;
}

}  // namespace

RowSplit split_row(int64_t width, int64_t tiles) {
  RowSplit r;
  for (const int v : {4, 2}) {
    // Long vectors are used only if they leave no lane idle.
    if (width % v == 0 && width / v >= kFewestLanes) {
      r.vector = v;
      break;
    }
  }
  const int64_t vectors = std::max<int64_t>(1, width / r.vector);
  const auto share = [&](int64_t parts) { return (vectors + parts - 1) / parts; };
  r.lanes = static_cast<int>(
      std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(share(tiles)))), kFewestLanes, 32));
  const int64_t most = r.lanes * (kMostFloats / r.vector);
  const int64_t of_tile = share(std::max(tiles, share(most)));
  r.vectors = static_cast<int>((of_tile + r.lanes - 1) / r.lanes);
  r.tiles = static_cast<int>(share(int64_t{r.vectors} * r.lanes));
  return r;
}

int64_t typed_groups_of_block(int64_t width, int64_t tiles) { return kTypedThreads / split_row(width, tiles).lanes; }

Source typed_sum(const TypedSum& what) {
  return typed_source<TypedSumParams>("typed_sum", typed_text(what, kTypedSum));
}

Source typed_join(const TypedSum& what) {
  return typed_source<TypedJoinParams>("typed_join", typed_text(what, kTypedJoin));
}

Source zero_rows(const TypedSum& what) {
  return typed_source<ZeroRowsParams>("zero_rows", typed_text(what, kZeroRows));
}

Source copy_rows(const CopyRows& what) {
  return typed_source<CopyRowsParams>("copy_rows", row_text(what.width, what.bf16, what.width) +
                                                       place_text("IN_PER_ROW", "IN_LD", what.in, what.width) +
                                                       place_text("OUT_PER_ROW", "OUT_LD", what.out, what.width) +
                                                       kCopyRows);
}

Source sum_pairs(int64_t width) {
  return typed_source<SumPairsParams>("sum_pairs", row_text(width, false, width) + kSumPairs);
}

Source arrange_weights(Arrange how, int64_t types, int64_t k, int64_t n, bool bf16, int64_t ld) {
  if (ld == 0) ld = how == Arrange::flip ? k : n;
  return typed_source<ArrangeWeightsParams>(
      "arrange_weights",
      row_text(1, bf16, 1) +
          defines({{"HOW", static_cast<int64_t>(how)}, {"TYPES", types}, {"K", k}, {"N", n}, {"LD", ld}}) + kArrange);
}

}  // namespace nacre::cuda
