// Builds the structure that most models share: layers one after another, with normalisation,
// activation and dropout between them.
#pragma once

#include <functional>

#include "nacre/model/model.h"

namespace nacre {

// LayerFunction is a function that returns the output of one layer, a vertex value of width `out`,
// for the input x. `last` is true for the layer that gives the logits.
using LayerFunction = std::function<Value(Value x, int64_t out, bool last)>;

// Returns the logits of features → input dropout → { layer → norm → activation → (+ residual) →
// dropout } … → layer. With input_dropout = dropout, the input of every layer is dropped out, as in
// the GCN and GAT papers.
Value stack_layers(Napa& net, const ModelOptions& options, const LayerFunction& layer);

}  // namespace nacre
