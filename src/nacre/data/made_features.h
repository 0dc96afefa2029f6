// Features made from the graph, for data sets that have none.
#pragma once

#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

// Returns whether --features names a kind of features instead of a file: learned, degree or onehot.
bool is_made_features(const std::string& name);
// Returns the number of columns that make_features() makes for a graph of this many nodes; 0 for
// learned features.
int64_t made_features_width(const std::string& name, int64_t nodes);

// Replaces the features of `data`, whose graph must be complete:
//   degree   log(1 + d) for the number d of edges that lead to a node, and for the number of those
//            that lead from it; then 16 columns for powers of two, with a 1 for the size of d
//   onehot   a column for each node, 1 for the node itself; refused (UserError) for large graphs
//   learned  removes the features: the model learns a row for each node instead (RunData)
void make_features(const std::string& name, Dataset& data);

}  // namespace nacre
