// From a model of vertices to a recommender: users and items are vertices of two kinds, a user is
// recommended the items whose embeddings have the largest dot products with the user's.
//
// The DFG of training has one block more than the model. Its destinations are the batch's triples
// (user, item the user took, item the user did not take), its edges lead to each triple from those
// three, in this order. With u, p, n their embeddings and e their first ones (what the model starts
// from, learned rows included), it computes
//   loss = Σ_t weight_t · (log(1 + exp(−u·(p − n))) + decay/2 · (‖e_u‖² + ‖e_p‖² + ‖e_n‖²))      BPR (Rendle et al.,
//   2009)
//
// Leaves beside the model's, with L the model's blocks: "user_share" e(L)[] = 1, 0, 0 and
// "item_share" e(L)[] = 0, 1, −1 on the edges of every triple; "target" v(L+1)[1]:u8, all 1;
// "loss_weight" v(L+1)[] (1/triples gives the mean; 0 leaves a triple out). The embedding is what
// the model gives to its last layer, which is left out (ModelOptions::embeddings).
#pragma once

#include "nacre/model/model.h"

namespace nacre {

// options.training: the loss above as output "loss"; otherwise the embeddings v(L)[D] as output
// "embedding". out_dim and loss of the options are not used. Throws UserError when the model has no
// embedding.
Dfg build_recommender(const ModelOptions& options, double embedding_decay);

}  // namespace nacre
