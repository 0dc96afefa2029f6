#include "nacre/kernel/cuda/partition.h"

#include <algorithm>

#include "nacre/kernel/cuda/defines.h"

namespace nacre::cuda {
namespace {

constexpr int kPartitionThreads = 256;

constexpr const char* kHead = R"(
#define HERE ((i64)blockIdx.x * THREADS + threadIdx.x)
)";

constexpr const char* kPackKeys = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const u32 e = order ? order[i] : (u32)i;
  Key key = 0;
  FIELDS
  keys[i] = key;
  values[i] = e;
}
)";

constexpr const char* kTakeColumns = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const u32 e = order[i];
  to_src[i] = src[e];
  to_dst[i] = dst[e];
  if (TYPED) to_type[i] = type[e];
}
)";

constexpr const char* kCountValues = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i < count) atomicAdd(counts + values[i], 1u);
}
)";

constexpr const char* kStartRuns = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const u32 start = i == 0 || differs(src, dst, type, src_degree, dst_degree, i);
  flags[i] = (u8)start;
  ones[i] = start;
}
)";

constexpr const char* kFirstBounds = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i < count) next[i] = (u32)(most < count - i ? i + most : count);
}
)";

constexpr const char* kBoundByRuns = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const i64 run = runs_before[i + 1] - 1;
  if (limit >= num_runs - run) return;
  const u32 bound = starts[run + limit];
  if (bound < next[i]) next[i] = bound;
}
)";

constexpr const char* kLinkEqual = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const u32 at = values[i];
  before[at] = i > 0 && keys[i - 1] == keys[i] ? values[i - 1] + 1u : 0u;
  if (after) after[at] = i + 1 < count && keys[i + 1] == keys[i] ? values[i + 1] : (u32)count;
}
)";

// Lowers next[i], the first edge that a gTask begun at edge i cannot have, so that such a gTask has
// at most `limit` distinct values. Each thread slides the window [i, next[i]) over STARTS edges.
// next[i] never decreases as i grows, so both ends of the window only move forward.
constexpr const char* kBoundByValues = R"(
${ENTRY} {
  const i64 first = HERE * STARTS;
  const i64 last = first + STARTS < count ? first + STARTS : count;
  i64 end = first, distinct = 0;
  for (i64 i = first; i < last; ++i) {
    const i64 bound = next[i];
    while (end < bound) {
      const bool fresh = before[end] <= i;
      if (fresh && distinct == limit) break;
      distinct += fresh;
      ++end;
    }
    next[i] = (u32)end;
    distinct -= after[i] >= end;
  }
}
)";

// Marks the edges that marked edges lead to. A mark that was made in this round may be followed in
// the same round, because it, too, is at the first edge of a gTask.
constexpr const char* kMarkNext = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i < count && marks[i] && next[i] < count) marks[next[i]] = 1;
}
)";

constexpr const char* kDoubleNext = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i < count) to[i] = next[i] < count ? next[next[i]] : (u32)count;
}
)";

constexpr const char* kTaskStarts = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  i64 low = 0, high = tasks;
  while (high - low > 1) {
    const i64 middle = (low + high) / 2;
    if (task_ptr[middle] <= i) low = middle;
    else high = middle;
  }
  starts[i] = (u32)task_ptr[low];
}
)";

constexpr const char* kFreshValues = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i >= count) return;
  const u32 is_fresh = before[i] <= starts[i];
  fresh[i] = is_fresh;
  if (ids && is_fresh) atomicAdd(counts + ids[i], 1u);
}
)";

constexpr const char* kTally = R"(
${ENTRY} {
  __shared__ u32 histogram[64];
  __shared__ u64 most;
  if (threadIdx.x < 64) histogram[threadIdx.x] = 0;
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  const i64 t = HERE;
  if (t < tasks) {
    const i64 begin = task_ptr[t], end = task_ptr[t + 1];
    const i64 distinct = sums ? sums[end] - sums[begin] : end - begin;
    int b = 0;
    while (distinct >> (b + 1)) ++b;
    atomicAdd(histogram + b, 1u);
    atomicMax(&most, (u64)distinct);
    if (distinct < limit - distinct) thin[t] = 1;
  }
  __syncthreads();
  if (threadIdx.x < 64 && histogram[threadIdx.x]) atomicAdd(result + 1 + threadIdx.x, (u64)histogram[threadIdx.x]);
  if (threadIdx.x == 0) atomicMax(result, most);
}
)";

constexpr const char* kOftenMet = R"(
${ENTRY} {
  const i64 i = HERE;
  if (i < count) flags[i] = counts[ids[i]] > least;
}
)";

constexpr const char* kJudgeTasks = R"(
${ENTRY} {
  __shared__ u64 sums[8];
  if (threadIdx.x < 8) sums[threadIdx.x] = 0;
  __syncthreads();
  const i64 t = HERE;
  if (t < tasks) {
    const i64 begin = task_ptr[t], end = task_ptr[t + 1], size = end - begin;
    int kind = 0;
    if (!bounded && size >= OVERFILL_EDGES && size * tasks > OVERFILL * edges) kind = 2;
    else if (thin[t]) kind = 1;
    else if (often && 2 * (often[end] - often[begin]) > size) kind = 3;
    outlier[t] = (u8)kind;
    atomicAdd(sums + 2 * kind, (u64)1);
    atomicAdd(sums + 2 * kind + 1, (u64)size);
  }
  __syncthreads();
  if (threadIdx.x < 8 && sums[threadIdx.x]) atomicAdd(result + threadIdx.x, sums[threadIdx.x]);
}
)";

Source make(const Entry& entry, const std::string& text) {
  return entry.source(prelude() + defines({{"THREADS", kPartitionThreads}}) + kHead + text, kPartitionThreads);
}

template <class Params>
Source make(const char* name, const std::string& text) {
  return make(Entry(name).takes<Params>(), text);
}

// Makes a source that reads fields of edges.
template <class Params>
Source make_over_columns(const char* name, const std::string& text) {
  return make(Entry(name).takes<EdgeColumnsParams>().takes<Params>(), text);
}

std::string key_type(bool long_keys) { return long_keys ? "typedef u64 Key;\n" : "typedef u32 Key;\n"; }

std::string value_of(const EdgeField& field, const std::string& at) {
  switch (field.of) {
    case EdgeField::src_id:
      return "src[" + at + "]";
    case EdgeField::dst_id:
      return "dst[" + at + "]";
    case EdgeField::src_degree:
      return "src_degree[src[" + at + "]]";
    case EdgeField::dst_degree:
      return "dst_degree[dst[" + at + "]]";
    case EdgeField::type:
      break;
  }
  return "(type ? (u32)type[" + at + "] : 0u)";
}

}  // namespace

Source pack_keys(std::span<const EdgeField> fields, bool long_keys) {
  std::string text = "#define FIELDS";
  for (size_t f = 0; f < fields.size(); ++f) {
    std::string value = value_of(fields[f], "e");
    if (fields[f].of == EdgeField::src_id) value += " / src_block";
    if (fields[f].of == EdgeField::dst_id) value += " / dst_block";
    text += " key |= (Key)(" + value + ") << (shifts >> " + std::to_string(8 * f) + " & 63);";
  }
  return make_over_columns<PackKeysParams>("pack_keys", key_type(long_keys) + text + "\n" + kPackKeys);
}

KeyPacking packing_of(std::span<const EdgeField> fields) {
  KeyPacking packing;
  int shift = 0;
  for (size_t f = fields.size(); f-- > 0;) {
    packing.shifts |= static_cast<uint64_t>(shift) << (8 * f);
    shift += fields[f].bits;
    const auto block = static_cast<uint32_t>(std::min<int64_t>(fields[f].block, 0xFFFFFFFF));
    if (fields[f].of == EdgeField::src_id) packing.src_block = block;
    if (fields[f].of == EdgeField::dst_id) packing.dst_block = block;
  }
  return packing;
}

Source take_columns(bool typed) {
  return make<TakeColumnsParams>("take_columns", defines({{"TYPED", typed ? 1 : 0}}) + kTakeColumns);
}

Source count_values() { return make<CountValuesParams>("count_values", kCountValues); }

Source start_runs(std::span<const EdgeField> fields) {
  std::string differs =
      "INLINE bool differs(" + parameter_text(EdgeColumnsParams::kFields) + ", i64 i) {\n  return false";
  for (const EdgeField& field : fields) differs += " || " + value_of(field, "i") + " != " + value_of(field, "i - 1");
  return make_over_columns<StartRunsParams>("start_runs", differs + ";\n}\n" + kStartRuns);
}

Source first_bounds() { return make<FirstBoundsParams>("first_bounds", kFirstBounds); }
Source bound_by_runs() { return make<BoundByRunsParams>("bound_by_runs", kBoundByRuns); }
Source link_equal(bool long_keys) { return make<LinkEqualParams>("link_equal", key_type(long_keys) + kLinkEqual); }
Source bound_by_values() {
  return make<BoundByValuesParams>("bound_by_values", defines({{"STARTS", kWindowStarts}}) + kBoundByValues);
}
Source mark_next() { return make<MarkNextParams>("mark_next", kMarkNext); }
Source double_next() { return make<DoubleNextParams>("double_next", kDoubleNext); }
Source task_starts() { return make<TaskStartsParams>("task_starts", kTaskStarts); }
Source fresh_values() { return make<FreshValuesParams>("fresh_values", kFreshValues); }
Source tally() { return make<TallyParams>("tally", kTally); }
Source often_met() { return make<OftenMetParams>("often_met", kOftenMet); }

Source judge_tasks() {
  return make<JudgeTasksParams>("judge_tasks", defines({{"OVERFILL", 4}, {"OVERFILL_EDGES", 64}}) + kJudgeTasks);
}

}  // namespace nacre::cuda
