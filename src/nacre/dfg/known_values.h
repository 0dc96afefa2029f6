// Finds values of edges that every rank can compute for a block that is not its own: numbers such
// as weights and norms, which depend on inputs and parameters alone. Aggregations that are placed
// on such a block (distribute_columns.h, distribute_sums.h) read these values.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "nacre/base/function_ref.h"
#include "nacre/dfg/dfg.h"
#include "nacre/dfg/node_vector.h"

namespace nacre {

// Returns whether a node is the rows of vertices, gathered along the edges.
bool is_gather(const Node& node);
// Returns whether an operation computes each element of a row from the elements at its place, and
// does not depend on the number of the row or of the element.
bool is_plain_elementwise(Op op);

// Returns the name of the leaf that holds the rows of an input for a layer of reversed edges.
std::string reversed_leaf(const std::string& input);

class KnownValues {
 public:
  // The edges for which values are needed: those of a layer, whose ends may be swapped.
  struct Place {
    int layer = 0;
    // Whether the sources of the layer are the destinations of the edges in `dfg`.
    bool reversed = false;
  };
  // Returns the form of a node in `out` that all readers share: the rows of the rank's own
  // vertices, or a parameter.
  using Own = FunctionRef<NodeRef(NodeRef)>;

  // `dfg` is the DFG of the model, before distribution.
  KnownValues(const Dfg& dfg, Place place);

  // Returns whether the values of a node are known for all edges, or for the vertices at one end
  // of the edges (in `dfg`).
  bool known(NodeRef i, Attr end) const { return known_[i] != 0 && (known_[i] == kAnywhere || end == Attr::dst); }
  bool known_on_edges(NodeRef i) const { return known(i, Attr::none); }
  // Adds a known value to `out` and returns it.
  NodeRef add(NodeRef i, Attr end, Dfg& out, Own own);

  // Return the space of the layer's edges, and the space of the vertices at one end of them.
  Space edges() const { return Space::edge(place_.layer); }
  Space vertices(Attr end) const;
  // Returns the end of the layer's edges that corresponds to `end` in `dfg`. The two differ if the
  // layer is reversed.
  Attr end_in_layer(Attr end) const;

 private:
  // Where a value is known: at both ends, or only at destinations.
  static constexpr char kAnywhere = 1, kAtDst = 2;

  bool find_known(NodeRef i) const;
  bool needs_dst(NodeRef i) const;
  bool is_small(NodeRef i) const;
  NodeRef make(NodeRef i, Attr end, Dfg& out, Own own);

  const Dfg& dfg_;
  Place place_;
  NodeVector<char> known_;
  std::map<std::pair<NodeRef, Attr>, NodeRef> made_;
};

}  // namespace nacre
