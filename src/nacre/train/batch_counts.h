// Functions that decide how many batches each rank computes in a step, if several ranks train on
// mini-batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/sample/sample.h"
#include "nacre/train/rank_devices.h"
#include "nacre/train/share_rules.h"

namespace nacre {

// Returns how many batches each rank computes in a step if the ranks finish `speeds` batches per
// second: the fewest with which every rank with a speed above 0 gets a batch, and the ranks
// together finish at least 80 % of what they would finish if none waited for the others.
std::vector<int64_t> counts_by_speed(const std::vector<double>& speeds);

// Returns how many batches each rank computes in a step if the user gives --shares as numbers.
// Throws UserError if a number is not whole, is negative or too large, or if all are 0.
std::vector<int64_t> counts_of_shares(const std::vector<double>& shares);

// Returns how many batches each rank finishes per second if a batch took it `seconds`; 0 for a rank
// whose seconds are 0, because nothing was measured. Ranks whose devices are alike get the speed by
// their mean seconds, so that they do not differ by chance.
std::vector<double> measured_speeds(const std::vector<DeviceSpeed>& devices, const std::vector<double>& seconds);

// Returns which batches of an epoch a rank takes, if `counts` has the number of batches of each
// rank in a step.
BatchPart batch_part(const std::vector<int64_t>& counts, int rank);

// pack_counts() returns the counts as bytes, which ranks send to each other. unpack_counts()
// returns the counts that such bytes hold.
std::string pack_counts(const std::vector<int64_t>& counts);
std::vector<int64_t> unpack_counts(const std::string& bytes);

// Returns a text for people that says how many batches each device computes in a step.
std::string counts_text(const std::vector<RankDevice>& devices, const std::vector<int64_t>& counts);

}  // namespace nacre
