// Recognises the expressions over edges that have a hand-written kernel. A function that finds no
// match says why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"

namespace nacre {

// Describes index(x, end) times any number of edge factors.
struct GatherProduct {
  NodeRef x = -1;
  Attr end = Attr::none;         // src or dst
  bool pair = false;             // x is on the (vertex, type) pairs of that end
  std::vector<NodeRef> factors;  // values of edges that scale the row; they have fewer dimensions
};

// The expression that is summed over edges: index(x)·W[type]·factors.
struct TypedProduct {
  NodeRef typed = -1;  // the typed_matmul(_t) node
  GatherProduct gather;
  std::vector<NodeRef> factors;  // factors with one scalar per edge, inside and outside the product
};

// Each function below compares the expression that computes a value with the form that one
// hand-written kernel can compute. If the expression has another form, the result is empty, and
// `why` says what differs.
std::optional<GatherProduct> match_gather(const Dfg& dfg, NodeRef edge_value, std::string* why);
std::optional<TypedProduct> match_typed(const Dfg& dfg, NodeRef edge_value, std::string* why);

// The inputs of typed_weight_grad: gathers of opposite ends with scalar factors.
struct TypedGrad {
  GatherProduct x;
  GatherProduct g;
};
std::optional<TypedGrad> match_typed_grad(const Dfg& dfg, NodeRef typed_weight_grad, std::string* why);

// Typed products that were moved to the pairs of one end (sites.h), as one kernel:
// index_add(typed_matmul(_t)(index_add(gather × scalar, pairs), W)). It sums over the edges of each
// pair, multiplies, and sums the products.
struct PairSum {
  NodeRef typed = -1;
  GatherProduct gather;
};
std::optional<PairSum> match_pair_sum(const Dfg& dfg, NodeRef index_add, std::string* why);
// The operands of a typed_weight_grad that multiplies rows of vertices, read by pair, with sums
// over the edges of each pair. Either of the two may be the first operand.
struct PairGrad {
  NodeRef by_row = -1;    // the vertex value that is read by pair
  GatherProduct summed;   // what is summed over the edges of each pair
  bool row_is_x = false;  // whether by_row is the first operand
};
std::optional<PairGrad> match_pair_grad(const Dfg& dfg, NodeRef typed_weight_grad, std::string* why);

// Returns the other end of an edge.
inline Attr opposite(Attr end) { return end == Attr::src ? Attr::dst : Attr::src; }

}  // namespace nacre
