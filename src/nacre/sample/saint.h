// GraphSAINT: draws one subgraph for all layers, and corrects for vertices and edges that are drawn
// more often than others. Only files of this room include this header.
#pragma once

#include <memory>
#include <vector>

#include "nacre/sample/sample.h"

namespace nacre {

// Draws the vertices of a subgraph. Draw i of `budget` uses the stream of channel 0, hop 0, vertex
// i
// (draw.h):
//   vertex: by running sums over all vertices of the squared norms of the columns of the
//           row-normalised adjacency with self loops, Σ over v = u and u → v of
//           1 / (in-degree(v) + 1)²; words 0 and 1;
//   edge:   u → v by 1 / in-degree(v) + 1 / max(in-degree(u), 1): a destination by running sums of
//           the total of its row (words 0 and 1), an edge of the row likewise (words 2 and 3); both
//           ends are taken;
//   walk:   a root below(w(0), vertices), then `walk_length` steps, of which step s leads to the
//           source of in-edge below(w(s), degree); a walk stays where there is no in-edge. All
//           vertices on the way are taken.
class SaintDraw {
 public:
  SaintDraw(const Graph& graph, const SampleOptions& options);
  // Writes the drawn vertices, distinct and ascending, to `out`.
  void vertices(uint64_t key, std::vector<NodeId>& out) const;

 private:
  void weigh_columns();
  void weigh_rows();
  double edge_weight(int64_t dst, int64_t edge) const;
  int64_t edge_of_row(int64_t dst, double unit) const;

  const Graph& graph_;
  const SampleOptions& options_;
  enum class What { vertices, edges, walks } what_;
  std::vector<double> sums_;  // running sums, one for each vertex; empty for walks
};

// Counts how often vertices and edges were drawn in `norm_samples` subgraphs, which are drawn with
// epoch 2^64 - 1 and batches 0, 1, …
struct SaintCounts {
  int64_t samples = 0;
  std::vector<uint16_t> vertex;
  std::vector<uint16_t> edge;
  double loss_factor = 1;  // makes the mean of loss_scale over those subgraphs 1

  // Chances are estimated with the current subgraph counted in, as (count + 1) / (samples + 1),
  // which is never 0. The expected inverse equals that of the chance itself up to (1 -
  // chance)^(samples + 1).
  float edge_scale(NodeId dst, int64_t position) const {
    return static_cast<float>(vertex[dst] + 1) / static_cast<float>(edge[position] + 1);
  }
  float loss_scale(NodeId v) const {
    return static_cast<float>(loss_factor * static_cast<double>(samples + 1) / (vertex[v] + 1));
  }
};

struct SaintShared {
  SaintShared(const Graph& graph, const SampleOptions& options);
  SaintDraw draw;
  SaintCounts counts;
};

std::unique_ptr<BatchSampler> make_saint_sampler(const Graph& graph, const SampleOptions& options, int layers,
                                                 const SaintShared& shared);

}  // namespace nacre
