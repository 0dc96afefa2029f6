// nacre bench placement: what the methods of feature placement cost, and what locality-aware
// sampling does to training.
#pragma once

#include <span>
#include <string>

#include "nacre/place/placement.h"
#include "nacre/train/config.h"
#include "report.h"

namespace nacre::cli {

struct PlacementBench {
  RunConfig config;
  std::string groups = "1;2;2+2;4";
  std::string shares = "0.05,0.1,0.2";
  std::string methods;
  double own_rate = 0;
  double peer_rate = 100;
  double host_rate = 20;
  double alpha = -1;
  int64_t epochs = 1;
  std::string json;
  std::string scales;     // scales of locality-aware sampling that are trained with; empty: none
  int train_epochs = 20;  // epochs of each of these runs
  std::string curves;     // CSV file for the loss of every epoch; empty: none
};

// Returns the scales of --scales. Throws UserError if one of them is out of range.
std::vector<double> parse_scales(const PlacementBench& c);

// Trains once without locality-aware sampling and once with each scale, on the host, as if the rows
// `near` were in device memory. The tables have, for each run, the rows that batches read from the
// host, the time that the link takes for them, the losses, and their distance from the first run.
struct LocalityTables {
  Report runs, curves;
};
LocalityTables train_with_locality(const PlacementBench& c, const Dataset& data, std::span<const NodeId> train,
                                   std::span<const NodeId> near);

}  // namespace nacre::cli
