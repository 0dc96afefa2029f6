// Holds what all models with attention share.
#pragma once

#include "nacre/model/stack.h"

namespace nacre {

inline constexpr double kAttentionSlope = 0.2;  // slope of the leaky ReLU in the scores

// Returns the output of an attention layer, y_i = b + Σ_j α_ij · z_j, where α is the softmax of the
// scores over the edges of each destination. The heads are concatenated on hidden layers and
// averaged on the last layer.
inline Value attend(Napa& net, const ModelOptions& options, Value z, Value score, bool last) {
  const Value alpha = net.dropout(net.edge_softmax(score), options.attention_dropout);
  const Value y = net.pull(z, Aggregate::mix, alpha);
  return net.add_bias(last ? net.mean_heads(y) : net.merge_heads(y));
}

}  // namespace nacre
