// The checks behind validate() in dataset.h, for readers that must not touch every byte of a mapped
// file.
#pragma once

#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

enum class Depth {
  without_features,  // everything except the values of features, targets and edge weights
  everything,
};
void validate_parts(const Dataset& dataset, const std::string& where, Depth depth);
// Validates a set without its graph, of which only the numbers of vertices and edge types are
// known. The set may lack its features, too.
struct GraphSize {
  int64_t vertices = 0;
  int edge_types = 1;
};
void validate_beside_graph(const Dataset& dataset, const GraphSize& graph, const std::string& where);

}  // namespace nacre
