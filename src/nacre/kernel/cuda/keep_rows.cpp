#include "nacre/kernel/cuda/keep_rows.h"

#include <algorithm>
#include <string>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int kKeepThreads = 256;
constexpr int64_t kWord = 16;  // bytes that a thread writes at once
constexpr int kBlocksPerMultiprocessor = 8;

int64_t words_of(const RowFormat& format) { return (format.bytes() + kWord - 1) / kWord; }

// Stores words of rows in seats. The values were widened when they were loaded, so that narrowing
// them gives the old bits. Behind the end of a row, zeros are stored, as in rows that come from the
// host.
constexpr const char* kKeep = R"(
${ENTRY} {
  const i64 words = count * WORDS, stride = (i64)gridDim.x * THREADS;
  for (i64 i = (i64)blockIdx.x * THREADS + threadIdx.x; i < words; i += stride) {
    const i64 k = i / WORDS;
    const int word = (int)(i % WORDS);
    const float* const row = rows + (u64)__ldg(from + k) * WIDTH;
    u32 part[4];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
#if NARROW
      const int at = word * 8 + p * 2;
      const u32 low = at < WIDTH ? narrow_bits(row[at]) : 0u, high = at + 1 < WIDTH ? narrow_bits(row[at + 1]) : 0u;
      part[p] = low | high << 16;
#else
      const int at = word * 4 + p;
      part[p] = at < WIDTH ? __float_as_uint(row[at]) : 0u;
#endif
    }
    uint4 value;
    value.x = part[0]; value.y = part[1]; value.z = part[2]; value.w = part[3];
    ((uint4*)(seats + (u64)__ldg(to + k) * STRIDE))[word] = value;
  }
}
)";

constexpr const char* kNarrowBrain = R"(
INLINE u32 narrow_bits(float x) { return __float_as_uint(x) >> 16; }
)";

// Narrows to f16. Numbers of f16 below the least exponent are multiples of 2^-24.
constexpr const char* kNarrowHalf = R"(
INLINE u32 narrow_bits(float x) {
  const u32 bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, exponent = bits >> 23 & 255u;
  if (exponent < 113u) return sign | (u32)(__uint_as_float(bits & 0x7fffffffu) * 0x1p24f);
  return sign | (exponent == 255u ? 31u : exponent - 112u) << 10 | (bits >> 13 & 1023u);
}
)";

}  // namespace

Source keep_rows(const RowFormat& format) {
  const bool narrow = format.type != DType::f32;
  const std::string text = prelude() +
                           defines({{"THREADS", kKeepThreads},
                                    {"WORDS", words_of(format)},
                                    {"STRIDE", format.stride()},
                                    {"WIDTH", format.width},
                                    {"NARROW", narrow ? 1 : 0}}) +
                           (!narrow                     ? ""
                            : format.type == DType::f16 ? kNarrowHalf
                                                        : kNarrowBrain) +
                           kKeep;
  return Entry("keep_rows").takes<KeepRowsParams>().source(text, kKeepThreads);
}

int64_t keep_blocks(const RowFormat& format, int64_t count, int multiprocessors) {
  const int64_t all = (count * words_of(format) + kKeepThreads - 1) / kKeepThreads;
  return std::min(all, static_cast<int64_t>(multiprocessors) * kBlocksPerMultiprocessor);
}

}  // namespace nacre::cuda
