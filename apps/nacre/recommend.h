// nacre train on users and items with held-out pairs (is_recommendation).
#pragma once

#include "command.h"
#include "nacre/train/recommend.h"
#include "nacre/train/trainer.h"

namespace nacre::cli {

// --embedding-decay and --embedding-init; the batch size comes with the other options of training.
void add_recommend_options(Command command, RecommendOptions& options);

struct RecommendRun {
  RunConfig config;
  RecommendOptions options;
  TrainerOptions trainer;
  bool no_checkpoint = false;
  bool json = false;
};

// From data to a trained recommender and what is said about it; the last line of stdout is one JSON object where asked
// for. `trainer.run_folder` is chosen where none is given.
void train_recommender(Dataset dataset, RecommendRun run);

}  // namespace nacre::cli
