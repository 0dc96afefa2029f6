// This file finds the devices of the ranks of a run (--devices). A rank is a device with a share of
// the nodes or of the mini-batches.
#pragma once

#include <string>
#include <vector>

#include "nacre/train/config.h"

namespace nacre {

// One process drives at most this many ranks.
inline constexpr int kMostRanks = 64;

// Describes the device of one rank.
struct RankDevice {
  std::string text;    // the device as the user wrote it, for example cpu:2 or cuda:0@32
  std::string device;  // what --device calls it: cpu, cuda:0, cuda:0@32
  int threads = 0;     // number of threads of a rank on the host; 0 for a GPU
  std::string precision = "f32";
  std::string first_precision = "f32";  // precision at the beginning of the run
  bool automatic = false;               // whether the run may change `precision` to bf16
                                        // (--precision auto)
};

// Returns the devices of the list. "cpu:2" is two threads of the host; "cpu" without a number
// shares the host's threads evenly with other entries without a number. Throws UserError if an
// entry is no device, or if it is a device for this process that is not there or does not support
// its precision. RunConfig::precision has one name for all GPUs (the host computes in f32 then), or
// one for each device. If it is auto, a GPU begins with tf32.
std::vector<RankDevice> rank_devices(const RunConfig& config);

// Returns how many multiprocessors all ranks that name parts of the same GPU as `device`
// (cuda:0@32) have together; 0 if `device` is no part of a GPU. Ranks of other machines that name
// their GPU alike are counted, too.
int busy_multiprocessors(const std::vector<std::string>& devices, const std::string& device);

// Returns which ranks would only slow the others down: those whose score is less than a twentieth
// of all scores together. What such a rank computes saves less time than its communication takes.
std::vector<int> weak_ranks(const std::vector<double>& scores);

// Throws UserError if the settings of several devices do not fit together, or do not fit the mode
// and the model.
void check_ranks(const RunConfig& config);

}  // namespace nacre
