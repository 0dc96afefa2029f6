// Turns a model of vertices into a recommender. Users and items are vertices of two kinds; a user
// is recommended the items whose embeddings have the largest dot products with the user's.
//
// The training DFG has one block more than the model. The destinations of that block are the
// triples of the batch (user, item the user took, item the user did not take); three edges lead to
// each triple from its members, in this order. With u, p, n the embeddings of the three and e their
// first embeddings (what the model starts from, learned rows included), it computes the BPR loss
// (Rendle et al., 2009)
//   loss = Σ_t weight_t · (log(1 + exp(−u·(p − n))) + decay/2 · (‖e_u‖² + ‖e_p‖² + ‖e_n‖²))
//
// Leaves beside those of the model, with L the number of the model's blocks: "user_share" e(L)[] =
// 1, 0, 0 and "item_share" e(L)[] = 0, 1, −1 on the edges of every triple; "target" v(L+1)[1]:u8,
// all 1; "loss_weight" v(L+1)[] (1/triples gives the mean; 0 leaves a triple out). The embedding is
// the input of the model's last layer, and that layer is left out (ModelOptions::embeddings).
#pragma once

#include "nacre/model/model.h"

namespace nacre {

// With options.training, returns a DFG whose output "loss" is the BPR loss; otherwise, returns one
// whose output "embedding" is the embeddings v(L)[D]. Ignores out_dim and loss of the options.
// Throws UserError if the model has no embedding.
Dfg build_recommender(const ModelOptions& options, double embedding_decay);

}  // namespace nacre
