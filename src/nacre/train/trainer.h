// Runs the training loop: epochs, evaluation, early stopping, checkpoints and metrics.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nacre/train/checkpoint.h"
#include "nacre/train/trainee.h"

namespace nacre {

// Holds the results of an epoch.
struct EpochReport {
  int epoch = 0;    // number of epochs done in total, this one included
  double loss = 0;  // mean over the steps of the epoch
  double lr = 0;
  double seconds = 0;  // seconds of the steps, without evaluation
  bool evaluated = false;
  Scores scores;  // NaN unless the epoch was evaluated
};

struct TrainerOptions {
  std::string run_folder;  // folder for checkpoints and final weights; empty = write nothing
  bool resume = false;
  // Number of epochs between checkpoints. With 0, checkpoints are written so often that writing
  // them costs less than 1 % of the time, but at least every 10 minutes.
  int checkpoint_every = 0;
  int keep = 2;              // number of checkpoints kept
  std::string metrics_file;  // file for JSON lines; empty = metrics.jsonl in the run folder
  // The names of further logs in the run folder (epoch_log.h): csv, tensorboard.
  std::vector<std::string> logs;
  // Called after every epoch, on the thread that called train(). If it returns false, training ends
  // as it does when RunConfig::patience is exhausted: this epoch is evaluated, the best weights are
  // kept, and stopped_early is set. An exception that it throws ends training and leaves train();
  // what was not saved by then is lost.
  std::function<bool(const EpochReport&)> after_epoch;
  // If set, signals are left alone, and this function is asked before every step instead. If it
  // returns true, training ends after the current step as it does after SIGINT. It is for programs
  // with signal handlers of their own.
  std::function<bool()> interrupted;
};

struct TrainResult {
  int epochs = 0;  // number of epochs done in total
  bool interrupted = false;
  // The signal that interrupted the run; 0 if TrainerOptions::interrupted did.
  int signal = 0;
  // Whether RunConfig::patience or TrainerOptions::after_epoch has ended the run.
  bool stopped_early = false;
  double train_score = -1;
  double val_score = -1;  // score at the epoch whose weights were kept
  double test_score = -1;
  double last_test_score = -1;
  int best_epoch = -1;
  double final_loss = 0;
  double epoch_ms_median = 0;  // median time of whole epochs: forward pass, backward pass and
                               // update
  double epoch_ms_p10 = 0;
  double epoch_ms_p90 = 0;
  double eval_ms_median = 0;
  double seconds = 0;
};

// Throws UserError for settings out of range. train() does so, too, but a program can call this
// before it reads the data.
void check_training(const RunConfig& config);

// Trains a trainee that has been started. SIGINT, SIGTERM and SIGHUP end training after the current
// step, with a checkpoint.
TrainResult train(Trainee& trainee, const TrainerOptions& options);

// Creates a new folder below `parent` for a run of that name, NAME-1, NAME-2, …, and returns its
// path.
std::string fresh_run_folder(const std::string& parent, const std::string& name);

}  // namespace nacre
