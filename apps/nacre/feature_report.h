// What a mini-batch run says of its feature rows: where they lay, and how many were read from each
// tier.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nacre/train/vertex_model.h"

namespace nacre {
struct FeatureTiers;
struct JudgedPlacement;
}  // namespace nacre

namespace nacre::cli {

// Returns a line for people; empty if the rows do not lie in tiers.
std::string features_line(VertexModel& session);
// Returns where rows will lie, their bytes in each tier and what an epoch is expected to read, for
// people; empty if the rows do not lie in tiers.
std::string planned_features_text(const FeatureTiers* tiers);
// Returns the same as JSON.
nlohmann::ordered_json planned_features_json(const FeatureTiers& tiers);
// Returns a list of the methods of placement, the cheapest first.
nlohmann::ordered_json placements_json(const std::vector<JudgedPlacement>& methods);
// Returns an object for --json; null if the run has no mini-batches.
nlohmann::ordered_json features_json(VertexModel& session);

}  // namespace nacre::cli
