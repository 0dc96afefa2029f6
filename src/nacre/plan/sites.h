// The places of a DFG where the same values can be computed in more than one order, and so the planner must choose.
//
// Typed products (WG5). Σ_e w_e·x[src(e)]·W[type(e)] as written multiplies once per edge. Extracting unique values lets
// it multiply once per distinct (vertex, type) pair of one end, with the index swapped over the product (a 2-D index):
//   edge  as written
//   src   forward: multiply pairs of the sources, then sum over edges; backward: sum over the edges of each pair first
//   dst   forward: sum over the edges of each pair of a destination, then multiply; backward mirrored
// Weight gradients of such products sum over the pairs of either end.
//
// Aggregation and product (GT3, dynamic kernel placement). (A·x)·W = A·(x·W), chosen per layer, and in the backward
// pass apart for the gradient of x and for that of W, which also may use either A·x or Aᵀ·g:
//   aggregate  the sum over neighbours first
//   combine    the product first
//
// Gradients of an LSTM need the gates of every step:
//   recompute  the backward pass runs the forward pass again, a piece at a time
//   keep       the forward pass stores them (edges × 4H), if there is memory
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

struct Site {
  std::string key;  // "matmul_t@layers.1.lin.weight": operation and parameter, the same for every plan of the model
  NodeRef node = -1;
  std::string written;  // the option the DFG has now
  std::vector<std::string> options;
};

// In topological order.
std::vector<Site> find_sites(const Dfg& dfg);

// Site key → option. Sites not named stay as written.
using Choices = std::map<std::string, std::string>;

// Throws UserError when a choice names a site or an option that does not exist (`all`: every choice must name a site;
// otherwise those of other DFGs of the model, which has fewer sites in evaluation, are passed over).
Dfg apply_choices(const Dfg& dfg, const Choices& choices, bool all = true);

}  // namespace nacre
