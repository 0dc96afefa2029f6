// A small data set with several kinds of vertices, and runs of mini-batches on it.
#pragma once

#include <string>

#include "nacre/train/batch_session.h"
#include "train/runs.h"

namespace nacre::test {

inline constexpr int64_t kPapers = 36;
inline constexpr int64_t kAuthors = 16;
inline constexpr int64_t kFields = 8;

Tensor random_rows(int64_t rows, int64_t width, uint64_t seed);

// Returns small_data with its 60 vertices in three kinds, the third without features, and an empty
// kind between them. Labels and splits stay with the papers.
Dataset kinds_data();

// Returns a run whose only batch has all training vertices and all their neighbours.
RunConfig kinds_run(const std::string& model);

// Trains three steps, and expects the losses, the weights and the predictions of full-graph
// training.
void expect_full_graph_training(RunConfig config);

// Trains an epoch. Returns the sum of the losses of its steps.
double train_epoch(BatchSession& session, int64_t epoch, double lr);

// Trains an MLP, whose batches read the rows of papers only, and expects that the weights of the
// other kinds stay as they are to the bit.
void expect_unread_kinds_to_stay(RunConfig config);

}  // namespace nacre::test
