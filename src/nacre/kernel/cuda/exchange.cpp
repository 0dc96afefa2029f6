#include "nacre/kernel/cuda/exchange.h"

#include "nacre/kernel/cuda/defines.h"
#include "nacre/kernel/cuda/text.h"

namespace nacre::cuda {
namespace {

constexpr int kMoveThreads = 256;
constexpr int kBatch = 4;  // words that a thread has in flight

constexpr const char* kAdd[] = {
    "INLINE float added(float a, float b) { return a + b; }\n",
    "INLINE float2 added(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }\n",
    "INLINE float4 added(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }\n",
};

constexpr const char* kMove = R"(
${ENTRY} {
  const i64 count = rows * WORDS, first = (i64)blockIdx.x * (THREADS * BATCH) + threadIdx.x;
  RowWord word[BATCH];
  i64 place[BATCH];
#pragma unroll
  for (int u = 0; u < BATCH; ++u) {
    const i64 i = first + u * THREADS;
    place[u] = -1;
    if (i < count) {
      const i64 row = i / WORDS, at = i - row * WORDS;
      word[u] = from[(from_index ? (i64)from_index[row] : row) * WORDS + at];
      place[u] = (to_index ? (i64)to_index[row] : row) * WORDS + at;
    }
  }
#pragma unroll
  for (int u = 0; u < BATCH; ++u) {
    if (place[u] < 0) continue;
#if ADD
    to[place[u]] = added(to[place[u]], word[u]);
#else
    to[place[u]] = word[u];
#endif
  }
}
)";

constexpr const char* kSum = R"(
${ENTRY} {
  const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
  if (i < count) out[i] = ${SUM};
}
)";

}  // namespace

Source move_rows(const RowMove& move) {
  const char* word = move.floats == 4 ? "float4" : move.floats == 2 ? "float2" : "float";
  const std::string text =
      prelude() +
      defines({{"THREADS", kMoveThreads}, {"BATCH", kBatch}, {"WORDS", move.words}, {"ADD", move.add ? 1 : 0}}) +
      "typedef " + word + " RowWord;\n" + (move.add ? kAdd[move.floats / 2] : "") + kMove;
  return Entry("move_rows").takes<MoveRowsParams>().source(text, kMoveThreads);
}

int64_t move_blocks(const RowMove& move, int64_t rows) {
  return (rows * move.words + kMoveThreads * kBatch - 1) / (kMoveThreads * kBatch);
}

Source sum_parts(int parts, bool doubles) {
  Entry entry("sum_parts");
  entry.takes<SumPartsParams>();
  std::string sum;
  for (int p = 0; p < parts; ++p) {
    const std::string name = "p" + std::to_string(p);
    entry.operand("const Value* __restrict__", name);
    sum = p == 0 ? name + "[i]" : "(" + sum + " + " + name + "[i])";
  }
  const std::string text = prelude() + defines({{"THREADS", kSumThreads}}) + "typedef " +
                           (doubles ? "double" : "float") + " Value;\n" +
                           fill(kSum, {{"ENTRY", kEntryMark}, {"SUM", sum}});
  return entry.source(text, kSumThreads);
}

}  // namespace nacre::cuda
