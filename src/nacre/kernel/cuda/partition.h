// Sources that cut a graph's edges into gTasks on the device (gtask/partition.h says what they are). All of them run
// over the edges, in the order at hand, whose columns (src, dst, type; the degrees of vertices) are arguments.
#pragma once

#include <span>

#include "nacre/kernel/cuda/source.h"

namespace nacre::cuda {

// A number that every edge has. `bits` hold any of its values. Sources are made for what fields are of; blocks and bits
// are arguments, so that graphs share them.
struct EdgeField {
  enum Of : uint8_t { src_id, dst_id, src_degree, dst_degree, type };
  Of of = src_id;
  int64_t block = 1;  // ids: id / block
  int bits = 32;
};

// The columns of the edges, as every source over them takes them: src, dst, type (null: none), src_degree, dst_degree
// (of each vertex; null where no field reads them).

// pack_keys(order or null, columns …, keys, values, count: int64, packing …): the fields of edge order[i] side by side
// in keys[i], the first at the top; values[i] = order[i] (null: i). `wide`: keys of 64 bits, not 32.
Source pack_keys(std::span<const EdgeField> fields, bool wide);
struct KeyPacking {
  uint64_t shifts = 0;                    // 8 bits a field, the first lowest
  uint32_t src_block = 1, dst_block = 1;  // of ids
};
KeyPacking packing_of(std::span<const EdgeField> fields);
// take_columns(order, src, dst, type, to_src, to_dst, to_type, count)
Source take_columns(bool typed);
// count_values(values, counts, count): ++counts[values[i]].
Source count_values();

// start_runs(columns …, flags: u8, ones: u32, count): 1 where a field differs from the edge before.
Source start_runs(std::span<const EdgeField> fields);
// first_bounds(next, count, most): next[i] = min(i + most, count), the first edge that a gTask begun at i cannot have.
Source first_bounds();
// bound_by_runs(next, runs_before, starts, num_runs, limit, count): at most `limit` runs; runs_before[i + 1] counts
// those begun up to i.
Source bound_by_runs();
// link_equal(keys, values, before, after, count): of sorted keys. before[p]: 1 + the last place before p with p's key,
// 0: none; after[p]: the first one after it, or count.
Source link_equal(bool wide);
// bound_by_values(next, before, after, limit, count): at most `limit` distinct values. A thread slides a window over
// kWindowStarts places.
Source bound_by_values();
inline constexpr int64_t kWindowStarts = 128;
// mark_next(marks: u8, next, count), then double_next(next, to, count): after n rounds the first 2^n gTasks' first
// edges are marked.
Source mark_next();
Source double_next();

// ---- what a partition reveals (gtask/pattern.h)
// task_starts(task_ptr, tasks, starts, count): starts[i] = the first edge of i's gTask.
Source task_starts();
// fresh_values(before, starts, ids or null, counts, fresh, count): fresh[i] = 1 where the gTask had not met i's value;
// with ids, ++counts[ids[i]] there.
Source fresh_values();
// tally(sums, task_ptr, tasks, limit, thin: u8, result): a gTask's distinct values are the difference of `sums` (null:
// it has as many as edges). result: u64 [0] the most, [1 + b] gTasks with 2^b values or more, not 2^(b+1); thin[t] = 1
// where fewer than half of `limit` (0: never).
Source tally();
// often_met(counts, ids, least, flags: u32, count): 1 where counts[ids[i]] > least.
Source often_met();
// judge_tasks(often or null, task_ptr, tasks, edges, bounded: int, thin, outlier: u8, result): the kinds of
// gtask/pattern.h; `often`: sums of often_met. result: u64 [2 · kind] gTasks, [2 · kind + 1] their edges.
Source judge_tasks();

}  // namespace nacre::cuda
