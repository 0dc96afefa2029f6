// Does the work of nacre train, eval and predict on data of users and items with held-out pairs
// (is_recommendation).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "account.h"
#include "command.h"
#include "nacre/train/recommend.h"
#include "nacre/train/trained_model.h"
#include "nacre/train/trainer.h"

namespace nacre::cli {

// Adds --embedding-decay, --embedding-init and --positives. The batch size is not among these, but
// among the other options of training.
void add_recommend_options(Command command, RecommendOptions& options);

// Throws UserError if the run is to use several devices, which recommenders cannot.
void refuse_several_devices(const RunConfig& config);

struct RecommendRun {
  RunConfig config;
  RecommendOptions options;
  TrainerOptions trainer;
  bool no_checkpoint = false;
  bool json = false;
  bool silent = false;  // whether nothing is printed, because a program embeds the command
};

// Holds the results of training a recommender.
struct TrainedRecommender {
  TrainResult result;
  std::string json;    // the results, as --json prints them
  std::string folder;  // the run folder; empty if there is none
};
// Trains a recommender. Prints its results unless `run.silent` is set; with --json, the last line
// of stdout is one JSON object. Chooses `trainer.run_folder` if none is given.
TrainedRecommender train_recommender(Dataset dataset, RecommendRun run, MemoryAccount& account);

// Holds the trained recommender that a command uses, and the account of the command's memory.
struct RecommenderUse {
  const TrainedModel& trained;
  MemoryAccount& account;
  // Returns the bytes that writing the command's output takes. Null if the command writes no
  // output.
  std::function<int64_t(const RecommendSession&)> writing = nullptr;
};
// Opens a session with the weights and settings of `use.trained`. Shows the memory bill; throws
// UserError if it does not fit.
std::unique_ptr<RecommendSession> open_recommender(Dataset dataset, const RunConfig& config, const RecommenderUse& use);
void evaluate_recommender(Dataset dataset, const RunConfig& config, const RecommenderUse& use, bool json);
struct BestItems {
  // Path of the file to write. A .csv has user, rank, item and score; a .npy has the ids of the
  // items, one row for each user.
  std::string output;
  int64_t top = 20;
};
void write_best_items(Dataset dataset, const RunConfig& config, const RecommenderUse& use, const BestItems& wanted);

}  // namespace nacre::cli
