// Variants of how threads of a GPU share the entries of rows. An entry of a row is an edge at it,
// or a pair of it. A few rows can be much longer than all others, and the threads that work on one
// of them would still work when all other threads have ended.
#pragma once

#include "nacre/plan/variants.h"

namespace nacre {

struct RowFacts {
  int64_t entries = 0;
  int64_t mean_degree = 1;  // mean entries of a row
  // The fewest entries, in sums, that are worth a group of threads of their own. shortest_piece()
  // computes this number; row_facts() leaves it at 0.
  int64_t shortest = 0;
  bool apart = true;  // the plan treats outliers apart
};
RowFacts row_facts(const PlannedKernel& k);
// Returns the mean number of entries of a row of the view that a kernel walks.
int64_t mean_degree(const Graph& graph, Direction direction);

// The decision `threads of a row`: a group of threads is as large as the entries of a mean row keep
// busy. The limit is the number of entries that the group is made for; it is a power of two.
enum class RowThreads { for_mean_row, for_one_entry };
const VariantList<RowFacts>& row_thread_variants();

// The decisions `long rows of sums` and `long rows of softmax` treat rows of more entries than the
// limit apart.
enum class LongRows { apart, alike };
// The decision `long rows of sums`, for reductions over edges: a long row is cut into pieces of at
// most as many entries as the limit. Each piece has a group of threads, and the sums of the pieces
// are added in order.
const VariantList<RowFacts>& long_sum_variants();
// The decision `long rows of softmax`: a long row has a block of threads instead of a group.
const VariantList<RowFacts>& long_softmax_variants();

}  // namespace nacre
