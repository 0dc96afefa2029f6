// The schedules of mini-batches that a run can follow (--schedule). Their names are those of the
// schedules that nacre plan shows (schedule/epg/named.h).
#pragma once

#include <string>
#include <vector>

#include "nacre/train/config.h"

namespace nacre {

// The largest number of epochs whose batches are sampled together with --schedule in-turn.
inline constexpr int64_t kGroupEpochs = 4;

// Throws a UserError that says what to do instead if a run with these settings cannot follow the
// schedule of `config` on a GPU (if `gpu`) or on the host.
void check_batch_schedule(const RunConfig& config, bool gpu);
// Returns whether a run on a GPU (if `gpu`) or on the host can follow the schedule of this name.
bool can_follow(const std::string& name, bool gpu);

// Returns whether the schedule of this name says for each batch where it is drawn and computed
// (BatchPlaces).
bool places_batches(const std::string& name);

// Returns whether the schedule of `config` gives `option` its value. The user must then not give
// the option as well.
bool settles(const RunConfig& config, const std::string& option);
// Gives the options for which settles() is true the values of the schedule of `config`.
void follow_schedule(RunConfig& config);

}  // namespace nacre
