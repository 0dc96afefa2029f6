// Orders of the vertices under which neighbours lie close together in memory. All are functions of the graph alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "nacre/graph/graph.h"

namespace nacre {

enum class Reorder : uint8_t {
  none,
  degree,  // most edges first: what is read most shares cache lines
  rcm,     // reverse Cuthill-McKee: breadth first, so that neighbours' numbers differ little
  rabbit,  // communities, and communities within them (Arai et al., IPDPS 2016), get consecutive numbers
};
std::string_view reorder_name(Reorder how);
Reorder parse_reorder(std::string_view name);  // throws UserError naming --reorder

// order[i] is the vertex that becomes i. Edges count in both directions.
Array<NodeId> vertex_order(const Graph& graph, Reorder how);
// new_id[v] is what vertex v becomes.
Array<NodeId> inverse_order(const Array<NodeId>& order);
Graph permuted(const Graph& graph, const Array<NodeId>& order, const Array<NodeId>& new_id);
// Memory that finding and applying an order takes, the graph itself included.
int64_t reorder_bytes(const Graph& graph, Reorder how);

// The orders one by one.
Array<NodeId> degree_order(const Graph& graph);
Array<NodeId> rcm_order(const Graph& graph);
Array<NodeId> rabbit_order(const Graph& graph);

}  // namespace nacre
