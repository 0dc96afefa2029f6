// Recognises the expressions over edges that have a hand-written kernel. Each match says why it declined.
#pragma once

#include <optional>
#include <string>

#include "nacre/plan/analysis.h"

namespace nacre {

// index(x, end) times any number of edge factors.
struct GatherProduct {
  NodeRef x = -1;
  Attr end = Attr::none;         // src or dst
  std::vector<NodeRef> factors;  // edge values with fewer elements per row
};

// Σ over edges of index(x)·W[type]·factors.
struct TypedProduct {
  NodeRef typed = -1;  // the typed_matmul(_t) node
  GatherProduct gather;
  std::vector<NodeRef> factors;  // one scalar per edge each, inside and outside the product
};

// `inlined(node)`: the node is recomputed by whoever reads it. Empty result: `why` says what did not fit.
std::optional<GatherProduct> match_gather(const Analysis& an, NodeRef edge_value, std::string* why);
std::optional<TypedProduct> match_typed(const Analysis& an, NodeRef edge_value, std::string* why);

// The inputs of typed_weight_grad: gathers of opposite ends with scalar factors.
struct TypedGrad {
  GatherProduct x;
  GatherProduct g;
};
std::optional<TypedGrad> match_typed_grad(const Analysis& an, NodeRef typed_weight_grad, std::string* why);

// The other end of an edge.
inline Attr opposite(Attr end) { return end == Attr::src ? Attr::dst : Attr::src; }

}  // namespace nacre
