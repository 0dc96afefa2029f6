// Builds the structure that most models share: layers one after another, with normalisation,
// activation and dropout between them.
#pragma once

#include <functional>

#include "nacre/model/model.h"

namespace nacre {

// Computes one layer, from x to a vertex value of width `out`. `last` is set for the layer that
// gives the logits.
using LayerFunction = std::function<Value(Value x, int64_t out, bool last)>;

// Builds features → input dropout → { layer → norm → activation → (+ residual) → dropout } … →
// layer. With input_dropout = dropout, the input of every layer is dropped out, as in the GCN and
// GAT papers.
Value stack_layers(Napa& net, const ModelOptions& options, const LayerFunction& layer);

}  // namespace nacre
