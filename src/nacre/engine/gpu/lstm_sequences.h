// This header declares index work for LSTMs over neighbours on a GPU.
#pragma once

#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/kernel/cuda/segments.h"

namespace nacre {

// Holds the destinations that have neighbours, those with the most neighbours first, and the
// entries of their steps. The entries of a row are consecutive, and rows follow in this order.
struct SequenceOrder {
  std::vector<uint32_t> row;
  std::vector<int64_t> entry;  // first entry of each row, and the number of entries
};
SequenceOrder order_sequences(const Graph& graph);

// Cuts the rows into runs of at most `most` entries and returns the borders, from 0 to the number
// of rows. A row with more entries is a run of its own.
std::vector<int64_t> cut_sequences(const SequenceOrder& order, int64_t most);
int64_t longest_run(const SequenceOrder& order, const std::vector<int64_t>& borders);

// Says which entries of a run are added to which source. A sum has one source and the entries of a
// run that belong to it; entries are numbered from the first of the run.
struct SequenceSums {
  std::vector<int64_t> run;      // first sum of each run, and the number of sums
  std::vector<uint32_t> source;  // source of each sum
  std::vector<int64_t> ptr;      // first place of each sum in `entry`, and the end
  std::vector<uint32_t> entry;   // entries of the sums; as many as the graph has edges
};
// Holds the sums of SequenceSums as units of work. Items are short sums and pieces of long ones;
// `pieces` are the sums of the partial results of the long ones.
struct SequenceItems {
  std::vector<uint32_t> entry;        // the entries of SequenceSums
  std::vector<cuda::Segment> items;   // ranges of `entry`; `partial` is counted within the run
  std::vector<int64_t> item_run;      // first item of each run, and the number of items
  std::vector<cuda::Segment> pieces;  // ranges of partial results
  std::vector<int64_t> piece_run;     // first element of `pieces` of each run, and the end
  int64_t num_partials = 0;           // most partial results of a run
};
// Returns the sums as units of work. Sums of more than `longest` entries are cut into pieces
// (piece_of_source()).
SequenceItems cut_sums(SequenceSums sums, int64_t longest);
SequenceSums sums_of_sources(const Graph& graph, const SequenceOrder& order, const std::vector<int64_t>& borders);

}  // namespace nacre
