// Recomputation: a value of the forward pass is dropped after its last reader there, and the
// backward pass computes it again, right before its first reader, from values that are in memory
// anyway. This trades time for memory. On a CPU no bit changes, because the clones are the same
// operations on the same operands, and dropout draws by salt and element. On a GPU, a value that is
// not kept may be fused into another kernel, where a product and a sum are rounded once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/dfg/node_vector.h"

namespace nacre {

// A value of the forward pass that gradients read, or whose rows they gather.
struct Recomputable {
  // The operation and the nearest parameter, such as "relu@layers.0.lin.bias". Equal DFGs give
  // equal names.
  std::string name;
  NodeRef node = -1;
  // Whether computing the value again walks edges: sums over neighbours, attention, sequences.
  bool over_edges = false;
};

// Returns the values in topological order. Values that depend on no parameter and no random number
// never change and are left out.
std::vector<Recomputable> find_recomputable(const Dfg& dfg);

struct Recomputed {
  Dfg dfg;
  // For each node, whether it is a clone, which must not be computed before it is needed.
  NodeVector<char> again;
};

// Makes the backward pass compute the values of these names again, and with them all values that
// they are computed from and that the backward pass does not keep in memory anyway. A DFG without
// gradients stays as it is; in other DFGs an unknown name is a UserError.
Recomputed recompute(const Dfg& dfg, const std::set<std::string>& names);

}  // namespace nacre
