// Checkpoints. A run folder holds epoch-NNNNNN/ folders (epoch-NNNNNN.SSSSSS/ in the middle of an epoch, after that
// many steps of it), each complete or absent:
//   model.safetensors   the weights           optimizer.safetensors   moments, and the best weights so far
//   state.json          epoch, step, seed, scores, optimiser, configuration, plan, checksums of the others and itself
// A checkpoint is written to a hidden folder, synced and renamed. The random state is (seed, step): every random number
// of a run is a function of those.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "nacre/train/optimizer.h"
#include "nacre/train/parameters.h"
#include "nacre/train/plateau.h"
#include "nacre/train/safetensors.h"

namespace nacre {

struct TrainState {
  int epoch = 0;        // epochs done
  int64_t batch = 0;    // steps of the next epoch done
  double loss_sum = 0;  // of those
  int64_t step = 0;     // training steps done
  uint64_t seed = 0;
  double best_val = -1;                                   // best validation score so far (-1: none yet)
  double best_loss = std::numeric_limits<double>::max();  // validation loss at the best epoch, where that decides
  int best_epoch = -1;
  double best_test = -1;    // test score at that epoch
  int since_best = 0;       // evaluations since then, for early stopping
  Plateau plateau;          // of the learning rate
  std::string config_json;  // the run's settings
  std::string result_json;  // those that determine the result; not kept, for they are among the former
  std::string plan_json;
  std::string fingerprint;  // of data and settings that determine the result: a resumed run must match
  // The line of the last epoch in metrics.jsonl, if it could not be written there; empty otherwise.
  std::string unwritten_metrics;
};

// Nothing is written when a whole checkpoint of this point is there already. Afterwards the newest `keep` are left, and
// nothing that interrupted runs left behind. Throws RuntimeError when the disk refuses.
void save_checkpoint(const std::string& folder, const TrainState& state, const Parameters& parameters,
                     OptimizerState& optimizer, const Tensor& best, int keep);

// The newest checkpoint in `folder` that is whole and undamaged; damaged ones are skipped with a warning. Empty if
// none. Throws UserError, naming settings that differ, if it belongs to a run with another fingerprint than `fresh`, a
// run that has not begun.
std::optional<TrainState> load_newest_checkpoint(const std::string& folder, const TrainState& fresh,
                                                 Parameters& parameters, OptimizerState& optimizer, Tensor& best);

// Bytes of the tensors that load_newest_checkpoint() reads; 0 if there is no checkpoint.
int64_t checkpoint_bytes(const std::string& folder);

// Weights by name, e.g. the final model.safetensors. Throws UserError when names or shapes do not match.
void save_weights(const std::string& path, const Parameters& parameters, const Tensor& values,
                  const std::string& config_json);
// Throws RuntimeError when a weight is no finite number.
void load_weights(const std::string& path, Parameters& parameters);
void load_weights(const NamedTensors& weights, const std::string& where, Parameters& parameters);

// The epoch-… folders in `folder`, newest first.
std::vector<std::string> checkpoint_folders(const std::string& folder);
// state.json of such a folder, after it and the files beside it were checked. Throws UserError when one is damaged.
std::string checkpoint_state(const std::string& checkpoint);

}  // namespace nacre
