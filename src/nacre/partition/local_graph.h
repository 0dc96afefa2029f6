// The block of one part: what a device needs to compute the values of its own vertices. Rows of its
// halo come from the devices that own them.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/partition/partition.h"

namespace nacre {

// What is exchanged with one other part.
struct PeerRows {
  int part = 0;
  // The local numbers of own vertices that the peer needs, ordered by number in the whole graph.
  Array<NodeId> send;
  int64_t halo_begin = 0;  // rows of the halo that come from the peer: [halo_begin, halo_end),
  int64_t halo_end = 0;    // counted from the first row of the halo
};

struct LocalGraph {
  // Edges that lead to own vertices. The destinations are the own vertices; the sources are these,
  // then the halo. The edges of a vertex have the order they have in the whole graph, so that sums
  // over them have the same bits. Weights and types are those of the whole graph.
  Graph graph;
  // The number in the whole graph of each own vertex. First come the vertices that no edge connects
  // with other parts, then those from which edges lead to other parts but none back, and then those
  // that need rows of the halo; each of the three groups is ascending. So the rows that can be
  // computed before the halo has arrived are the first ones.
  Array<NodeId> own;
  Array<NodeId> halo;  // of each vertex of the halo, ordered by owner, then ascending
  // Parts that send or receive anything, ascending. What a part sends to a peer arrives there in
  // the same order in the rows that the peer has for this part.
  std::vector<PeerRows> peers;

  int64_t alone = 0;   // number of own vertices of the first group
  int64_t inside = 0;  // number of own vertices of the first two groups, which need no row of the
                       // halo

  int64_t num_own() const { return own.size(); }
  int64_t num_halo() const { return halo.size(); }
};

// Says whether edges keep their direction or are all turned around (graph/reversed.h).
enum class EdgeSense : uint8_t { forward, reversed };

// Returns the block of a part. A rank may have the block of its part and that of the same part in
// the graph with all edges turned around. Both must have their own vertices in the same order, so
// with EdgeSense::reversed the order is that of the block with edges in their direction, and
// `alone` and `inside` are those of that block.
LocalGraph local_graph(const Graph& graph, const Partition& partition, int part, EdgeSense sense = EdgeSense::forward);

// Returns how many vertices of other parts edges lead to from own vertices. It is the size of the
// halo of the part in the graph with all edges turned around.
int64_t count_far_destinations(const Graph& graph, const Partition& partition, int part);

// Returns the local numbers of the own vertices, ordered by their numbers in the whole graph. The
// list is empty if that is the order of the rows.
Array<NodeId> rows_by_number(const LocalGraph& local);

// Return the numbers in the whole graph of the sources of a block (own vertices, then the halo) and
// of its edges.
Array<NodeId> vertex_numbers(const LocalGraph& local);
Array<EdgeId> edge_numbers(const Graph& whole, const LocalGraph& local);

}  // namespace nacre
