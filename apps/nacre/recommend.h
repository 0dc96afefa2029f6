// nacre train, eval and predict on users and items with held-out pairs (is_recommendation).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "account.h"
#include "command.h"
#include "nacre/train/recommend.h"
#include "nacre/train/trained_model.h"
#include "nacre/train/trainer.h"

namespace nacre::cli {

// --embedding-decay, --embedding-init and --positives; the batch size comes with the other options
// of training.
void add_recommend_options(Command command, RecommendOptions& options);

struct RecommendRun {
  RunConfig config;
  RecommendOptions options;
  TrainerOptions trainer;
  bool no_checkpoint = false;
  bool json = false;
};

// From data to a trained recommender and what is said about it; the last line of stdout is one JSON
// object where asked for. `trainer.run_folder` is chosen where none is given.
TrainResult train_recommender(Dataset dataset, RecommendRun run, MemoryAccount& account);

// With the weights and settings of `trained`.
std::unique_ptr<RecommendSession> open_recommender(Dataset dataset, const RunConfig& config,
                                                   const TrainedModel& trained);
void evaluate_recommender(Dataset dataset, const RunConfig& config, const TrainedModel& trained, bool json);
struct BestItems {
  std::string output;  // .csv: user, rank, item, score; .npy: the items' ids, a row for each user
  int64_t top = 20;
};
void write_best_items(Dataset dataset, const RunConfig& config, const TrainedModel& trained, const BestItems& wanted);

}  // namespace nacre::cli
