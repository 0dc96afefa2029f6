// This file writes logs of a run for other programs, beside metrics.jsonl: tables for spreadsheets,
// and event files for TensorBoard.
#pragma once

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
// `resumed_epoch` epochs, what the log says of later epochs is removed. `metric` is the name of the
// scores. Throws UserError if the file cannot be written.
struct EpochLogPlace {
  std::string folder;
  int resumed_epoch = 0;
  std::string metric;
};
std::unique_ptr<EpochLog> open_epoch_log(const std::string& name, const EpochLogPlace& place);

// open_epoch_log() calls one of these two functions.
std::unique_ptr<EpochLog> open_csv_log(const EpochLogPlace& place);
std::unique_ptr<EpochLog> open_event_log(const EpochLogPlace& place);

}  // namespace nacre
