#include "nacre/kernel/cuda/load_rows.h"

#include <algorithm>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int kLoadThreads = 256;
constexpr int64_t kWord = 16;   // bytes that a thread reads at once
constexpr int64_t kLine = 128;  // bytes of a line, the largest piece that a link carries at once
constexpr int64_t kWordsOfLine = kLine / kWord;
constexpr int kBatch = 4;  // rows that a group of threads has in flight
constexpr int kBlocksPerMultiprocessor = 2;

// A thread loads one word of a row. Words are numbered from the beginning of the line in which the
// row begins, so that eight neighbouring threads read a whole line at once.
constexpr const char* kLoad = R"(
${PUT}
${ENTRY} {
  const int lane = threadIdx.x % LANES;
  const i64 stride = (i64)gridDim.x * (THREADS / LANES) * BATCH;
  for (i64 first = ((i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES) * BATCH; first < rows; first += stride) {
    const uint4* from[BATCH];
    int before[BATCH];
#pragma unroll
    for (int u = 0; u < BATCH; ++u) {
      const i64 row = first + u;
      from[u] = 0;
      before[u] = 0;
      if (row < rows) {
#if IN_ORDER
        const u64 address = base + (u64)row * STRIDE;
#elif BY_VERTEX
        const u64 address = base + (u64)__ldg(ids + row) * STRIDE;
#elif CACHED
        const u32 place = __ldg(gathered + row);
        const bool far = place >> 31 != 0u;
        const u32 at = far ? (GATHERED ? place & 0x7fffffffu : __ldg(ids + row)) : place;
        const u64 address = (far ? base : __ldg(buffers)) + (u64)at * STRIDE;
#else
        const u32 v = __ldg(ids + row);
        const u32 held = __ldg(holder + v);
        const u32 at = GATHERED && held == 0u ? __ldg(gathered + row) : __ldg(position + v);
        const u64 address = (held == 0u ? base : __ldg(buffers + (held - 1u))) + (u64)at * STRIDE;
#endif
        from[u] = (const uint4*)address;
        before[u] = ALIGNED ? 0 : (int)(address / 16 % LINE);
      }
    }
    for (int step = 0; step < STEPS; ++step) {
      uint4 word[BATCH];
#pragma unroll
      for (int u = 0; u < BATCH; ++u) {
        const int at = step * LANES + lane - before[u];
        if (from[u] != 0 && at >= 0 && at < WORDS) word[u] = __ldg(from[u] + at);
      }
#pragma unroll
      for (int u = 0; u < BATCH; ++u) {
        const int at = step * LANES + lane - before[u];
        if (from[u] != 0 && at >= 0 && at < WORDS) put(out + (first + u) * WIDTH, at, word[u]);
      }
    }
  }
}
)";

constexpr const char* kPutF32 = R"(
INLINE void put(float* row, int at, uint4 w) {
  const float r[4] = {__uint_as_float(w.x), __uint_as_float(w.y), __uint_as_float(w.z), __uint_as_float(w.w)};
  float* p = row + at * 4;
#if WIDTH % 4 == 0
  store<4>(p, r);
#else
  const int left = WIDTH - at * 4;
#pragma unroll
  for (int v = 0; v < 4; ++v) if (v < left) p[v] = r[v];
#endif
}
)";

constexpr const char* kPutNarrow = R"(
INLINE void put(float* row, int at, uint4 w) {
  float r[8];
  widen_pair(w.x, r); widen_pair(w.y, r + 2); widen_pair(w.z, r + 4); widen_pair(w.w, r + 6);
  float* p = row + at * 8;
  const int left = WIDTH - at * 8;
#if WIDTH % 4 == 0
  store<4>(p, r);
  if (left > 4) store<4>(p + 4, r + 4);
#else
#pragma unroll
  for (int v = 0; v < 8; ++v) if (v < left) p[v] = r[v];
#endif
}
)";

constexpr const char* kBrainPair = R"(
INLINE void widen_pair(u32 x, float* r) { widen2(x, r); }
)";

// Widens f16. The exponents of f16 are 112 less than those of f32. Numbers below the least exponent
// are multiples of 2^-24.
constexpr const char* kHalfPair = R"(
INLINE float widen_half(u32 h) {
  const u32 sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 1023u;
  if (exponent == 0u) return __uint_as_float(__float_as_uint((float)fraction * 0x1p-24f) | sign);
  return __uint_as_float(sign | (exponent == 31u ? 255u : exponent + 112u) << 23 | fraction << 13);
}
INLINE void widen_pair(u32 x, float* r) { r[0] = widen_half(x & 0xffffu); r[1] = widen_half(x >> 16); }
)";

int64_t words_of(const RowFormat& format) { return (format.bytes() + kWord - 1) / kWord; }

bool aligned(const RowFormat& format) { return format.stride() % kLine == 0; }

// Returns how many words a group of threads goes through: those of the row and, if rows begin
// anywhere in a line, those before it in its line.
int64_t words_walked(const RowFormat& format) { return words_of(format) + (aligned(format) ? 0 : kWordsOfLine - 1); }

// Returns how many threads load a row together.
int64_t lanes_of(const RowFormat& format) {
  const int64_t words = words_walked(format);
  return words <= 8 ? 8 : words <= 16 ? 16 : 32;
}

std::string put_text(DType type) {
  if (type == DType::f32) return kPutF32;
  return std::string(type == DType::f16 ? kHalfPair : kBrainPair) + kPutNarrow;
}

}  // namespace

int64_t RowFormat::stride() const {
  const int64_t words = std::max<int64_t>(1, (bytes() + kWord - 1) / kWord) * kWord;
  const int64_t lines = (words + kLine - 1) / kLine * kLine;
  return lines - words <= words / 8 ? lines : words;
}

Source load_rows(const RowFormat& format, RowPlaces places) {
  const int64_t lanes = lanes_of(format);
  const bool cached = places == RowPlaces::cached || places == RowPlaces::cached_gathered;
  const bool gathered = places == RowPlaces::gathered || places == RowPlaces::cached_gathered;
  std::string body = kLoad;
  const std::string mark = "${PUT}";
  body.replace(body.find(mark), mark.size(), put_text(format.type));
  const std::string text = prelude() +
                           defines({{"THREADS", kLoadThreads},
                                    {"LANES", lanes},
                                    {"BATCH", kBatch},
                                    {"WORDS", words_of(format)},
                                    {"STEPS", (words_walked(format) + lanes - 1) / lanes},
                                    {"LINE", kWordsOfLine},
                                    {"STRIDE", format.stride()},
                                    {"WIDTH", format.width},
                                    {"ALIGNED", aligned(format) ? 1 : 0},
                                    {"IN_ORDER", places == RowPlaces::in_order ? 1 : 0},
                                    {"BY_VERTEX", places == RowPlaces::by_vertex ? 1 : 0},
                                    {"CACHED", cached ? 1 : 0},
                                    {"GATHERED", gathered ? 1 : 0}}) +
                           body;
  return Entry("load_rows").takes<LoadRowsParams>().source(text, kLoadThreads);
}

int64_t load_blocks(const RowFormat& format, int64_t rows, int multiprocessors) {
  const int64_t per_block = kLoadThreads / lanes_of(format) * kBatch;
  const int64_t all = (rows + per_block - 1) / per_block;
  return std::min(all, static_cast<int64_t>(multiprocessors) * kBlocksPerMultiprocessor);
}

}  // namespace nacre::cuda
