// Orders of the vertices that put neighbours close together in memory. All of them are functions of
// the graph alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "nacre/graph/costs.h"
#include "nacre/graph/graph.h"

namespace nacre {

enum class Reorder : uint8_t {
  none,
  degree,  // most edges first, so that the rows that are read most share cache lines
  rcm,     // reverse Cuthill-McKee: breadth first, so that the numbers of neighbours differ little
  // Gives communities, and communities within them, consecutive numbers (Arai et al., IPDPS 2016).
  rabbit,
};
std::string_view reorder_name(Reorder how);
Reorder parse_reorder(std::string_view name);  // throws UserError naming --reorder

// Returns an order: order[i] is the vertex that becomes vertex i. Edges count in both directions.
Array<NodeId> vertex_order(const Graph& graph, Reorder how);
// Returns the inverse: new_id[v] is the new number of vertex v.
Array<NodeId> inverse_order(const Array<NodeId>& order);
Graph permuted(const Graph& graph, const Array<NodeId>& order, const Array<NodeId>& new_id);
// Returns the bytes that finding and applying an order takes, including the graph itself.
int64_t reorder_bytes(const Graph& graph, Reorder how);
int64_t reorder_bytes(const GraphCounts& graph, Reorder how);

Array<NodeId> degree_order(const Graph& graph);
Array<NodeId> rcm_order(const Graph& graph);
Array<NodeId> rabbit_order(const Graph& graph);

}  // namespace nacre
