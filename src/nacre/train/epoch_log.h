// This file writes logs of a run for other programs, beside metrics.jsonl: tables for spreadsheets,
// and event files for TensorBoard.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/train/trainer.h"

namespace nacre {

class EpochLog {
 public:
  virtual ~EpochLog() = default;
  // Writes an epoch to the log. Throws RuntimeError if the file cannot be written.
  virtual void add(const EpochReport& report) = 0;
};

// open_epoch_log() opens the log of that name in the run folder. If a run is resumed after
// `resumed_epoch` epochs, what the log says of later epochs is removed. Earlier epochs that the log
// lacks, because they could not be written, are taken from the metrics of the run; a log for
// TensorBoard takes the last one only. `metric` is the name of the scores, and `metrics` is the
// file that MetricsFile writes; it is empty if there is none. Throws UserError if the log cannot be
// written.
struct EpochLogPlace {
  std::string folder;
  int resumed_epoch = 0;
  std::string metric;
  std::string metrics;
};
std::unique_ptr<EpochLog> open_epoch_log(const std::string& name, const EpochLogPlace& place);

// open_epoch_log() calls one of these two functions.
std::unique_ptr<EpochLog> open_csv_log(const EpochLogPlace& place);
std::unique_ptr<EpochLog> open_event_log(const EpochLogPlace& place);

// Returns the epochs up to `resumed_epoch` that the metrics of the run describe, by their numbers.
std::map<int, EpochReport> epochs_in_metrics(const EpochLogPlace& place);

}  // namespace nacre
