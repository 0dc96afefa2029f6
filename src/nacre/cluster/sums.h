// Sums over ranks. A sum is always ((x0 + x1) + x2) + …, in the order of the ranks, so its bits
// depend neither on timing nor on the communicator that computes it.
#pragma once

#include <cstdint>
#include <span>

#include "nacre/cluster/rows.h"

namespace nacre {

// Names the types of numbers that are added up. Only rows that are received and added may be bf16;
// arrays of bf16 are not summed.
enum class SumType : uint8_t { f32, f64, bf16 };

int64_t bytes_of(SumType type);

// Sums elements [begin, end) of arrays[0], arrays[1], … and writes the sums to the same
// elements of every array.
void sum_in_place(SumType type, std::span<void* const> arrays, int64_t begin, int64_t end);

// Adds rows [begin, end) of `from` to the rows at the same positions in `to`.
void add_rows(SumType type, const ConstRows& from, const Rows& to, int64_t begin, int64_t end);

// SumSlice names the elements [begin, end) whose sums one rank computes when ranks share the work.
struct SumSlice {
  int64_t begin = 0;
  int64_t end = 0;
};
SumSlice slice_of(int64_t count, int rank, int size);

// These functions return the bytes that one rank sends or receives for a sum of `count` elements:
// first every rank gets its slice from all others, and then all others get the sums of that slice.
int64_t sum_bytes_sent(SumType type, int64_t count, int rank, int size);
int64_t sum_bytes_received(SumType type, int64_t count, int rank, int size);

}  // namespace nacre
