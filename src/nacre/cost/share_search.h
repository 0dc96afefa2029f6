// Searches for shares (NU3): which part of the graph each device gets, so that all devices finish a
// step at the same time.
//
// The search knows nothing of graphs. It is given a function that cuts the graph by shares and says
// what each part is like, and a function that predicts the seconds of a part on a device. The
// search cuts, looks at the predicted times, and moves the shares until the times agree.
// Communication is part of a device's time. No part may take more than the memory of its device.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace nacre {

struct ShareDevice {
  std::string name;
  int64_t memory_bytes = 0;          // the most bytes that a part may take
  double link_bytes_per_second = 0;  // 0: sending takes no time
  double latency_seconds = 0;        // seconds that each peer of a part adds to a step
};

// Describes a part of the graph, as the cut made it.
struct PartLoad {
  std::vector<double> features;  // what the predictor reads
  int64_t memory_bytes = 0;      // bytes that training takes on the device
  double sent_bytes = 0;         // bytes of rows that the part exchanges with others in a step
  int peers = 0;                 // number of other parts with which rows are exchanged in a step
};

// CutByShares is a function that cuts the graph by shares, which add up to 1, and returns the
// parts. A device of share 0 gets an empty part.
using CutByShares = std::function<std::vector<PartLoad>(std::span<const double> shares)>;
// PredictPart is a function that returns the seconds for which a device computes a part in a step.
using PredictPart = std::function<double(size_t device, const PartLoad& part)>;

struct ShareOptions {
  std::vector<double> first;  // first shares, of any scale; empty: equal shares
  int cuts = 10;              // the most cuts for one set of devices
  double balance = 0.02;      // the search ends if no device is slower than the mean by this share
  // A device is only left out if the step becomes shorter by this share of its time.
  double worthwhile = 0.005;
};

// Says how many seconds of a step one part computes, and how many it communicates.
struct PartTime {
  double compute = 0;
  double communicate = 0;
  double total() const { return compute + communicate; }
};

struct ShareResult {
  std::vector<double> shares;         // add up to 1; 0 for devices that are left out
  std::vector<PartTime> times;        // predicted, one for each device
  std::vector<int64_t> memory_bytes;  // memory of each part
  double step_seconds = 0;            // seconds of the slowest device
  int cuts = 0;                       // number of cuts that were tried
  // The notes have, for each device that is left out, a sentence that says why.
  std::vector<std::string> notes;
};

// Returns the shares of the fastest cut that was found in which every part fits its device. A
// device is left out if the others are faster without it. Throws UserError if no cut fits the
// devices.
ShareResult search_shares(const std::vector<ShareDevice>& devices, const CutByShares& cut, const PredictPart& predict,
                          const ShareOptions& options = {});

}  // namespace nacre
