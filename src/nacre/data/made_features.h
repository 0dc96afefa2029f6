// Features made from the graph, for data sets that bring none.
#pragma once

#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

// Whether --features names a kind of features rather than a file: learned, degree or onehot.
bool is_made_features(const std::string& name);

// Replaces the features of `data`, whose graph is complete:
//   degree   log(1 + degree) of the edges that lead to a node and of those that lead from it, then the size of the
//   first
//            as one of 16 powers of two
//   onehot   a column for each node, 1 for the node itself. Refused (UserError) for large graphs
//   learned  none: a model learns a row for each node instead (RunData)
void make_features(const std::string& name, Dataset& data);

}  // namespace nacre
