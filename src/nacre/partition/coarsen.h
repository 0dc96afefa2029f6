// Makes one step of coarsening: vertices with many edges between them become one vertex of a
// smaller graph. Clusters are found by label propagation with a bound on their size (Meyerhenke,
// Sanders, Schulz: SEA 2014), which follows the communities of real graphs better than pairs of
// vertices do.
#pragma once

#include <cstdint>
#include <vector>

#include "nacre/partition/view.h"
#include "nacre/tensor/array.h"

namespace nacre {

// Holds a weighted undirected graph without self loops and parallel edges.
struct Coarse {
  Buffer<int64_t> row_ptr;  // where each list begins; at the end, where the last one ends
  Buffer<NodeId> adjacent;
  Buffer<uint32_t> weight;  // number of edges that each entry stands for
  Buffer<int64_t> work;     // work of each vertex

  int64_t count() const { return work.size(); }
  UndirectedView view() const { return {count(), row_ptr.data(), adjacent.data(), weight.data()}; }
};

// Holds the cluster of each vertex. Clusters are numbered from 0 without gaps.
struct Clusters {
  Buffer<NodeId> of;
  int64_t count = 0;
};

struct ClusterOptions {
  int64_t most_work = 0;  // the most work of a cluster with several vertices
  int rounds = 4;
  uint64_t seed = 0;
};

// Returns clusters that are found by label propagation. They are the same on any number of threads.
Clusters find_clusters(const UndirectedView& view, const int64_t* work, const ClusterOptions& options);
// Returns clusters with one vertex each.
Clusters single_clusters(int64_t count);
// Returns the graph of the clusters: the vertices of each cluster become one vertex, and their work
// and the weights of their edges are added up.
Coarse contract(const UndirectedView& view, const int64_t* work, const Clusters& clusters);

}  // namespace nacre
