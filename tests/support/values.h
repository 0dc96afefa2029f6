// Draws random values for the leaves of a DFG.
#pragma once

#include <cstdint>

#include "nacre/kernel/ref/interpreter.h"

namespace nacre::test {

struct ValueOptions {
  double scale = 1;  // standard deviation of parameters and features
  double gap = 0;    // distance of parameters and features from 0, where activations have kinks
};

// Returns a value for every leaf, chosen by what the DFG uses it for:
//  - labels of nll (and other i32 leaves): classes in range, about one in eight -1 (left out)
//  - weights of nll and bce: 0 or positive, as training masks are
//  - targets and other u8 leaves: 0 or 1
//  - moments of standardize: any mean, positive variance
//  - leaves named edge_weight…: the weights of the graph or, if it has none, random positive ones;
//    they are equal in all layers
//  - everything else: normal, as `options` say
ref::Bindings random_bindings(const Dfg& dfg, const Blocks& blocks, uint64_t seed, const ValueOptions& options = {});

}  // namespace nacre::test
