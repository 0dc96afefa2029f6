// Rewrites of the DFG that always pay. Each returns a new, validated DFG with the same outputs.
#pragma once

#include "nacre/dfg/dfg.h"

namespace nacre {

// Merges nodes that compute the same thing from the same inputs.
Dfg merge_equal_nodes(const Dfg& dfg);

// In the backward pass of h = dropout(relu(z)), relu_grad(dropout(g), relu(z)) becomes
// scale(relu_grad(g, h), 1/(1−p)). h is positive exactly where both let the value through, so
// relu(z) need not be kept and no random number is drawn again.
Dfg fold_dropout_into_relu_grad(const Dfg& dfg);

// Replaces expand(a) · b by a · b where the product repeats the elements of `a` itself, and does
// the same for sums and differences, so that a short row is not kept in its long form.
Dfg fold_expand(const Dfg& dfg);

}  // namespace nacre
