// Runs several ranks in one process, each on a thread of its own, connected in the plainest way:
// one rank reads the memory of the others between two barriers. Distributed DFGs are tested with
// them.
#pragma once

#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/kernel/blocks.h"
#include "nacre/kernel/ref/interpreter.h"

namespace nacre::test {

// Holds the part of a graph that belongs to one rank.
struct Rank {
  Graph graph;             // edges to own vertices
  Array<NodeId> vertices;  // numbers in the whole graph of own vertices, then of the halo
  Array<EdgeId> edges;     // numbers in the whole graph of the edges
  int64_t num_own = 0;
  // The reversed block has the edges that start at own vertices, turned around. Its vertices and
  // edges have their numbers in the whole graph beside it.
  Graph reversed = {};
  Array<NodeId> reversed_vertices = {};
  Array<EdgeId> reversed_edges = {};
};

// Returns the parts of a graph for all ranks; `part` has the rank of each vertex. Edges keep their
// order.
std::vector<Rank> split_graph(const Graph& graph, const std::vector<int>& part, int ranks);

// Returns, for edges of reversed_graph(graph), the numbers of the same edges in `graph`.
Array<EdgeId> edges_of_reversed(const Graph& graph, const Array<EdgeId>& edges);

// Calls run(rank, blocks) for every rank, each on its own thread, with blocks that connect them.
// `whole` is the graph of all ranks. If a rank throws, run_ranks() throws the same exception; the
// other ranks must not wait for that rank then.
void run_ranks(const std::vector<Rank>& ranks, int layers, const Graph& whole,
               const std::function<void(int, const Blocks&)>& run);

// Returns the rows that a rank has of every leaf: under the leaf's name, under that of its copy
// with the halo, and under the names of the whole graph and of the reversed edges.
ref::Bindings bindings_of(const Rank& rank, const Dfg& dfg, const ref::Bindings& whole);

}  // namespace nacre::test
