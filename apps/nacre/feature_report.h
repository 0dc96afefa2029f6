// Reports on the feature rows of a mini-batch run: where they lay, and how many were read from each
// tier.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nacre/train/vertex_model.h"

namespace nacre {
class BatchSession;
struct CacheForecast;
struct FeatureTiers;
struct JudgedPlacement;
}  // namespace nacre

namespace nacre::cli {

// Returns a line for people that says how many rows were read from each tier; empty if the rows do
// not lie in tiers.
std::string features_line(VertexModel& session);
// Returns what the batches of an epoch will read if a device caches rows with a look-ahead, and
// null if no device does. To count, it draws the batches of epoch 0, or the first ones if the epoch
// is long.
std::unique_ptr<const CacheForecast> cache_forecast(const BatchSession* session);
// Returns lines for people that say where rows will lie, their bytes in each tier, and what an
// epoch is expected to read; empty if the rows do not lie in tiers.
std::string planned_features_text(const BatchSession& session, const CacheForecast* forecast);
// Returns the figures of planned_features_text() as JSON. The session must have tiers.
nlohmann::ordered_json planned_features_json(const BatchSession& session, const CacheForecast* forecast);
// Returns a list of the methods of placement as JSON, the cheapest first.
nlohmann::ordered_json placements_json(const std::vector<JudgedPlacement>& methods);
// Returns an object for --json that says where the rows lay; null if the run has no mini-batches.
nlohmann::ordered_json features_json(VertexModel& session);

}  // namespace nacre::cli
