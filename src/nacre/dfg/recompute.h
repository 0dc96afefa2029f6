// Recomputation: a value that the forward pass made is dropped after its last reader there, and the backward pass
// computes it again from what is in memory anyway, right before its first reader. Memory for time, without a change of
// a single bit on a CPU: the clones are the same operations on the same operands, and dropout draws by salt and
// element. On a GPU what is not kept may be fused elsewhere, where a product and a sum are rounded once.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "nacre/dfg/dfg.h"
#include "nacre/dfg/node_vector.h"

namespace nacre {

// A value of the forward pass that gradients read, or whose rows they gather.
struct Recomputable {
  std::string name;  // "relu@layers.0.lin.bias": operation and nearest parameter, the same whenever the DFG is
  NodeRef node = -1;
  // Its computation walks edges again: sums over neighbours, attention, sequences.
  bool over_edges = false;
};

// In topological order. Values that depend on no parameter and no random number are left out: they never change.
std::vector<Recomputable> find_recomputable(const Dfg& dfg);

struct Recomputed {
  Dfg dfg;
  NodeVector<char> again;  // per node: a clone, to be computed no sooner than somebody needs it
};

// The backward pass computes the values of these names again, and what lies below them down to values that it reads
// from memory all the same. A DFG without gradients stays as it is; in others a name that means nothing is a UserError.
Recomputed recompute(const Dfg& dfg, const std::set<std::string>& names);

}  // namespace nacre
