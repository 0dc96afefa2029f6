// Reads what a run folder tells about a run, for a report (docs/run_folder.md lists the files).
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nacre {

// Holds the figures of one epoch from metrics.jsonl. A figure that its line does not have is NaN.
struct EpochRecord {
  double epoch = NAN, loss = NAN, lr = NAN, seconds = NAN;
  double train = NAN, val = NAN, test = NAN, val_loss = NAN;
};

// Says where the seconds of a rank went, added up over all epochs.
struct RankRecord {
  double computing = 0, communication = 0, waiting = 0;
};

// Describes a kernel from plan.json, with the bytes that it must move at least (`floor_bytes`) and
// its arithmetic operations (`flops`).
struct KernelRecord {
  int64_t index = 0;  // position in the list "kernels" of plan.json
  std::string operation, kind, why;
  std::vector<int64_t> nodes;  // numbers of the DFG nodes that it computes
  double floor_bytes = 0, flops = 0;
  // Milliseconds in a step: the mean of those measured, and the least possible. Negative if
  // unknown.
  double ms = -1, floor_ms = -1;
  std::vector<int64_t> reads, writes;  // numbers of DFG nodes
  bool once = false;                   // whether the kernel runs once instead of in every step
};

// Describes a node of the DFG from plan.json: an operation, an input or a parameter.
struct OperationRecord {
  int64_t number = 0;
  std::string line;       // as the DFG's text has it: "%3 = matmul(%1, %2) : v0[8]"
  std::string operation;  // for example "matmul"
  std::string shape;      // for example "v0[8]"
  std::string leaf;       // name of an input or parameter; empty for operations
  std::vector<int64_t> inputs;
};

struct PhaseRecord {
  std::string name;
  std::vector<std::pair<std::string, double>> items;  // names of the items and their bytes
  double bytes() const;
};

struct RunRecord {
  std::string name;    // last part of the folder's path
  std::string folder;  // path of the folder as the user gave it
  // The settings: for each its path in config.json and its value, for example "model.layers" and
  // "2".
  std::vector<std::pair<std::string, std::string>> settings;
  // The results: for each its key and its JSON text in result.json. The list is empty if the run
  // was interrupted, or if the run is older than the file result.json.
  std::vector<std::pair<std::string, std::string>> results;
  std::vector<EpochRecord> epochs;
  std::vector<RankRecord> ranks;
  std::vector<PhaseRecord> bill;  // the memory bill from result.json
  std::vector<KernelRecord> kernels;
  std::vector<OperationRecord> operations;
  std::vector<std::string> warnings;
  std::string partition_svg;  // the picture partition.svg; empty if there is none

  // Returns the value of a setting or a result as the page shows it; empty if the run does not have
  // it.
  std::string setting(const std::string& path) const;
  std::string result(const std::string& key) const;
};

// Reads a run folder. Throws UserError if it has no config.json, or if a file is damaged.
RunRecord read_run_record(const std::string& folder);

}  // namespace nacre
