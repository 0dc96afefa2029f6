// LocalGraph: the block of one part, which is what a device needs to compute the values of its own
// vertices. Rows of its halo come from the devices that own them.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/partition/partition.h"

namespace nacre {

// Describes the rows that a part exchanges with one other part, its peer.
struct PeerRows {
  int part = 0;
  // These are the local numbers of the own vertices that the peer needs, ordered by number in the
  // whole graph.
  Array<NodeId> send;
  int64_t halo_begin = 0;  // first row of the halo that comes from the peer
  int64_t halo_end = 0;    // row after the last one; the first row of the halo is row 0
};

struct LocalGraph {
  // The graph has the edges that lead to own vertices. The destinations are the own vertices; the
  // sources are the own vertices, then the halo. The edges of a vertex have the order they have in
  // the whole graph, so that sums over them have the same bits. Weights and types are those of the
  // whole graph.
  Graph graph;
  // This list has the number in the whole graph of each own vertex. First come the vertices that no
  // edge connects with other parts, then those from which edges lead to other parts but none back,
  // and then those that need rows of the halo; each of the three groups is ascending. So the rows
  // that can be computed before the halo has arrived are the first ones.
  Array<NodeId> own;
  Array<NodeId> halo;  // number in the whole graph of each halo vertex, by owner, then ascending
  // These are the parts with which this part exchanges rows, ascending. The rows that a part sends
  // to a peer arrive there in the same order, in the rows of the peer's halo that come from this
  // part.
  std::vector<PeerRows> peers;

  int64_t alone = 0;   // number of own vertices of the first group
  int64_t inside = 0;  // number of own vertices of the first two groups, without the halo

  int64_t num_own() const { return own.size(); }
  int64_t num_halo() const { return halo.size(); }
};

// Says whether edges keep their direction or are all turned around (graph/reversed.h).
enum class EdgeSense : uint8_t { forward, reversed };

// Returns the block of a part. A rank may have two blocks of its part: one in the graph as it is,
// and one in the graph with all edges turned around (EdgeSense::reversed; `graph` is that graph
// then). Both have their own vertices in the same order, so the order, `alone` and `inside` of the
// second block are those of the first one.
LocalGraph local_graph(const Graph& graph, const Partition& partition, int part, EdgeSense sense = EdgeSense::forward);

// Returns how many vertices of other parts are destinations of edges that start at own vertices.
// This number is the size of the halo of the part in the graph with all edges turned around.
int64_t count_far_destinations(const Graph& graph, const Partition& partition, int part);

// Returns the local numbers of the own vertices, ordered by their numbers in the whole graph. The
// list is empty if the local numbers already have this order.
Array<NodeId> rows_by_number(const LocalGraph& local);

// These functions return the numbers in the whole graph of the sources of a block (own vertices,
// then the halo), and of its edges.
Array<NodeId> vertex_numbers(const LocalGraph& local);
Array<EdgeId> edge_numbers(const Graph& whole, const LocalGraph& local);

}  // namespace nacre
