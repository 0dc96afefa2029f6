// Reads edges from NumPy arrays.
#pragma once

#include <string>
#include <vector>

#include "nacre/data/npy.h"
#include "nacre/graph/graph.h"

namespace nacre {

// How pairs lie in a matrix of two rows or two columns. With `guess`, a 2 × 2 matrix is taken for
// two rows.
enum class PairLayout { guess, two_rows, two_columns };

// Reads sources and destinations. The caller sets num_nodes.
EdgeList pairs_from(NpyReader array, PairLayout layout, std::vector<std::string>& notes);
std::vector<NodeId> node_ids_from(NpyReader array);
void edge_weight_from(NpyReader array, EdgeList& edges);
void edge_type_from(NpyReader array, EdgeList& edges);
// Returns `value` as a vertex id. Throws UserError if it cannot be one.
NodeId to_node_id(int64_t value, int64_t position, const std::string& where);

}  // namespace nacre
