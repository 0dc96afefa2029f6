// Recognises the expressions over edges that have a hand-written kernel. Each match says why it declined.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

// index(x, end) times any number of edge factors.
struct GatherProduct {
  NodeRef x = -1;
  Attr end = Attr::none;         // src or dst
  bool pair = false;             // x lives on the (vertex, type) pairs of that end
  std::vector<NodeRef> factors;  // edge values with fewer elements per row
};

// Σ over edges of index(x)·W[type]·factors.
struct TypedProduct {
  NodeRef typed = -1;  // the typed_matmul(_t) node
  GatherProduct gather;
  std::vector<NodeRef> factors;  // one scalar per edge each, inside and outside the product
};

// `inlined(node)`: the node is recomputed by whoever reads it. Empty result: `why` says what did not fit.
std::optional<GatherProduct> match_gather(const Dfg& dfg, NodeRef edge_value, std::string* why);
std::optional<TypedProduct> match_typed(const Dfg& dfg, NodeRef edge_value, std::string* why);

// The inputs of typed_weight_grad: gathers of opposite ends with scalar factors.
struct TypedGrad {
  GatherProduct x;
  GatherProduct g;
};
std::optional<TypedGrad> match_typed_grad(const Dfg& dfg, NodeRef typed_weight_grad, std::string* why);

// Typed products that were moved to the pairs of one end (sites.h), as one kernel.
// index_add(typed_matmul(_t)(index_add(gather × scalar, pairs), W)): sums over each pair's edges, products, sums of
// those.
struct PairSum {
  NodeRef typed = -1;
  GatherProduct gather;
};
std::optional<PairSum> match_pair_sum(const Dfg& dfg, NodeRef index_add, std::string* why);
// typed_weight_grad of (vertex rows by pair, sums over each pair's edges), either way round.
struct PairGrad {
  NodeRef by_row = -1;    // the vertex value read by pair
  GatherProduct summed;   // what is summed over each pair's edges
  bool row_is_x = false;  // by_row is the first operand
};
std::optional<PairGrad> match_pair_grad(const Dfg& dfg, NodeRef typed_weight_grad, std::string* why);

// The other end of an edge.
inline Attr opposite(Attr end) { return end == Attr::src ? Attr::dst : Attr::src; }

}  // namespace nacre
