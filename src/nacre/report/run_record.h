// What a run folder tells about a run, read for a report (docs/run_folder.md lists the files).
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nacre {

// Figures of an epoch from metrics.jsonl; NaN if the line does not have one.
struct EpochRecord {
  double epoch = NAN, loss = NAN, lr = NAN, seconds = NAN;
  double train = NAN, val = NAN, test = NAN, val_loss = NAN;
};

// Where the seconds of a rank went, added up over all epochs.
struct RankRecord {
  double computing = 0, communication = 0, waiting = 0;
};

// A kernel from plan.json: the least it must move and compute.
struct KernelRecord {
  int64_t index = 0;  // position in the list "kernels" of plan.json
  std::string operation, kind, why;
  double floor_bytes = 0, flops = 0;
  bool once = false;  // runs once, not in every step
};

struct PhaseRecord {
  std::string name;
  std::vector<std::pair<std::string, double>> items;  // what, bytes
  double bytes() const;
};

struct RunRecord {
  std::string name;    // last part of the folder's path
  std::string folder;  // as it was given
  // path in config.json and value, for example "model.layers" and "2"
  std::vector<std::pair<std::string, std::string>> settings;
  // key and JSON text from result.json; empty if the run was interrupted or is older than that file
  std::vector<std::pair<std::string, std::string>> results;
  std::vector<EpochRecord> epochs;
  std::vector<RankRecord> ranks;
  std::vector<PhaseRecord> bill;  // from result.json
  std::vector<KernelRecord> kernels;
  std::vector<std::string> warnings;

  // Returns the value of a setting or result as it is shown; empty if it is not there.
  std::string setting(const std::string& path) const;
  std::string result(const std::string& key) const;
};

// Reads a run folder. Throws UserError if it has no config.json, or if a file is damaged.
RunRecord read_run_record(const std::string& folder);

}  // namespace nacre
