// Checkpoints. A run folder holds epoch-NNNNNN/ folders, each complete or absent
// (epoch-NNNNNN.SSSSSS/ in the middle of an epoch, after that many of its batches). A folder has
//   model.safetensors      the weights
//   optimizer.safetensors  moments, the best weights so far, and in the middle of an epoch with
//                          --staleness the weights of every track
//   state.json             epoch, step, seed, scores, optimiser, configuration, plan, and checksums
//                          of the other files and of itself
// A checkpoint is written to a hidden folder, synced and renamed. The random state is (seed, step),
// because every random number of a run is a function of these.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "nacre/train/elbow.h"
#include "nacre/train/optimizer.h"
#include "nacre/train/parameters.h"
#include "nacre/train/plateau.h"
#include "nacre/train/safetensors.h"

namespace nacre {

struct TrainState {
  int epoch = 0;        // number of epochs done
  int64_t batch = 0;    // number of batches done in the unfinished epoch; 0 if there is none
  double loss_sum = 0;  // sum of the losses of the batches of the unfinished epoch
  int64_t step = 0;     // number of training steps done
  uint64_t seed = 0;
  // The best validation score so far; -1 if there is none yet.
  double best_val = -1;
  // The validation loss at the best epoch; set only with --select loss.
  double best_loss = std::numeric_limits<double>::max();
  int best_epoch = -1;
  double best_test = -1;  // test score at the best epoch
  int since_best = 0;     // evaluations since the best one, for early stopping
  Plateau plateau;        // state of the learning rate's plateau schedule
  // The first epoch that is shuffled, and the state of --shuffle adaptive.
  int64_t shuffled_from = 0;
  AccuracyElbow elbow;
  std::string config_json;  // the run's settings
  // The settings that determine the result. They are not stored, because config_json has them.
  std::string result_json;
  std::string plan_json;
  // Identifies the data and the settings that determine the result. A resumed run must have the
  // same.
  std::string fingerprint;
  // The line of the last epoch in metrics.jsonl, if it could not be written there; empty otherwise.
  std::string unwritten_metrics;
};

// Writes a checkpoint of `state`, unless `folder` has an undamaged one of the same epoch and batch.
// Then removes all but the newest `keep` checkpoints, and what interrupted runs left behind. Throws
// RuntimeError if a file cannot be written.
void save_checkpoint(const std::string& folder, const TrainState& state, const Parameters& parameters,
                     OptimizerState& optimizer, const Tensor& best, int keep);

// Loads the newest checkpoint in `folder` that is whole and undamaged; damaged ones are skipped
// with a warning. Returns nothing if there is none. Throws UserError, which names the settings that
// differ, if the checkpoint belongs to a run with another fingerprint than `fresh`, the state of a
// run that has not begun.
std::optional<TrainState> load_newest_checkpoint(const std::string& folder, const TrainState& fresh,
                                                 Parameters& parameters, OptimizerState& optimizer, Tensor& best);

// Returns the bytes of the tensors that load_newest_checkpoint() reads; 0 if there is no
// checkpoint.
int64_t checkpoint_bytes(const std::string& folder);

// Writes weights by name, for example the final model.safetensors.
void save_weights(const std::string& path, const Parameters& parameters, const Tensor& values,
                  const std::string& config_json);
// Reads weights by name. Throws UserError if names or shapes do not match, and RuntimeError if a
// weight is not a finite number.
void load_weights(const std::string& path, Parameters& parameters);
void load_weights(const NamedTensors& weights, const std::string& where, Parameters& parameters);

// Returns the epoch-… folders in `folder`, newest first.
std::vector<std::string> checkpoint_folders(const std::string& folder);
// Returns the state.json of a checkpoint folder, after checking it and the files beside it. Throws
// UserError if one of these files is damaged.
std::string checkpoint_state(const std::string& checkpoint);

}  // namespace nacre
