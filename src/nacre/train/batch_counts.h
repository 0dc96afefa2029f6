// How many batches each rank computes in a step, if several ranks train on mini-batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/sample/sample.h"
#include "nacre/train/rank_devices.h"
#include "nacre/train/share_rules.h"

namespace nacre {

// Returns the batches of ranks of these speeds: the fewest with which every rank that has a speed
// gets one, and with which the ranks together do at least 80 % of what they could do if none had to
// wait.
std::vector<int64_t> counts_by_speed(const std::vector<double>& speeds);

// Returns the batches that --shares gives as numbers. Throws UserError if one is not whole, or if
// all are 0.
std::vector<int64_t> counts_of_shares(const std::vector<double>& shares);

// Returns the speed of each rank whose batch took these seconds; 0 if nothing was measured. Ranks
// whose devices are alike have the same speed, so that chance does not tell them apart.
std::vector<double> measured_speeds(const std::vector<DeviceSpeed>& devices, const std::vector<double>& seconds);

// Returns the batches that a rank takes.
BatchPart batch_part(const std::vector<int64_t>& counts, int rank);

// Return the counts as bytes that ranks send to each other, and the counts of such bytes.
std::string pack_counts(const std::vector<int64_t>& counts);
std::vector<int64_t> unpack_counts(const std::string& bytes);

// Returns a sentence on what the ranks compute in a step.
std::string counts_text(const std::vector<RankDevice>& devices, const std::vector<int64_t>& counts);

}  // namespace nacre
