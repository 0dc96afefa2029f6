// Variants of kernels that leave rows in the workspace for their next launch, and of the products
// of the library that such kernels take.
#pragma once

#include "nacre/plan/variants.h"

namespace nacre {

// The decision `rows at a time`: the kernel takes all its rows at once or, where they would need
// too much memory, some rows after the other. The limit is the number of rows that it takes at a
// time at most. What a row is depends on the kernel: one of a vertex, of a pair, or of an edge.
struct ChunkFacts {
  int64_t rows = 0;
  int64_t row_bytes = 0;  // bytes of the workspace that a row takes
  int64_t budget = 0;     // bytes that all rows together may take
  int64_t least = 1;      // fewest rows at a time, whatever they take
};
enum class ChunkRun { all, some };
const VariantList<ChunkFacts>& chunk_variants();

// The decision `algorithm`: how the algorithm of the library is found for the products of a kernel.
// Products are timed with the first few algorithms that the library recommends, or the first of
// these is taken. The limit is the number of algorithms that are timed.
enum class TimedProducts { all, large, none };
struct AlgorithmFacts {
  TimedProducts worth = TimedProducts::none;  // which products of the kernel are worth timing
};
enum class AlgorithmWay { timed, large_timed, first };
const VariantList<AlgorithmFacts>& algorithm_variants();
// Floating-point operations from which on a product is large.
inline constexpr double kLargeProduct = 1e8;
// The most algorithms that a product is timed with. Later ones of the library's list are seldom
// faster.
inline constexpr int kTimedAlgorithms = 8;
// Returns which products of the library a kernel of this kind times.
AlgorithmFacts algorithm_facts(KernelKind kind);

}  // namespace nacre
