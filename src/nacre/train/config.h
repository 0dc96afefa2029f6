// Everything that determines a run, as one value. Names follow the command line.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nacre/data/load.h"
#include "nacre/model/model.h"
#include "nacre/plan/plan.h"
#include "nacre/sample/sample.h"
#include "nacre/schedule/batch_loader.h"
#include "nacre/train/optimizer.h"

namespace nacre {

struct RunConfig {
  // data
  std::string data;
  LoadOptions load;
  std::string folder;                       // that relative paths of data start from, where the run was started
  std::string normalize_features = "auto";  // auto, row, none
  int relations = 7;                        // for typed models on untyped graphs
  std::vector<std::string> class_names;     // of the classes, where they are words; filled in from the data
  // model (sizes and types are filled in from the data)
  ModelOptions model;
  // training
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  int epochs = 200;
  uint64_t seed = 0;
  std::string class_weights;  // of the loss: balanced, a list or a file (class_weights.h); empty: all alike
  std::string init;           // a run folder or .safetensors file whose weights training starts from; empty: random
  std::string metric = "auto";
  int eval_every = 1;
  int patience = 0;             // evaluations without improvement before stopping; 0 = never
  std::string select = "best";  // weights kept at the end: best (validation score), loss (validation loss) or last
  // execution
  std::string device = "auto";  // see device.h
  std::string precision = "f32";
  std::string mode = "full";                 // or minibatch
  int64_t batch_size = 1024;                 // seeds of a mini-batch
  SampleOptions sampling;                    // of mini-batches
  LoaderOptions loader = {.in_flight = -1};  // -1: as many batches ahead as the device wants
  std::string features_on = "auto";          // mini-batches: where features lie, auto, device or host
  std::string sample_on = "auto";            // likewise: where neighbours are drawn
  int threads = 0;                           // 0 = all
  std::string plan = "auto";                 // see plan/policy.h
  bool deterministic = false;                // the same weights, to the bit, on any machine and number of threads
  bool plan_cache = true;
  std::string recompute = "auto";         // values dropped and computed again: auto, or fit, where a run would not fit
  std::set<std::string> disabled_passes;  // passes of the planner that are left out (plan/passes.h)
  int64_t memory_limit = 0;               // bytes; 0 = what the machine has free
  int64_t program_bytes = 0;              // of memory_limit, what the process takes besides the run's own parts
  // Settings of recommenders (recommend.h) by their options' names, for config.json; empty for other models.
  std::map<std::string, std::string> recommend;
};

// Settings as JSON: everything, for config.json; without how it was executed, for the weights file (the same weights
// are the same bytes on any number of threads); and only what the resulting weights depend on, for the fingerprint (so
// that a run may be resumed with more threads or another metrics file).
std::string config_json(const RunConfig& config);
std::string weights_config_json(const RunConfig& config);
std::string result_settings_json(const RunConfig& config);
// A path of data as it leads somewhere: from here or, if it is relative, else from `folder`.
std::string found_again(const std::string& path, const std::string& folder);
// The model and data settings a checkpoint was trained with, applied to `config`. Data that are not where a relative
// path leads from here are looked for from the folder where the run was started. Throws UserError naming `where`.
void apply_config_json(const std::string& text, const std::string& where, RunConfig& config);

}  // namespace nacre
