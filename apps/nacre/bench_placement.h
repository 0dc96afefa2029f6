// Declares nacre bench placement, which measures what the methods of feature placement cost, and
// what locality-aware sampling does to training.
#pragma once

#include <span>
#include <string>

#include "nacre/place/compare.h"
#include "nacre/place/placement.h"
#include "nacre/train/config.h"
#include "report.h"

namespace nacre::cli {

struct PlacementBench {
  RunConfig config;
  std::string groups = "1;2;2+2;4";     // sets of simulated devices
  std::string shares = "0.05,0.1,0.2";  // shares of all rows that each device holds
  std::string methods;                  // methods of placement; empty: all
  // These are the GB/s at which a device reads its own rows (0: at no cost), those of a peer, and
  // those of the host.
  double own_rate = 0, peer_rate = 100, host_rate = 20;
  double alpha = -1;      // alpha of Algorithm 1; negative: the alpha with the least expected time
  int64_t epochs = 1;     // epochs that are sampled and counted
  std::string json;       // file for the table; empty: none
  std::string scales;     // scales of locality-aware sampling that are trained with; empty: none
  int train_epochs = 20;  // epochs of each of these runs
  std::string curves;     // CSV file for the loss of every epoch; empty: none
};

// Returns the scales of --scales. Throws UserError if one of them is out of range.
std::vector<double> parse_scales(const PlacementBench& c);

// Returns what devices read if each of them caches rows with a look-ahead and reads no peers. The
// seconds are those of the first placement and of planning; drawing batches is not among them.
JudgedPlacement judge_look_ahead(const PlacementRequest& request, int64_t epochs);

// Trains on the host, as if the rows `near` were in device memory: once without locality-aware
// sampling, and once with each of the scales that parse_scales() returns. A scale is the weight of
// preferred vertices relative to that of others. `runs` says of each of these runs how many rows
// batches read, how many of them from the host, how long the link takes for those, and what the
// losses are, also relative to those of the first run. `curves` has the losses of every epoch.
struct LocalityTables {
  Report runs, curves;
};
LocalityTables train_with_locality(const PlacementBench& c, const Dataset& data, std::span<const NodeId> train,
                                   std::span<const NodeId> near);

}  // namespace nacre::cli
