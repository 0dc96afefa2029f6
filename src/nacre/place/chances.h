// Computes the chance that a vertex of a batch draws one of its in-neighbours in a hop. Only files
// of this room include this header.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/place/drawers.h"
#include "nacre/sample/sample.h"

namespace nacre {

constexpr int kMostHops = 16;  // samples with more hops are counted as if they had this many

// Holds the chances of one pair of vertices in every hop. If one edge leads from v to u, and all
// edges of a row have the same chance, `forth` points to the chances of u; otherwise it points to
// forth_store. In the same way, `back` points to the chances of v or to back_store.
struct PairChances {
  const float* forth;  // chances that u draws v
  const float* back;   // chances that v draws u
  float forth_store[kMostHops];
  float back_store[kMostHops];
};

// Returns the chance that `count` uniform draws out of `degree` edges take at least one of `edges`
// given ones. `replace` says whether an edge may be drawn again. If `count` is negative, all edges
// are taken.
double uniform_chance(int64_t degree, int64_t edges, int count, bool replace);

// Writes to `chances`, for every candidate, the chance that it is among `count` that are drawn by
// weight, as draw.h defines it. With replacement, the chances are exact. Without replacement, they
// are those of drawing one candidate after the other with the weight that is left on average after
// each draw, which is exact for one draw and for equal weights.
void weighted_chances(std::span<const double> weights, int count, bool replace, std::vector<double>& chances);

// Describes a hop of any sampler to the computation of reads: a vertex u draws a vertex v with a
// chance that depends on u or on the edge.
class DrawChances {
 public:
  DrawChances(const Graph& graph, const SampleOptions& options, int hops);

  int hops() const { return hops_; }
  bool by_edge() const { return by_edge_; }
  // Sets the chances of hop `hop`. `known` has for every vertex the probability that it draws in
  // this hop; only layer-wise sampling depends on it.
  void set_hop(int hop, std::span<const float> known, const DrawerLists& lists);
  // Computes the chances of the first `hops` hops and stores them.
  void fill(int64_t v, const DrawPair& pair, int hops, PairChances& out) const {
    if (!by_edge_ && pair.edges == 1) {
      out.forth = single(pair.u);
    } else {
      for (int h = 0; h < hops; ++h) out.forth_store[h] = static_cast<float>(forth(h, pair));
      out.forth = out.forth_store;
    }
    if (!by_edge_ && pair.back == 1) {
      out.back = single(v);
    } else {
      for (int h = 0; h < hops; ++h) out.back_store[h] = static_cast<float>(back(h, v, pair));
      out.back = out.back_store;
    }
  }

  // Return the record of a vertex. Its first hops() + 1 numbers are for the caller. The chances of
  // single edges follow them, because both are read together.
  float* record(int64_t v) { return records_.data() + v * stride_; }
  const float* record(int64_t v) const { return records_.data() + v * stride_; }

 private:
  const float* single(int64_t u) const { return record(u) + hops_ + 1; }
  float* single(int64_t u) { return record(u) + hops_ + 1; }
  double forth(int hop, const DrawPair& pair) const {
    return by_edge_ ? of_edges(hop, pair.ids, pair.edges) : of_parallel(hop, pair.u, pair.edges);
  }
  double back(int hop, int64_t v, const DrawPair& pair) const {
    if (pair.back == 0) return 0;
    return by_edge_ ? of_range(hop, pair.back_first, pair.back) : of_parallel(hop, static_cast<NodeId>(v), pair.back);
  }
  double of_parallel(int hop, NodeId u, int64_t edges) const;
  double of_edges(int hop, const EdgeId* ids, int64_t count) const {
    double none = 1;
    for (int64_t i = 0; i < count; ++i) none *= 1 - of_edge_[static_cast<size_t>(hop)][ids[i]];
    return 1 - none;
  }
  double of_range(int hop, int64_t first, int64_t count) const {
    double none = 1;
    for (int64_t i = 0; i < count; ++i) none *= 1 - of_edge_[static_cast<size_t>(hop)][first + i];
    return 1 - none;
  }
  void set_neighbor_hop(int hop);
  void set_row(int hop, int64_t u, std::vector<double>& weights, std::vector<double>& chances);
  void set_layer_hop(int hop, std::span<const float> known, const DrawerLists& lists);

  const Graph& graph_;
  const SampleOptions& options_;
  int hops_;
  bool layerwise_;
  bool by_edge_;
  int64_t stride_;
  Buffer<float> records_;               // the records of all vertices: [vertex][number]
  std::vector<Buffer<float>> of_edge_;  // chances by [hop][edge]; empty if all edges of a row have
                                        // the same chance
};

// Layer-wise sampling takes candidates whose keys, exponential variables of the rate of their
// importance, are below a threshold. Returns the threshold with which `fanout` candidates are drawn
// on average, or infinity if there are not as many. `share2(u, pair)` is what u adds to the
// importance of v.
double layer_threshold(const Graph& graph, const DrawerLists& lists, std::span<const float> known,
                       std::span<const float> edge_share2, int fanout);

}  // namespace nacre
