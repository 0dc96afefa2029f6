// How a kernel walks the edges of a block, and what it does with the rows it reads. Plans, kernels
// and back ends share these types.
#pragma once

#include <cstdint>

namespace nacre {

// Says what the rows of a view are and what their entries are: edges grouped by destination
// (in-CSR) or by source (out-CSC), edges grouped by the (vertex, type) pairs of one end, or the
// pairs of each vertex (then the columns are pairs).
enum class Direction : uint8_t { by_dst, by_src, by_dst_pair, by_src_pair, pairs_of_dst, pairs_of_src };

// Returns whether edges are grouped by their destination, or by a pair of their destination.
inline bool rows_at_dst(Direction d) { return d == Direction::by_dst || d == Direction::by_dst_pair; }

// Says how the entries of a row become one row.
enum class ReduceOp : uint8_t { sum, mean, max };

// The number of sequences that an LSTM runs together unless a partition table says otherwise.
inline constexpr int64_t kSequencesAtATime = 128;

}  // namespace nacre
