// Graph: the edges of one message-flow block, grouped by destination (in-CSR). Messages flow src →
// dst. A full graph is a block whose sources and destinations are the same vertices. In a sampled
// block, the destinations are the first num_dst of the sources.
//
// Edges are numbered by their position in the in-CSR; edge weights and types are stored in that
// order. Within one destination, edges are ordered by source (then by input order), so equal graphs
// have equal bytes. Vertex ids are 32 bits wide (up to 4.29 G vertices), offsets 64.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/tensor/array.h"

namespace nacre {

using NodeId = uint32_t;
// Numbers edges in permutations. A graph of 2^32 edges or more has no out-CSC, because EdgeId could
// not number its edges.
using EdgeId = uint32_t;

// The edges of a graph grouped by source. edge_id[i] is the in-CSR position of the i-th edge in
// this order.
struct OutCsc {
  Array<int64_t> row_ptr;  // where the edges of each source begin: num_src + 1 positions
  Array<NodeId> dst;       // destination of each edge
  Array<EdgeId> edge_id;
};

// The distinct (vertex, edge type) pairs at one end of the edges. Typed work is done once per pair.
// Pairs are ordered by (type, vertex); an untyped graph has one type.
struct PairIndex {
  int64_t num_pairs = 0;
  Array<int64_t> type_ptr;    // num_edge_types + 1: where the pairs of each type begin
  Array<NodeId> vertex;       // vertex of each pair
  Array<uint16_t> type;       // type of each pair
  Array<EdgeId> of_edge;      // pair of each edge, in in-CSR order
  Array<int64_t> edge_ptr;    // num_pairs + 1: where the edges of each pair begin
  Array<EdgeId> edge;         // in-CSR positions of each pair's edges, ascending
  Array<NodeId> other;        // the other end of those edges
  Array<int64_t> vertex_ptr;  // number of vertices + 1: where the pairs of each vertex begin
  Array<EdgeId> pair;         // pairs of each vertex, ordered by type
  int64_t bytes() const;
};
enum class End : uint8_t { src, dst };

struct GraphArrays {
  int64_t num_src = 0;
  int64_t num_dst = 0;
  Array<int64_t> row_ptr;     // where the edges of each destination begin: num_dst + 1 positions
  Array<NodeId> col_idx;      // source of each edge
  Array<float> edge_weight;   // weight of each edge; empty in a graph without weights
  Array<uint16_t> edge_type;  // type of each edge; empty in a graph without types
  int num_edge_types = 1;
};

class Graph {
 public:
  Graph();
  // Takes the arrays as they are. Throws UserError naming `where` if sizes or ranges are wrong.
  Graph(GraphArrays arrays, const std::string& where);
  // Makes a graph without looking at the edges, from arrays that this program has just made from a
  // valid graph.
  static Graph trusted(GraphArrays arrays);

  int64_t num_src() const { return a_.num_src; }
  int64_t num_dst() const { return a_.num_dst; }
  int64_t num_nodes() const { return a_.num_src; }
  int64_t num_edges() const { return a_.col_idx.size(); }
  const Array<int64_t>& row_ptr() const { return a_.row_ptr; }
  const Array<NodeId>& col_idx() const { return a_.col_idx; }
  bool weighted() const { return !a_.edge_weight.empty(); }
  bool typed() const { return !a_.edge_type.empty(); }
  const Array<float>& edge_weight() const { return a_.edge_weight; }
  const Array<uint16_t>& edge_type() const { return a_.edge_type; }
  int num_edge_types() const { return a_.num_edge_types; }
  int64_t in_degree(int64_t dst) const { return a_.row_ptr[dst + 1] - a_.row_ptr[dst]; }
  const GraphArrays& arrays() const { return a_; }

  // Returns the edges grouped by source. They are built on first use, in parallel; several threads
  // may call this at once.
  const OutCsc& out() const;
  bool has_out() const;
  // Returns the destination of every edge in in-CSR order (built on first use).
  const Array<NodeId>& edge_dst() const;

  // Returns the pairs of the edges' sources or destinations with the edges' types (built on first
  // use).
  const PairIndex& pairs(End end) const;
  bool has_pairs(End end) const;
  // Returns the number of pairs at one end of the edges. The pairs are counted without building
  // their index.
  int64_t count_pairs(End end) const;

  // Return the bytes of the graph's arrays, and the bytes that out() adds to them.
  int64_t bytes() const;
  int64_t out_bytes() const;

  // Returns a hash of structure, weights and types. Equal graphs have equal fingerprints, whatever
  // files they came from.
  uint64_t fingerprint() const;

 private:
  struct Lazy;
  GraphArrays a_;
  std::shared_ptr<Lazy> lazy_;  // shared between copies
};

// A list of edges, as files hold it.
struct EdgeList {
  int64_t num_nodes = 0;
  std::vector<NodeId> src;
  std::vector<NodeId> dst;
  std::vector<float> weight;   // empty, or one per edge
  std::vector<uint16_t> type;  // empty, or one per edge
  int num_types = 1;
};

// Groups the edges by destination and sorts them by source within each destination. Duplicates and
// self loops are kept.
Graph build_graph(EdgeList edges, const std::string& where);

// Returns a copy with one self loop (weight 1) on every vertex that has none. In a typed graph,
// these loops get a type of their own.
Graph add_self_loops(const Graph& graph);
// Returns a copy in which every edge also exists in reverse, with the same weight and type.
// Duplicates become one edge with the weight and type of the first; self loops stay single.
Graph make_undirected(const Graph& graph);
// Returns a copy whose edges carry a type in [0, relations), which is a hash of (src, dst).
Graph assign_relations(const Graph& graph, int relations);

}  // namespace nacre
