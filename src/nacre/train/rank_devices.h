// The devices of the ranks of a run (--devices). A rank is a device with a share of the nodes.
#pragma once

#include <string>
#include <vector>

#include "nacre/train/config.h"

namespace nacre {

// The most ranks that one process drives.
inline constexpr int kMostRanks = 64;

// The device of one rank.
struct RankDevice {
  std::string text;    // as the user wrote it, for example cpu:2 or cuda:0@32
  std::string device;  // what --device calls it: cpu, cuda:0, cuda:0@32
  int threads = 0;     // of a rank that computes on the host; 0 for a GPU
};

// Returns the devices of the list. "cpu:2" is two threads of the host; "cpu" without a number
// shares the host's threads evenly with other entries without a number. Throws UserError if an
// entry is no device of this machine, or does not support --precision.
std::vector<RankDevice> rank_devices(const RunConfig& config);

// Returns which ranks would only slow the others down: those whose score is less than a twentieth
// of all scores together. What such a rank computes saves less time than its communication takes.
std::vector<int> weak_ranks(const std::vector<double>& scores);

// Throws UserError if the settings of several devices do not fit together, or do not fit the mode
// and the model.
void check_ranks(const RunConfig& config);

}  // namespace nacre
