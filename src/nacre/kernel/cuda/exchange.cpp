#include "nacre/kernel/cuda/exchange.h"

#include <fmt/format.h>

#include "nacre/kernel/cuda/defines.h"
#include "nacre/kernel/cuda/text.h"

namespace nacre::cuda {
namespace {

constexpr int kMoveThreads = 256;
constexpr int kBatch = 4;  // words that a thread has in flight

// The CUDA types of a word at both ends, and the statement that writes the word w to `to`.
struct WordText {
  const char *from, *to, *write;
};

constexpr WordText kCopy[] = {
    {"float", "float", "to = w;"}, {"float2", "float2", "to = w;"}, {"float4", "float4", "to = w;"}};
constexpr WordText kAdd[] = {
    {"float", "float", "to = to + w;"},
    {"float2", "float2", "to = make_float2(to.x + w.x, to.y + w.y);"},
    {"float4", "float4", "to = make_float4(to.x + w.x, to.y + w.y, to.z + w.z, to.w + w.w);"},
};
constexpr WordText kAddBf16 = {"uint2", "uint2",
                               "float a[4], b[4]; load<4>((const u16*)&to, a); load<4>((const u16*)&w, b); "
                               "for (int i = 0; i < 4; ++i) a[i] += b[i]; store<4>((u16*)&to, a);"};
constexpr WordText kNarrow = {"float4", "uint2",
                              "const float r[4] = {w.x, w.y, w.z, w.w}; to = make_uint2(narrow2(r), narrow2(r + 2));"};
constexpr WordText kWiden = {
    "uint2", "float4", "float r[4]; widen2(w.x, r); widen2(w.y, r + 2); to = make_float4(r[0], r[1], r[2], r[3]);"};
constexpr WordText kWidenAdd = {"uint2", "float4",
                                "float r[4]; widen2(w.x, r); widen2(w.y, r + 2); "
                                "to = make_float4(to.x + r[0], to.y + r[1], to.z + r[2], to.w + r[3]);"};

const WordText& text_of(const RowMove& move) {
  switch (move.action) {
    case RowAction::copy:
      return kCopy[move.floats / 2];
    case RowAction::add:
      return kAdd[move.floats / 2];
    case RowAction::add_bf16:
      return kAddBf16;
    case RowAction::narrow:
      return kNarrow;
    case RowAction::widen:
      return kWiden;
    case RowAction::widen_add:
      return kWidenAdd;
  }
  return kCopy[0];
}

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
      word[u] = from[(from_index ? (i64)from_index[row] : row) * from_pitch + at];
      place[u] = (to_index ? (i64)to_index[row] : row) * to_pitch + at;
    }
  }
#pragma unroll
  for (int u = 0; u < BATCH; ++u) {
    if (place[u] >= 0) write(to[place[u]], word[u]);
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
  const WordText& word = text_of(move);
  const std::string text =
      prelude() + defines({{"THREADS", kMoveThreads}, {"BATCH", kBatch}, {"WORDS", move.words}}) +
      fmt::format("typedef {} RowWord;\ntypedef {} Out;\nINLINE void write(Out& to, RowWord w) {{ {} }}\n", word.from,
                  word.to, word.write) +
      kMove;
  return Entry("move_rows").takes<MoveRowsParams>().source(text, kMoveThreads);
}

int64_t move_blocks(const RowMove& move, int64_t rows) {
  return (rows * move.words + kMoveThreads * kBatch - 1) / (kMoveThreads * kBatch);
}

Source sum_arrays(int arrays, bool doubles) {
  Entry entry("sum_arrays");
  entry.takes<SumArraysParams>();
  std::string sum;
  for (int p = 0; p < arrays; ++p) {
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
