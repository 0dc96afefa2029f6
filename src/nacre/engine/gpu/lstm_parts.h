// Sequences over neighbours, prepared for a GPU.
#pragma once

#include <vector>

#include "nacre/engine/gpu/context.h"
#include "nacre/graph/graph.h"

namespace nacre {

// Destinations with neighbours, longest first (equal ones in order), and the entries of their steps: a row's steps
// follow on each other, rows in this order.
struct SequenceOrder {
  std::vector<uint32_t> row;
  std::vector<int64_t> entry;  // rows + 1: first entry of each
};
SequenceOrder order_sequences(const Graph& graph);

// Borders of runs of rows with at most `most` entries (a longer row is a run of its own): 0 … rows.
std::vector<int64_t> cut_sequences(const SequenceOrder& order, int64_t most);
int64_t longest_run(const SequenceOrder& order, const std::vector<int64_t>& borders);

// What a run's entries add to which source: sums of entries (counted from the run's first), run by run, by source.
struct SequenceSums {
  std::vector<int64_t> run;      // runs + 1: first sum of each
  std::vector<uint32_t> source;  // of each sum
  std::vector<int64_t> ptr;      // sums + 1
  std::vector<uint32_t> entry;   // as many as edges
};
// The same as units of work: pieces of the sums of hubs, and all others; then the sums of those pieces.
struct SequenceItems {
  std::vector<uint32_t> entry;     // as in SequenceSums
  std::vector<GpuSegment> items;   // over `entry`; `partial`: counted from the run's first
  std::vector<int64_t> item_run;   // runs + 1: first item of each
  std::vector<GpuSegment> pieces;  // over partials
  std::vector<int64_t> piece_run;  // runs + 1
  int64_t num_partials = 0;        // the most of a run
};
SequenceItems cut_sums(SequenceSums sums);
SequenceSums sums_of_sources(const Graph& graph, const SequenceOrder& order, const std::vector<int64_t>& borders);

}  // namespace nacre
