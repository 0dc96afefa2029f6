#include "nacre/kernel/cuda/lstm.h"

#include <algorithm>
#include <bit>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int kGroupThreads = 64;
constexpr int kTileThreads = 256;
constexpr int64_t kRowsOfThread = 4;
constexpr int kAddThreads = 128;
constexpr int kAddInFlight = 8;

constexpr const char* kCell = R"(
INLINE float sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }
// Returns the row of z that an edge reads.
INLINE i64 row_of(const u32* __restrict__ col, i64 edge) { return ON_EDGES ? edge : (i64)col[edge]; }

// Applies their functions to the gates i, f, g, o. Sets c to the state after the step, and returns h.
INLINE float step_forward(float* gate, float& c) {
  gate[0] = sigmoid(gate[0]);
  gate[1] = sigmoid(gate[1]);
  gate[2] = tanhf(gate[2]);
  gate[3] = sigmoid(gate[3]);
  c = fmaf(gate[1], c, gate[0] * gate[2]);
  return gate[3] * tanhf(c);
}

// Replaces i, f, g, o by the gradients of what went into their functions, and dc by that of the state before the step.
INLINE void step_backward(float* gate, float c_before, float dh, float& dc) {
  const float i = gate[0], f = gate[1], g = gate[2], o = gate[3];
  const float squashed = tanhf(fmaf(f, c_before, i * g));
  const float d = fmaf(dh * o, 1.0f - squashed * squashed, dc);
  gate[0] = d * g * i * (1.0f - i);
  gate[1] = d * c_before * f * (1.0f - f);
  gate[2] = d * i * (1.0f - g * g);
  gate[3] = dh * squashed * o * (1.0f - o);
  dc = d * f;
}
)";

// LANES threads run a sequence, and each has one unit. PADDED is the number of units rounded up to
// whole vectors.
constexpr const char* kGroupForward = R"(
${ENTRY} {
  __shared__ float4 states[THREADS / LANES][2][PADDED / 4];
  const int group = threadIdx.x / LANES, unit = threadIdx.x % LANES;
  const u32 mask = group_mask<LANES>();
  const i64 position = (i64)blockIdx.x * (THREADS / LANES) + group;
  if (position >= count) return;
  const bool mine = unit < H;
  const i64 row = order[first + position];
  const i64 begin = row_ptr[row], steps = row_ptr[row + 1] - begin;
  const i64 at = KEEP ? entry[first + position] - entry[first] : 0;
  float weight[PADDED][4];
#pragma unroll
  for (int k = 0; k < PADDED; ++k) {
#pragma unroll
    for (int j = 0; j < 4; ++j) weight[k][j] = mine && k < H ? w[k * 4 * H + j * H + unit] : 0.0f;
  }
  float* state = (float*)states[group];
  for (int i = unit; i < 2 * PADDED; i += LANES) state[i] = 0.0f;
  __syncwarp(mask);
  // The gates of the next AHEAD steps, which are read before they are needed.
  float ahead[AHEAD][4];
#pragma unroll
  for (int u = 0; u < AHEAD; ++u) {
    const float* from = z + (u < steps ? row_of(col, begin + u) : 0) * 4 * H + unit;
#pragma unroll
    for (int j = 0; j < 4; ++j) ahead[u][j] = u < steps && mine ? __ldg(from + j * H) : 0.0f;
  }
  float c = 0.0f, h = 0.0f;
  int side = 0;
  for (i64 base = 0; base < steps; base += AHEAD) {
    i64 next[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; ++u) next[u] = base + AHEAD + u < steps ? row_of(col, begin + base + AHEAD + u) : -1;
#pragma unroll
    for (int u = 0; u < AHEAD; ++u) {
      const i64 t = base + u;
      if (t >= steps) break;
      float gate[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) gate[j] = ahead[u][j];
      if (next[u] >= 0 && mine) {
        const float* from = z + next[u] * 4 * H + unit;
#pragma unroll
        for (int j = 0; j < 4; ++j) ahead[u][j] = __ldg(from + j * H);
      }
      const float4* before = (const float4*)(state + side * PADDED);
#pragma unroll
      for (int k = 0; k < PADDED / 4; ++k) {
        const float4 s = before[k];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          gate[j] = fmaf(s.x, weight[4 * k][j], gate[j]);
          gate[j] = fmaf(s.y, weight[4 * k + 1][j], gate[j]);
          gate[j] = fmaf(s.z, weight[4 * k + 2][j], gate[j]);
          gate[j] = fmaf(s.w, weight[4 * k + 3][j], gate[j]);
        }
      }
      const float old_c = c, old_h = h;
      h = step_forward(gate, c);
      if (KEEP && mine) {
        float* to = gates + (at + t) * 4 * H + unit;
#pragma unroll
        for (int j = 0; j < 4; ++j) to[j * H] = gate[j];
        h_before[(at + t) * H + unit] = old_h;
        c_before[(at + t) * H + unit] = old_c;
      }
      side ^= 1;
      if (mine) state[side * PADDED + unit] = h;
      __syncwarp(mask);
    }
  }
  if (!KEEP && mine) out[row * H + unit] = h;
}
)";

constexpr const char* kGroupBackward = R"(
${ENTRY} {
  __shared__ float4 grads[THREADS / LANES][2][PADDED];
  const int group = threadIdx.x / LANES, unit = threadIdx.x % LANES;
  const u32 mask = group_mask<LANES>();
  const i64 position = (i64)blockIdx.x * (THREADS / LANES) + group;
  if (position >= count) return;
  const bool mine = unit < H;
  const i64 row = order[first + position];
  const i64 begin = row_ptr[row], steps = row_ptr[row + 1] - begin;
  const i64 at = entry[first + position] - entry[first];
  // Row `unit` of the matrix. The gates of a unit stand together, as in `grads`.
  float weight[PADDED][4];
#pragma unroll
  for (int k = 0; k < PADDED; ++k) {
#pragma unroll
    for (int j = 0; j < 4; ++j) weight[k][j] = mine && k < H ? w[unit * 4 * H + j * H + k] : 0.0f;
  }
  for (int i = unit; i < 2 * PADDED; i += LANES) grads[group][i / PADDED][i % PADDED] = make_float4(0, 0, 0, 0);
  __syncwarp(mask);
  float dh = mine ? g[row * H + unit] : 0.0f, dc = 0.0f;
  float ahead[AHEAD][5];
#pragma unroll
  for (int u = 0; u < AHEAD; ++u) {
    const i64 t = steps - 1 - u;
#pragma unroll
    for (int j = 0; j < 4; ++j) ahead[u][j] = t >= 0 && mine ? gates[(at + t) * 4 * H + j * H + unit] : 0.0f;
    ahead[u][4] = t >= 0 && mine ? c_before[(at + t) * H + unit] : 0.0f;
  }
  int side = 0;
  for (i64 base = steps - 1; base >= 0; base -= AHEAD) {
#pragma unroll
    for (int u = 0; u < AHEAD; ++u) {
      const i64 t = base - u;
      if (t < 0) break;
      float gate[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) gate[j] = ahead[u][j];
      const float before = ahead[u][4];
      if (t >= AHEAD && mine) {
#pragma unroll
        for (int j = 0; j < 4; ++j) ahead[u][j] = gates[(at + t - AHEAD) * 4 * H + j * H + unit];
        ahead[u][4] = c_before[(at + t - AHEAD) * H + unit];
      }
      step_backward(gate, before, dh, dc);
      if (mine) {
        float* to = gates + (at + t) * 4 * H + unit;
#pragma unroll
        for (int j = 0; j < 4; ++j) to[j * H] = gate[j];
        if (ON_EDGES) {
#pragma unroll
          for (int j = 0; j < 4; ++j) dz[(begin + t) * 4 * H + j * H + unit] = gate[j];
        }
        grads[group][side][unit] = make_float4(gate[0], gate[1], gate[2], gate[3]);
      }
      __syncwarp(mask);
      float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
      for (int k = 0; k < PADDED; ++k) {
        const float4 d = grads[group][side][k];
        sum[0] = fmaf(d.x, weight[k][0], sum[0]);
        sum[1] = fmaf(d.y, weight[k][1], sum[1]);
        sum[2] = fmaf(d.z, weight[k][2], sum[2]);
        sum[3] = fmaf(d.w, weight[k][3], sum[3]);
      }
      dh = (sum[0] + sum[1]) + (sum[2] + sum[3]);
      side ^= 1;
    }
  }
}
)";

// A block of threads computes ROWS rows. Its threads share the items of each step; an item is one
// hidden unit of the LSTM in RT rows.
constexpr const char* kTile = R"(
#define ITEMS (H * (ROWS / RT))
struct Row { i64 number, begin, steps, at; };
INLINE Row row_at(const u32* __restrict__ order, const i64* __restrict__ row_ptr, const i64* __restrict__ entry,
                  i64 first, i64 count, i64 position) {
  Row r = {0, 0, 0, 0};
  if (position >= count) return r;
  r.number = order[first + position];
  r.begin = row_ptr[r.number];
  r.steps = row_ptr[r.number + 1] - r.begin;
  r.at = entry ? entry[first + position] - entry[first] : 0;
  return r;
}
)";

constexpr const char* kTileForward = R"(
${ENTRY} {
  extern __shared__ float shared[];
  __shared__ Row rows[ROWS];
  float* state = shared;                  // [2][ROWS][H]
  float* cell = state + 2 * ROWS * H;     // [ROWS][H]
  const float* weight = w;
  if (CACHED) {
    float* copy = cell + ROWS * H;
    for (int i = threadIdx.x; i < 4 * H * H; i += THREADS) copy[i] = w[i];
    weight = copy;
  }
  if (threadIdx.x < ROWS) {
    rows[threadIdx.x] = row_at(order, row_ptr, KEEP ? entry : nullptr, first, count,
                               (i64)blockIdx.x * ROWS + threadIdx.x);
  }
  for (int i = threadIdx.x; i < 3 * ROWS * H; i += THREADS) state[i] = 0.0f;
  __syncthreads();
  const i64 longest = rows[0].steps;  // rows come longest first
  for (i64 t = 0; t < longest; ++t) {
    const float* before = state + (t & 1) * ROWS * H;
    float* after = state + ((t + 1) & 1) * ROWS * H;
    for (int item = threadIdx.x; item < ITEMS; item += THREADS) {
      const int unit = item % H, r0 = item / H * RT;
      float gate[RT][4];
#pragma unroll
      for (int r = 0; r < RT; ++r) {
        const bool runs = t < rows[r0 + r].steps;
        const float* from = z + (runs ? row_of(col, rows[r0 + r].begin + t) : 0) * 4 * H + unit;
#pragma unroll
        for (int j = 0; j < 4; ++j) gate[r][j] = runs ? __ldg(from + j * H) : 0.0f;
      }
#pragma unroll 4
      for (int k = 0; k < H; ++k) {
        float wk[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) wk[j] = weight[k * 4 * H + j * H + unit];
#pragma unroll
        for (int r = 0; r < RT; ++r) {
          const float s = before[(r0 + r) * H + k];
#pragma unroll
          for (int j = 0; j < 4; ++j) gate[r][j] = fmaf(s, wk[j], gate[r][j]);
        }
      }
#pragma unroll
      for (int r = 0; r < RT; ++r) {
        const int here = (r0 + r) * H + unit;
        const float old_h = before[here];
        if (t >= rows[r0 + r].steps) {
          after[here] = old_h;
          continue;
        }
        float c = cell[here];
        const float old_c = c;
        after[here] = step_forward(gate[r], c);
        cell[here] = c;
        if (KEEP) {
          const i64 e = rows[r0 + r].at + t;
#pragma unroll
          for (int j = 0; j < 4; ++j) gates[e * 4 * H + j * H + unit] = gate[r][j];
          h_before[e * H + unit] = old_h;
          c_before[e * H + unit] = old_c;
        }
      }
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < (KEEP ? 0 : ROWS * H); i += THREADS) {
    if (rows[i / H].steps > 0) out[rows[i / H].number * H + i % H] = state[(longest & 1) * ROWS * H + i];
  }
}
)";

constexpr const char* kTileBackward = R"(
${ENTRY} {
  extern __shared__ float shared[];
  __shared__ Row rows[ROWS];
  float* grad = shared;                 // [ROWS][4H]
  float* dh = grad + ROWS * 4 * H;      // [ROWS][H]
  float* dc = dh + ROWS * H;            // [ROWS][H]
  const float* weight = w;              // [4H][H]
  if (CACHED) {
    float* copy = dc + ROWS * H;
    for (int i = threadIdx.x; i < 4 * H * H; i += THREADS) copy[i] = w[i];
    weight = copy;
  }
  if (threadIdx.x < ROWS) {
    rows[threadIdx.x] = row_at(order, row_ptr, entry, first, count, (i64)blockIdx.x * ROWS + threadIdx.x);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ROWS * H; i += THREADS) {
    dh[i] = rows[i / H].steps > 0 ? g[rows[i / H].number * H + i % H] : 0.0f;
    dc[i] = 0.0f;
  }
  __syncthreads();
  for (i64 t = rows[0].steps - 1; t >= 0; --t) {
    for (int i = threadIdx.x; i < ROWS * H; i += THREADS) {
      const int r = i / H, unit = i % H;
      float gate[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (t < rows[r].steps) {
        const i64 e = rows[r].at + t;
        float* at = gates + e * 4 * H + unit;
#pragma unroll
        for (int j = 0; j < 4; ++j) gate[j] = at[j * H];
        float d = dc[i];
        step_backward(gate, c_before[e * H + unit], dh[i], d);
        dc[i] = d;
#pragma unroll
        for (int j = 0; j < 4; ++j) at[j * H] = gate[j];
        if (ON_EDGES) {
#pragma unroll
          for (int j = 0; j < 4; ++j) dz[(rows[r].begin + t) * 4 * H + j * H + unit] = gate[j];
        }
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) grad[r * 4 * H + j * H + unit] = gate[j];
    }
    __syncthreads();
    for (int item = threadIdx.x; item < ITEMS; item += THREADS) {
      const int unit = item % H, r0 = item / H * RT;
      float sum[RT];
#pragma unroll
      for (int r = 0; r < RT; ++r) sum[r] = 0.0f;
#pragma unroll 8
      for (int k = 0; k < 4 * H; ++k) {
        const float wk = weight[k * H + unit];
#pragma unroll
        for (int r = 0; r < RT; ++r) sum[r] = fmaf(grad[(r0 + r) * 4 * H + k], wk, sum[r]);
      }
#pragma unroll
      for (int r = 0; r < RT; ++r) {
        if (t < rows[r0 + r].steps) dh[(r0 + r) * H + unit] = sum[r];
      }
    }
    __syncthreads();
  }
}
)";

constexpr const char* kAddRows = R"(${ENTRY} {
  const i64 s = (i64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (s >= count) return;
  const Segment item = items[s];
  float* row_to = item.partial >= 0 ? partials + (i64)item.partial * WIDTH : to + (i64)item.row * WIDTH;
  for (int c = lane * V; c < WIDTH; c += 32 * V) {
    float sum[V];
    if (item.partial >= 0) zero<V>(sum);
    else load<V>(row_to + c, sum);
    for (i64 i = item.begin; i < item.end; i += IN_FLIGHT) {
      float row[IN_FLIGHT][V];
#pragma unroll
      for (int u = 0; u < IN_FLIGHT; ++u) {
        if (i + u < item.end) gather<V>(from + (rows ? (i64)rows[i + u] : i + u) * WIDTH + c, row[u]);
        else zero<V>(row[u]);
      }
#pragma unroll
      for (int u = 0; u < IN_FLIGHT; ++u) {
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] += row[u][v];
      }
    }
    store<V>(row_to + c, sum);
  }
}
)";

// Returns the number of threads of a group.
int64_t lanes_of(int64_t hidden) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, hidden))));
}

struct Tile {
  int64_t rows;
  bool cached;  // the matrix is copied to shared memory
  int64_t shared_bytes;
};

// Returns a tile with as many rows as leave room for about two blocks on a multiprocessor. The
// matrix is copied to shared memory if it then fits.
Tile tile_of(const LstmShape& shape, int64_t floats_of_row) {
  constexpr int64_t kWord = sizeof(float);
  const int64_t most = shape.shared_bytes - 1024;  // the rest is for the numbers of the rows
  Tile tile = {16, false, 0};
  while (tile.rows > kRowsOfThread && tile.rows * floats_of_row * kWord > most / 2) tile.rows /= 2;
  if (tile.rows * floats_of_row * kWord > most) tile.rows = 1;
  const int64_t states = tile.rows * floats_of_row * kWord;
  const int64_t matrix = 4 * shape.hidden * shape.hidden * kWord;
  tile.cached = states + matrix <= most;
  tile.shared_bytes = states + (tile.cached ? matrix : 0);
  return tile;
}

Source lstm_source(const Entry& entry, const LstmShape& shape, bool keep, bool backward) {
  const int64_t h = shape.hidden;
  std::string text = prelude() + defines({{"H", h}, {"ON_EDGES", shape.on_edges ? 1 : 0}, {"KEEP", keep ? 1 : 0}});
  if (!shape.in_tiles) {
    // The matrix takes up to 128 registers of a thread. With 12 warps on a multiprocessor, 40
    // registers are left for everything else.
    text += defines({{"THREADS", kGroupThreads}, {"LANES", lanes_of(h)}, {"PADDED", (h + 3) / 4 * 4}});
    text += defines({{"AHEAD", h > 16 ? 2 : 4}, {"BLOCKS", h > 16 ? 6 : 8}});
    text += kCell;
    text += backward ? kGroupBackward : kGroupForward;
    return entry.source(text, kGroupThreads);
  }
  const Tile tile = tile_of(shape, (backward ? 6 : 3) * h);
  text += defines({{"THREADS", kTileThreads},
                   {"ROWS", tile.rows},
                   {"RT", std::min(tile.rows, kRowsOfThread)},
                   {"CACHED", tile.cached ? 1 : 0}});
  text += kCell;
  text += kTile;
  text += backward ? kTileBackward : kTileForward;
  return entry.source(text, kTileThreads, tile.shared_bytes);
}

const char* bounds_of(const LstmShape& shape) { return shape.in_tiles ? "THREADS" : "THREADS, BLOCKS"; }

}  // namespace

int64_t lstm_rows_of_block(const LstmShape& shape, bool backward) {
  if (!shape.in_tiles) return kGroupThreads / lanes_of(shape.hidden);
  return tile_of(shape, (backward ? 6 : 3) * shape.hidden).rows;
}

Source lstm_forward(const LstmShape& shape, bool keep) {
  return lstm_source(Entry("lstm_forward", bounds_of(shape)).takes<LstmRunParams>().takes<LstmForwardParams>(), shape,
                     keep, false);
}

Source lstm_backward(const LstmShape& shape) {
  return lstm_source(Entry("lstm_backward", bounds_of(shape)).takes<LstmRunParams>().takes<LstmBackwardParams>(), shape,
                     false, true);
}

Source add_rows(int64_t width) {
  const std::string text = prelude() +
                           defines({{"THREADS", kAddThreads},
                                    {"WIDTH", width},
                                    {"V", width % 4 == 0   ? 4
                                          : width % 2 == 0 ? 2
                                                           : 1},
                                    {"IN_FLIGHT", kAddInFlight}}) +
                           "\n" + struct_text<Segment>() + kAddRows;
  return Entry("add_rows").takes<AddRowsParams>().source(text, kAddThreads);
}

int64_t add_rows_of_block() { return kAddThreads / 32; }

}  // namespace nacre::cuda
