// Collects what ranks tell rank 0 of their parts, so that rank 0 can choose shares
// (share_balance.h).
#pragma once

#include <string>
#include <vector>

#include "nacre/train/rank_devices.h"
#include "nacre/train/rank_session.h"
#include "nacre/train/share_balance.h"

namespace nacre {

// Returns the reports of all ranks. `figures` are their present figures, `planned` those before the
// first step, and `parts` what RankSession::describe_parts() has returned.
std::vector<PartReport> part_reports(const std::vector<RankDevice>& devices, const std::vector<RankFigures>& planned,
                                     const std::vector<RankFigures>& figures, const std::vector<std::string>& parts);

}  // namespace nacre
