// Edges from arrays.
#pragma once

#include <string>
#include <vector>

#include "nacre/data/npy.h"
#include "nacre/graph/graph.h"

namespace nacre {

// How pairs lie in a matrix of two rows or two columns; a 2 × 2 matrix is taken for two rows when that is a guess.
enum class PairLayout { guess, two_rows, two_columns };

// Sources and destinations; num_nodes is left to the caller.
EdgeList pairs_from(NpyReader array, PairLayout layout, std::vector<std::string>& notes);
std::vector<NodeId> node_ids_from(NpyReader array);
void edge_weight_from(NpyReader array, EdgeList& edges);
void edge_type_from(NpyReader array, EdgeList& edges);
// Throws UserError for what cannot be a vertex id.
NodeId to_node_id(int64_t value, int64_t position, const std::string& where);

}  // namespace nacre
