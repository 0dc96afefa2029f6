// The places of a DFG where the same values can be computed in more than one order, so that the
// planner must choose.
//
// Typed products (WG5). As written, Σ_e w_e·x[src(e)]·W[type(e)] multiplies once per edge.
// Extracting unique values makes it multiply once per distinct (vertex, type) pair of one end, with
// the index swapped over the product (a 2-D index):
//   edge  as written
//   src   forward: multiply pairs of the sources, then sum over edges; backward: sum over the edges
//         of each pair first
//   dst   forward: sum over the edges of each destination's pairs, then multiply; backward mirrored
//   cover every edge by the end whose pair more edges share: the edges are divided so that they
//         touch as few pairs as possible (graph/edge_cover.h), one half is done by src and the
//         other by dst, and the results are added. Offered for a whole graph whose edge factors are
//         constant.
// Weight gradients of such products sum over the pairs of either end, or of both.
//
// Aggregation and product (GT3, dynamic kernel placement). (A·x)·W = A·(x·W) is chosen per layer.
// In the backward pass, it is chosen separately for the gradient of x and for that of W, which may
// also use either A·x or Aᵀ·g:
//   aggregate  the sum over neighbours first
//   combine    the product first
//
// Gradients of an LSTM need the gates of every step:
//   recompute  the backward pass runs the forward pass again, a piece at a time
//   keep       the forward pass stores the gates (edges × 4H), if there is memory
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/kernel/blocks.h"

namespace nacre {

struct Site {
  // "matmul_t@layers.1.lin.weight": operation and parameter, the same for every plan of the model.
  std::string key;
  NodeRef node = -1;
  std::string written;  // the option that the DFG has now
  std::vector<std::string> options;
};

// The option of a typed product for which the edges are divided.
inline constexpr const char* kCoverOption = "cover";

// Returns the sites in topological order. The edges can be divided if the blocks have layers for
// the halves.
std::vector<Site> find_sites(const Dfg& dfg, CoverLayers cover = {});

// Maps the key of a site to an option. Sites that are not named stay as written.
using Choices = std::map<std::string, std::string>;

// Throws UserError if a choice names a site or an option that does not exist. With `all`, every
// choice must name a site. Without it, choices of other DFGs of the model are passed over, because
// the model has fewer sites in evaluation.
Dfg apply_choices(const Dfg& dfg, const Choices& choices, bool all = true, CoverLayers cover = {});

// Returns whether one of the choices is to divide the edges.
bool divides_edges(const Choices& choices);

// Replaces the option cover by dst, for blocks whose edges cannot be divided: those of a rank or of
// a batch, which may run the plan of a whole graph.
void leave_edges_together(Choices& choices);

}  // namespace nacre
