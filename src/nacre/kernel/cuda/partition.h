// Sources that cut a graph's edges into gTasks on the device (gtask/partition.h says what they are). All of them run
// over the edges, in the order at hand, whose columns (src, dst, type; the degrees of vertices) are arguments.
#pragma once

#include <span>

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

// A number that every edge has. `bits` hold any of its values. Sources are made for what fields are of; blocks and bits
// are arguments, so that graphs share them.
struct EdgeField {
  enum Of : uint8_t { src_id, dst_id, src_degree, dst_degree, type };
  Of of = src_id;
  int64_t block = 1;  // ids: id / block
  int bits = 32;
};

// The columns of the edges, which come first among the parameters of every source that reads fields. `type` is null in
// a graph without types. The degrees lie by vertex.
NACRE_PARAMS(EdgeColumnsParams, (const u32* __restrict__, src), (const u32* __restrict__, dst),
             (const u16* __restrict__, type), (const u32* __restrict__, src_degree),
             (const u32* __restrict__, dst_degree));

NACRE_PARAMS(PackKeysParams, (const u32* __restrict__, order), (Key* __restrict__, keys), (u32* __restrict__, values),
             (i64, count), (u64, shifts), (u32, src_block), (u32, dst_block));
// After EdgeColumnsParams. The fields of edge order[i] (without an order: of edge i) side by side in keys[i], the first
// at the top; values[i] = that edge. `wide`: keys of 64 bits, not 32.
Source pack_keys(std::span<const EdgeField> fields, bool wide);
struct KeyPacking {
  uint64_t shifts = 0;                    // 8 bits a field, the first lowest
  uint32_t src_block = 1, dst_block = 1;  // of ids
};
KeyPacking packing_of(std::span<const EdgeField> fields);
NACRE_PARAMS(TakeColumnsParams, (const u32* __restrict__, order), (const u32* __restrict__, src),
             (const u32* __restrict__, dst), (const u16* __restrict__, type), (u32* __restrict__, to_src),
             (u32* __restrict__, to_dst), (u16* __restrict__, to_type), (i64, count));
// The columns in another order.
Source take_columns(bool typed);
NACRE_PARAMS(CountValuesParams, (const u32* __restrict__, values), (u32* __restrict__, counts), (i64, count));
// ++counts[values[i]].
Source count_values();

NACRE_PARAMS(StartRunsParams, (u8* __restrict__, flags), (u32* __restrict__, ones), (i64, count));
// After EdgeColumnsParams. Flags and ones are 1 where a field differs from that of the edge before.
Source start_runs(std::span<const EdgeField> fields);
NACRE_PARAMS(FirstBoundsParams, (u32* __restrict__, next), (i64, count), (i64, most));
// next[i] = min(i + most, count), the first edge that a gTask begun at i cannot have.
Source first_bounds();
NACRE_PARAMS(BoundByRunsParams, (u32* __restrict__, next), (const i64* __restrict__, runs_before),
             (const u32* __restrict__, starts), (i64, num_runs), (i64, limit), (i64, count));
// At most `limit` runs; runs_before[i + 1] counts the runs begun up to i.
Source bound_by_runs();
NACRE_PARAMS(LinkEqualParams, (const Key* __restrict__, keys), (const u32* __restrict__, values),
             (u32* __restrict__, before), (u32* __restrict__, after), (i64, count));
// Of sorted keys. before[p] is 1 + the last place before p with p's key, or 0 if there is none; after[p] is the first
// such place after p, or count.
Source link_equal(bool wide);
NACRE_PARAMS(BoundByValuesParams, (u32* __restrict__, next), (const u32* __restrict__, before),
             (const u32* __restrict__, after), (i64, limit), (i64, count));
// At most `limit` distinct values. A thread slides a window over kWindowStarts places.
Source bound_by_values();
inline constexpr int64_t kWindowStarts = 128;
NACRE_PARAMS(MarkNextParams, (u8*, marks), (const u32* __restrict__, next), (i64, count));
NACRE_PARAMS(DoubleNextParams, (const u32* __restrict__, next), (u32* __restrict__, to), (i64, count));
// mark_next, then double_next: after n rounds the first edges of the first 2^n gTasks are marked.
Source mark_next();
Source double_next();

// ---- what a partition reveals (gtask/pattern.h)
NACRE_PARAMS(TaskStartsParams, (const i64* __restrict__, task_ptr), (i64, tasks), (u32* __restrict__, starts),
             (i64, count));
// starts[i] = the first edge of i's gTask.
Source task_starts();
NACRE_PARAMS(FreshValuesParams, (const u32* __restrict__, before), (const u32* __restrict__, starts),
             (const u32* __restrict__, ids), (u32* __restrict__, counts), (u32* __restrict__, fresh), (i64, count));
// fresh[i] = 1 where the gTask had not met i's value; where `ids` is not null, ++counts[ids[i]] there.
Source fresh_values();
NACRE_PARAMS(TallyParams, (const i64* __restrict__, sums), (const i64* __restrict__, task_ptr), (i64, tasks),
             (i64, limit), (u8* __restrict__, thin), (u64* __restrict__, result));
// A gTask's distinct values are the difference of `sums` (null: it has as many as edges). result: [0] the most, [1 + b]
// gTasks with 2^b values or more, not 2^(b+1); thin[t] = 1 where fewer than half of `limit` (0: never).
Source tally();
NACRE_PARAMS(OftenMetParams, (const u32* __restrict__, counts), (const u32* __restrict__, ids), (i64, least),
             (u32* __restrict__, flags), (i64, count));
// flags[i] = 1 where counts[ids[i]] > least.
Source often_met();
NACRE_PARAMS(JudgeTasksParams, (const i64* __restrict__, often), (const i64* __restrict__, task_ptr), (i64, tasks),
             (i64, edges), (int, bounded), (const u8* __restrict__, thin), (u8* __restrict__, outlier),
             (u64* __restrict__, result));
// The kinds of gtask/pattern.h. `often` has the sums of often_met, or is null. result: [2 · kind] gTasks, [2 · kind +
// 1] their edges.
Source judge_tasks();

}  // namespace nacre::cuda
