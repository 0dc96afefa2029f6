#include "nacre/kernel/cuda/sample.h"

#include <algorithm>
#include <bit>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int kSampleThreads = 256;
constexpr int kWarpThreads = 128;  // threads of a block if a warp works on a destination

constexpr const char* kHead = R"(
#define HERE ((i64)blockIdx.x * THREADS + threadIdx.x)

// Returns the batch that number i belongs to: the last one that does not begin after it.
INLINE i64 batch_of(const i64* __restrict__ ptr, i64 batches, i64 i) {
  i64 low = 0, high = batches;
  while (high - low > 1) {
    const i64 middle = (low + high) / 2;
    if (ptr[middle] <= i) low = middle; else high = middle;
  }
  return low;
}
)";

constexpr const char* kNumberSeeds = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const i64 b = batch_of(dst_ptr, batches, i);
  const u32 v = vertices[i];
  if (v >= num_nodes || atomicMin(table + b * num_nodes + v, (u32)(i - dst_ptr[b])) != 0xffffffffu) {
    atomicAdd(errors, 1u);
  }
}
)";

constexpr const char* kLookUpRows = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const i64* row = row_ptr + vertices[i];
  const i64 begin = row[0];
  const u32 degree = (u32)(row[1] - begin);
  begins[i] = begin;
  degrees[i] = degree;
  if (FANOUT < 0) counts[i] = degree;
  else if (REPLACE) counts[i] = degree > 0 ? (u32)FANOUT : 0u;
  else counts[i] = degree < (u32)FANOUT ? degree : (u32)FANOUT;
}
)";

constexpr const char* kCountWeighted = R"(
${ENTRY} {
  const i64 i = HERE / 32;
  if (i >= count) return;
  const u32 lane = threadIdx.x % 32, degree = degrees[i];
  const float* w = weight + begins[i];
  u32 positive = 0;
  for (u32 first = 0; first < degree && positive < FANOUT; first += 32) {
    const bool here = first + lane < degree && w[first + lane] > 0.0f;
    positive += (u32)__popc(__ballot_sync(0xffffffffu, here));
  }
  if (lane == 0) counts[i] = positive == 0 ? 0u : REPLACE || positive > FANOUT ? (u32)FANOUT : positive;
}
)";

constexpr const char* kTakeEnds = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i < count) out[i] = sums[places[i]];
}
)";

// The draws of sample/draw.h. Doubles are rounded after every operation, because the compiler never
// fuses the functions whose names end in _rn.
constexpr const char* kDraw = R"(

// Makes edge number `at` of the hop, which belongs to batch b, the edge `edge` of the graph.
#define PUT(b, at, edge) { \
    const i64 put_edge = (edge), put_at = (at); \
    const u32 put_source = col[put_edge]; \
    edges[put_at] = put_edge; \
    sources[put_at] = put_source; \
    atomicMin(table + (b) * num_nodes + put_source, (u32)(dst_ptr[(b) + 1] - dst_ptr[b] + put_at - edge_ptr[b])); \
  }

INLINE u32 below(u32 word, u64 n) { return (u32)(((u64)word * n) >> 32); }
INLINE u32 word_of(uint4 four, u32 i) { return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w; }
INLINE u32 word_at(u64 key, u32 hop, u32 vertex, u32 i) {
  return word_of(philox(key, hop, (u64)vertex << 32 | i / 4), i % 4);
}
INLINE double open_unit(u32 hi, u32 lo) {
  return __dmul_rn(__dadd_rn((double)(((u64)hi << 32 | lo) >> 12), 0.5), 0x1.0p-52);
}
INLINE double natural_log(double x) {
  u64 bits = (u64)__double_as_longlong(x);
  int exponent = (int)(bits >> 52) - 1022;
  bits = (bits & 0x000FFFFFFFFFFFFFull) | 0x3FE0000000000000ull;
  double m = __longlong_as_double((i64)bits);
  if (m < 0x1.6A09E667F3BCDp-1) { m = __dmul_rn(m, 2.0); exponent = exponent - 1; }
  const double s = __ddiv_rn(__dadd_rn(m, -1.0), __dadd_rn(m, 1.0));
  const double z = __dmul_rn(s, s);
  double series = 1.0 / 21;
#pragma unroll
  for (int power = 19; power >= 1; power -= 2) series = __dadd_rn(__dmul_rn(series, z), 1.0 / power);
  return __dadd_rn(__dmul_rn((double)exponent, 0x1.62E42FEFA39EFp-1), __dmul_rn(__dmul_rn(2.0, s), series));
}
INLINE double one_minus_exp(double x) {
  if (!(x < 40.0)) return 1.0;
  const int n = (int)__dmul_rn(x, 0x1.71547652B82FEp+0);
  const double r = __dadd_rn(__dadd_rn(x, -__dmul_rn((double)n, 0x1.62E42FEE00000p-1)),
                             -__dmul_rn((double)n, 0x1.A39EF35793C76p-33));
  double series = 1.0;
  for (int i = 18; i >= 2; --i) series = __dadd_rn(1.0, -__ddiv_rn(__dmul_rn(series, r), (double)i));
  const double small = __dmul_rn(series, r);
  if (n == 0) return small;
  double half = 1.0;
  for (int i = 0; i < n; ++i) half = __dmul_rn(half, 0.5);
  return __dadd_rn(1.0, -__dmul_rn(half, __dadd_rn(1.0, -small)));
}
)";

// LANES threads work on a destination, and each makes one draw.
constexpr const char* kPickFew = R"(
${ENTRY} {
  const i64 i = HERE / LANES;
  if (i >= count) return;
  const u32 lane = threadIdx.x % LANES, mask = group_mask<LANES>();
  const i64 b = batch_of(dst_ptr, batches, i), begin = begins[i], at = offsets[i];
  const u32 degree = degrees[i];
  if (!REPLACE && degree <= FANOUT) {
    if (lane < degree) {
      scale[at + lane] = 1.0f;
      PUT(b, at + lane, begin + lane);
    }
    return;
  }
  if (degree == 0) return;
  const u32 top = REPLACE ? degree - 1 : degree - FANOUT + lane;
  u32 drawn = below(word_at(keys[b], hop, vertices[i], lane), (u64)top + 1);
  if (lane >= FANOUT) drawn = 0xffffffffu;
  u32 pick = drawn;
  if (!REPLACE) {
#pragma unroll
    for (u32 m = 0; m + 1 < FANOUT; ++m) {
      const u32 before = __shfl_sync(mask, pick, m, LANES);
      if (m < lane && lane < FANOUT && drawn == before) pick = top;
    }
  }
  u32 place = 0;
#pragma unroll
  for (u32 m = 0; m < FANOUT; ++m) {
    const u32 other = __shfl_sync(mask, pick, m, LANES);
    place += other < pick || (REPLACE && other == pick && m < lane);
  }
  if (lane >= FANOUT) return;
  scale[at + lane] = __fdiv_rn((float)degree, (float)FANOUT);
  PUT(b, at + place, begin + pick);
}
)";

// A warp works on a destination and keeps its draws in shared memory.
constexpr const char* kPickMany = R"(
${ENTRY} {
  extern __shared__ u32 drawn_by_all[];
  const i64 i = HERE / 32;
  if (i >= count) return;
  u32* drawn = drawn_by_all + threadIdx.x / 32 * FANOUT;
  const u32 lane = threadIdx.x % 32, degree = degrees[i];
  const i64 b = batch_of(dst_ptr, batches, i), begin = begins[i], at = offsets[i];
  if (!REPLACE && degree <= FANOUT) {
    for (u32 k = lane; k < degree; k += 32) {
      scale[at + k] = 1.0f;
      PUT(b, at + k, begin + k);
    }
    return;
  }
  if (degree == 0) return;
  for (u32 k = lane; k < FANOUT; k += 32) {
    drawn[k] = below(word_at(keys[b], hop, vertices[i], k), REPLACE ? (u64)degree : (u64)(degree - FANOUT + k) + 1);
  }
  __syncwarp();
  if (!REPLACE) {
    for (u32 k = 1; k < FANOUT; ++k) {
      const u32 t = drawn[k];
      bool met = false;
      for (u32 m = lane; m < k; m += 32) met |= drawn[m] == t;
      const bool taken = __any_sync(0xffffffffu, met) != 0;
      __syncwarp();
      if (taken && lane == 0) drawn[k] = degree - FANOUT + k;
      __syncwarp();
    }
  }
  for (u32 k = lane; k < FANOUT; k += 32) {
    const u32 pick = drawn[k];
    u32 place = 0;
    for (u32 m = 0; m < FANOUT; ++m) place += drawn[m] < pick || (REPLACE && drawn[m] == pick && m < k);
    scale[at + k] = __fdiv_rn((float)degree, (float)FANOUT);
    PUT(b, at + place, begin + pick);
  }
}
)";

// A warp works on a destination. The FANOUT + 1 least keys so far lie in shared memory, in order.
constexpr const char* kPickLeast = R"(
${ENTRY} {
  extern __shared__ double least_of_all[];
  const i64 i = HERE / 32;
  if (i >= count) return;
  double* least = least_of_all + threadIdx.x / 32 * ROOM;
  u32* index = (u32*)(least_of_all + THREADS / 32 * ROOM) + threadIdx.x / 32 * ROOM;
  const u32 lane = threadIdx.x % 32, degree = degrees[i], all = 0xffffffffu;
  const i64 b = batch_of(dst_ptr, batches, i), begin = begins[i], at = offsets[i];
  const float* w = weight + begin;
  u32 size = 0;
  for (u32 first = 0; first < degree; first += 32) {
    const u32 k = first + lane;
    const float own = k < degree ? w[k] : 0.0f;
    double key = 0.0;
    if (own > 0.0f) {
      const uint4 four = philox(keys[b], hop, (u64)vertices[i] << 32 | k / 2);
      key = __ddiv_rn(-natural_log(k % 2 ? open_unit(four.z, four.w) : open_unit(four.x, four.y)), (double)own);
    }
    // Later candidates lose ties, so equal keys do not come in.
    u32 waiting = __ballot_sync(all, own > 0.0f && (size < ROOM || key < least[ROOM - 1]));
    while (waiting) {
      const int from = __ffs((int)waiting) - 1;
      waiting &= waiting - 1;
      const double fresh = __shfl_sync(all, key, from);
      if (size == ROOM && !(fresh < least[ROOM - 1])) continue;
      u32 place = 0;
      for (u32 m = 0; m < size; m += 32) {
        place += (u32)__popc(__ballot_sync(all, m + lane < size && least[m + lane] <= fresh));
      }
      const u32 last = size < ROOM ? size : ROOM - 1;
      for (u32 high = last; high > place; high = high > 32 ? high - 32 : 0) {
        const bool move = high > lane && high - lane > place;
        const double moved = move ? least[high - lane - 1] : 0.0;
        const u32 moved_index = move ? index[high - lane - 1] : 0;
        __syncwarp();
        if (move) { least[high - lane] = moved; index[high - lane] = moved_index; }
        __syncwarp();
      }
      __syncwarp();  // waits until all threads have read the key that this may overwrite
      if (lane == 0) { least[place] = fresh; index[place] = first + from; }
      size = last + 1;
      __syncwarp();
    }
  }
  const u32 taken = size < ROOM ? size : FANOUT;
  const double threshold = size < ROOM ? __longlong_as_double(0x7FF0000000000000ll) : least[FANOUT];
  for (u32 k = lane; k < taken; k += 32) {
    const u32 pick = index[k];
    u32 place = 0;
    for (u32 m = 0; m < taken; ++m) place += index[m] < pick;
    scale[at + place] = (float)__ddiv_rn(1.0, one_minus_exp(__dmul_rn((double)w[pick], threshold)));
    PUT(b, at + place, begin + pick);
  }
}
)";

// A warp works on a destination, and each thread makes one draw of 32 at a time. The order of the
// additions decides the bits of the running sums, so every thread computes all of them one after
// the other.
constexpr const char* kPickBySums = R"(
${ENTRY} {
  extern __shared__ u32 drawn_by_all[];
  const i64 i = HERE / 32;
  if (i >= count) return;
  u32* drawn = drawn_by_all + threadIdx.x / 32 * FANOUT;
  const u32 lane = threadIdx.x % 32, degree = degrees[i], all = 0xffffffffu;
  const i64 b = batch_of(dst_ptr, batches, i), begin = begins[i], at = offsets[i];
  if (offsets[i + 1] == at) return;
  const float* w = weight + begin;
  double total = 0.0;
  for (u32 first = 0; first < degree; first += 32) {
    const float own = first + lane < degree ? w[first + lane] : 0.0f;
    for (u32 m = 0; m < 32; ++m) total = __dadd_rn(total, (double)__shfl_sync(all, own, m));
  }
  for (u32 k = lane; k - lane < FANOUT; k += 32) {
    const uint4 four = philox(keys[b], hop, (u64)vertices[i] << 32 | k / 2);
    const double mark = __dmul_rn(k % 2 ? open_unit(four.z, four.w) : open_unit(four.x, four.y), total);
    double sum = 0.0;
    u32 found = degree - 1;
    bool open = true;
    for (u32 first = 0; first < degree; first += 32) {
      const float own = first + lane < degree ? w[first + lane] : 0.0f;
      for (u32 m = 0; m < 32; ++m) {
        sum = __dadd_rn(sum, (double)__shfl_sync(all, own, m));
        if (open && sum > mark) { found = first + m; open = false; }
      }
      if (!__any_sync(all, open)) break;
    }
    if (k < FANOUT) drawn[k] = found;
  }
  __syncwarp();
  for (u32 k = lane; k < FANOUT; k += 32) {
    const u32 pick = drawn[k];
    u32 place = 0;
    for (u32 m = 0; m < FANOUT; ++m) place += drawn[m] < pick || (drawn[m] == pick && m < k);
    scale[at + place] = (float)__ddiv_rn(total, __dmul_rn((double)FANOUT, (double)w[pick]));
    PUT(b, at + place, begin + pick);
  }
}
)";

// Each thread works on one edge, because rows may have any length.
constexpr const char* kPickAll = R"(
${ENTRY} {
  const i64 e = HERE;
  if (e >= count) return;
  const i64 b = batch_of(edge_ptr, batches, e);
  i64 low = dst_ptr[b], high = dst_ptr[b + 1];
  while (high - low > 1) {
    const i64 middle = (low + high) / 2;
    if (offsets[middle] <= e) low = middle; else high = middle;
  }
  if (scale) scale[e] = 1.0f;
  PUT(b, e, begins[low] + e - offsets[low]);
}
)";

constexpr const char* kMarkFirst = R"(
${ENTRY} {
  const i64 e = HERE;
  if (e >= count) return;
  const i64 b = batch_of(edge_ptr, batches, e);
  ones[e] = table[b * num_nodes + sources[e]] == (u32)(dst_ptr[b + 1] - dst_ptr[b] + e - edge_ptr[b]);
}
)";

constexpr const char* kNumberNew = R"(
${ENTRY} {
  const i64 e = HERE;
  if (e >= count || !ones[e]) return;
  const i64 b = batch_of(edge_ptr, batches, e);
  const i64 number = dst_ptr[b + 1] - dst_ptr[b] + sums[e] - sums[edge_ptr[b]];
  const u32 v = sources[e];
  next[next_ptr[b] + number] = v;
  table[b * num_nodes + v] = (u32)number;
}
)";

constexpr const char* kKeepKnown = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const i64 b = batch_of(dst_ptr, batches, i);
  next[next_ptr[b] + i - dst_ptr[b]] = vertices[i];
}
)";

constexpr const char* kRelabel = R"(
${ENTRY} {
  const i64 e = HERE;
  if (e < count) sources[e] = table[batch_of(edge_ptr, batches, e) * num_nodes + sources[e]];
}
)";

constexpr const char* kBlockRows = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const i64 b = batch_of(dst_ptr, batches, i);
  row_ptr[i + b + 1] = offsets[i + 1] - edge_ptr[b];
}
)";

constexpr const char* kTakeValues = R"(
${ENTRY} {
  const i64 e = HERE;
  if (e < count) to[e] = from[edges[e]];
}
)";

constexpr const char* kGatherRows = R"(
${ENTRY} {
  const i64 i = HERE, row = i / WORDS;
  if (row < rows) out[i] = __ldg(table + (i64)ids[row] * WORDS + i % WORDS);
}
)";

constexpr const char* kScatterRows = R"(
${ENTRY} {
  const i64 i = HERE, row = i / WORDS;
  if (row < rows) table[(i64)ids[row] * WORDS + i % WORDS] = from[i];
}
)";

Source make(const Entry& entry, const std::string& text, int threads, int64_t shared_bytes) {
  return entry.source(prelude() + defines({{"THREADS", threads}}) + kHead + text, threads, shared_bytes);
}

template <class Params>
Source make(const char* name, const std::string& text, int threads = kSampleThreads, int64_t shared_bytes = 0) {
  return make(Entry(name).takes<Params>(), text, threads, shared_bytes);
}

template <class Params>
Source make_over_edges(const char* name, const std::string& text) {
  return make(Entry(name).takes<HopEdgesParams>().takes<Params>(), text, kSampleThreads, 0);
}

std::string draws(int fanout, bool replace, int lanes = 32) {
  return defines({{"FANOUT", fanout}, {"REPLACE", replace ? 1 : 0}, {"LANES", lanes}, {"ROOM", fanout + 1}});
}

// Rows are copied in words of 16 bytes if their width allows it.
std::string words_of(int64_t width) {
  return std::string("typedef ") + (width % 4 == 0 ? "float4" : "float") + " RowWord;\n" +
         defines({{"WORDS", gather_threads(1, width)}});
}

}  // namespace

int pick_lanes(int fanout, bool weighted) {
  if (weighted || fanout > 32) return 32;
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(fanout, 2))));
}

Source number_seeds() { return make<NumberSeedsParams>("number_seeds", kNumberSeeds); }
Source look_up_rows(int fanout, bool replace) {
  return make<LookUpRowsParams>("look_up_rows", draws(fanout, replace) + kLookUpRows);
}
Source count_weighted(int fanout, bool replace) {
  return make<CountWeightedParams>("count_weighted", draws(fanout, replace) + kCountWeighted);
}
Source take_ends() { return make<TakeEndsParams>("take_ends", kTakeEnds); }

Source pick_uniform(int fanout, bool replace) {
  const std::string head = draws(fanout, replace, pick_lanes(fanout, false)) + kDraw;
  if (fanout <= 32) return make<PickParams>("pick_uniform", head + kPickFew);
  return make<PickParams>("pick_uniform", head + kPickMany, kWarpThreads, int64_t{fanout} * (kWarpThreads / 32) * 4);
}

Source pick_weighted(int fanout, bool replace) {
  const std::string head = draws(fanout, replace) + kDraw;
  const int64_t warps = kWarpThreads / 32;
  if (replace) return make<PickParams>("pick_weighted", head + kPickBySums, kWarpThreads, warps * fanout * 4);
  return make<PickParams>("pick_weighted", head + kPickLeast, kWarpThreads, warps * (fanout + 1) * 12);
}

Source pick_all() { return make<PickParams>("pick_all", std::string(kDraw) + kPickAll); }
Source mark_first() { return make_over_edges<MarkFirstParams>("mark_first", kMarkFirst); }
Source number_new() { return make_over_edges<NumberNewParams>("number_new", kNumberNew); }
Source keep_known() { return make<KeepKnownParams>("keep_known", kKeepKnown); }
Source relabel() { return make<RelabelParams>("relabel", kRelabel); }
Source block_rows() { return make<BlockRowsParams>("block_rows", kBlockRows); }

int64_t gather_threads(int64_t rows, int64_t width) { return rows * (width % 4 == 0 ? width / 4 : width); }

Source gather_rows(int64_t width) { return make<GatherRowsParams>("gather_rows", words_of(width) + kGatherRows); }

Source scatter_rows(int64_t width) { return make<ScatterRowsParams>("scatter_rows", words_of(width) + kScatterRows); }

Source take_values(bool four_bytes) {
  return make<TakeValuesParams>("take_values",
                                std::string("typedef ") + (four_bytes ? "u32" : "u16") + " Value;\n" + kTakeValues);
}

}  // namespace nacre::cuda
