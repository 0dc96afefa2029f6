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
  Array<NodeId> send;      // own vertices (local numbers, ascending) that the peer needs
  int64_t halo_begin = 0;  // rows of the halo that come from the peer: [halo_begin, halo_end),
  int64_t halo_end = 0;    // counted from the first row of the halo
};

struct LocalGraph {
  // Edges that lead to own vertices. The destinations are the own vertices; the sources are these,
  // then the halo. The edges of a vertex have the order they have in the whole graph, so that sums
  // over them have the same bits. Weights and types are those of the whole graph.
  Graph graph;
  Array<NodeId> own;   // number in the whole graph of each own vertex, ascending
  Array<NodeId> halo;  // of each vertex of the halo, ordered by owner, then ascending
  // Parts that send or receive anything, ascending. What a part sends to a peer arrives there in
  // the same order in the rows that the peer has for this part.
  std::vector<PeerRows> peers;

  int64_t num_own() const { return own.size(); }
  int64_t num_halo() const { return halo.size(); }
};

LocalGraph local_graph(const Graph& graph, const Partition& partition, int part);

}  // namespace nacre
