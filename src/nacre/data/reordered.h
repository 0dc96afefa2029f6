// A data set whose vertices have other numbers (graph/reorder.h has the orders).
#pragma once

#include <vector>

#include "nacre/data/dataset.h"

namespace nacre {

// Returns the vertices of `order` kind by kind, in the same order within every kind, because the
// vertices of a kind have consecutive numbers. `offsets` is Dataset::node_offsets.
Array<NodeId> by_kind(const Array<NodeId>& order, const std::vector<int64_t>& offsets);

// Numbers the vertices of `data` anew: its vertex order[i] becomes vertex i. Features are left as
// they are, and so are the names and original ids of the vertices. Kinds stay together only if
// `order` keeps them together.
void reorder_all_but_features(Dataset& data, const Array<NodeId>& order);

// Puts the rows of the features, of one kind or of several, into the order.
void reorder_features(Dataset& data, const Array<NodeId>& order);

// Returns a copy of `data` whose vertex i is vertex order[i] of `data`, with features as they were.
// original_ids or node_names of the copy say what the source called the vertices.
Dataset reordered(const Dataset& data, const Array<NodeId>& order);

}  // namespace nacre
