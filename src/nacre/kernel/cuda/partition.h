// Sources that cut the edges of a graph into gTasks on the device (see gtask/partition.h). Most of
// them have one thread for each edge, and the edges lie in the order in which they are to be cut.
#pragma once

#include <span>

#include "nacre/kernel/cuda/params.h"

namespace nacre::cuda {

// A number that every edge has, such as the id of its source. All its values fit into `bits` bits.
// The text of a source depends on the kinds of the fields only; blocks and bits are parameters, so
// that all graphs share the source.
struct EdgeField {
  enum Of : uint8_t { src_id, dst_id, src_degree, dst_degree, type };
  Of of = src_id;
  int64_t block = 1;  // the value of an id field is id / block
  int bits = 32;
};

// The columns of the edges, which come first among the parameters of every source that reads
// fields. `type` is null in a graph without types. The degrees have one element for each vertex.
NACRE_PARAMS(EdgeColumnsParams, (const u32* __restrict__, src), (const u32* __restrict__, dst),
             (const u16* __restrict__, type), (const u32* __restrict__, src_degree),
             (const u32* __restrict__, dst_degree));

NACRE_PARAMS(PackKeysParams, (const u32* __restrict__, order), (Key* __restrict__, keys), (u32* __restrict__, values),
             (i64, count), (u64, shifts), (u32, src_block), (u32, dst_block));
// The kernel takes EdgeColumnsParams, then PackKeysParams. It packs the fields of edge order[i]
// (edge i if `order` is null) into keys[i], the first field in the highest bits, and writes the
// edge to values[i]. Keys have 64 bits if `long_keys`, otherwise 32.
Source pack_keys(std::span<const EdgeField> fields, bool long_keys);
struct KeyPacking {
  uint64_t shifts = 0;                    // 8 bits for each field, those of the first field lowest
  uint32_t src_block = 1, dst_block = 1;  // EdgeField::block of the two ids
};
KeyPacking packing_of(std::span<const EdgeField> fields);
NACRE_PARAMS(TakeColumnsParams, (const u32* __restrict__, order), (const u32* __restrict__, src),
             (const u32* __restrict__, dst), (const u16* __restrict__, type), (u32* __restrict__, to_src),
             (u32* __restrict__, to_dst), (u16* __restrict__, to_type), (i64, count));
// Copies the columns of the edges into the order that `order` gives.
Source take_columns(bool typed);
NACRE_PARAMS(CountValuesParams, (const u32* __restrict__, values), (u32* __restrict__, counts), (i64, count));
// Counts how often each value occurs: ++counts[values[i]] for every i.
Source count_values();

NACRE_PARAMS(StartRunsParams, (u8* __restrict__, flags), (u32* __restrict__, ones), (i64, count));
// The kernel takes EdgeColumnsParams, then StartRunsParams. It sets flags and ones to 1 if a field
// of the edge differs from the field of the edge before, otherwise to 0.
Source start_runs(std::span<const EdgeField> fields);
NACRE_PARAMS(FirstBoundsParams, (u32* __restrict__, next), (i64, count), (i64, most));
// Sets next[i] = min(i + most, count), the first edge that a gTask begun at i cannot have.
Source first_bounds();
NACRE_PARAMS(BoundByRunsParams, (u32* __restrict__, next), (const i64* __restrict__, runs_before),
             (const u32* __restrict__, starts), (i64, num_runs), (i64, limit), (i64, count));
// Lowers next[i] so that a gTask has at most `limit` runs. runs_before[i + 1] counts the runs that
// begin at edges 0 … i.
Source bound_by_runs();
NACRE_PARAMS(LinkEqualParams, (const Key* __restrict__, keys), (const u32* __restrict__, values),
             (u32* __restrict__, before), (u32* __restrict__, after), (i64, count));
// Links places with equal keys. The keys are sorted, and values[i] is the place of keys[i].
// before[p] becomes 1 + the last place before p with the same key, or 0 if there is none; after[p]
// becomes the first place after p with the same key, or count.
Source link_equal(bool long_keys);
NACRE_PARAMS(BoundByValuesParams, (u32* __restrict__, next), (const u32* __restrict__, before),
             (const u32* __restrict__, after), (i64, limit), (i64, count));
// Lowers next[i] so that a gTask has at most `limit` distinct values. A thread slides a window over
// kWindowStarts places.
Source bound_by_values();
inline constexpr int64_t kWindowStarts = 128;
NACRE_PARAMS(MarkNextParams, (u8*, marks), (const u32* __restrict__, next), (i64, count));
NACRE_PARAMS(DoubleNextParams, (const u32* __restrict__, next), (u32* __restrict__, to), (i64, count));
// mark_next marks edge next[i] for every marked edge i. double_next writes next[next[i]] to to[i],
// so that each link leads twice as far. The two are launched in turn. After n rounds, the first
// edges of the first 2^n gTasks are marked.
Source mark_next();
Source double_next();

// ---- Patterns of a partition (gtask/pattern.h).
NACRE_PARAMS(TaskStartsParams, (const i64* __restrict__, task_ptr), (i64, tasks), (u32* __restrict__, starts),
             (i64, count));
// Sets starts[i] to the first edge of the gTask that has edge i.
Source task_starts();
NACRE_PARAMS(FreshValuesParams, (const u32* __restrict__, before), (const u32* __restrict__, starts),
             (const u32* __restrict__, ids), (u32* __restrict__, counts), (u32* __restrict__, fresh), (i64, count));
// Sets fresh[i] to 1 if no earlier edge of the gTask has the value of edge i; otherwise to 0. If
// `ids` is not null, also counts these edges: ++counts[ids[i]].
Source fresh_values();
NACRE_PARAMS(TallyParams, (const i64* __restrict__, sums), (const i64* __restrict__, task_ptr), (i64, tasks),
             (i64, limit), (u8* __restrict__, thin), (u64* __restrict__, result));
// Tallies how many distinct values of an attribute the gTasks have. `sums` has the running sums of
// the flags of fresh_values(), so gTask t has sums[task_ptr[t + 1]] − sums[task_ptr[t]] values. If
// `sums` is null, every edge has a value of its own, and edges are counted. result[0] becomes the
// largest count, and result[1 + b] the number of gTasks with at least 2^b and fewer than 2^(b+1)
// values. thin[t] is set to 1 if gTask t has fewer than half of `limit` values; with limit 0, no
// flag is set.
Source tally();
NACRE_PARAMS(OftenMetParams, (const u32* __restrict__, counts), (const u32* __restrict__, ids), (i64, least),
             (u32* __restrict__, flags), (i64, count));
// Sets flags[i] to 1 where counts[ids[i]] > least; otherwise to 0.
Source often_met();
NACRE_PARAMS(JudgeTasksParams, (const i64* __restrict__, often), (const i64* __restrict__, task_ptr), (i64, tasks),
             (i64, edges), (int, bounded), (const u8* __restrict__, thin), (u8* __restrict__, outlier),
             (u64* __restrict__, result));
// Writes the kind of outlier (gtask/pattern.h) of each gTask. `often` has the running sums of the
// flags of often_met(), or is null. result[2 · kind] becomes the number of gTasks of a kind, and
// result[2 · kind + 1] the number of their edges.
Source judge_tasks();

}  // namespace nacre::cuda
