// What placements cost, side by side: for people who ask why rows lie where they lie.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nacre/place/placement.h"

namespace nacre {

// A placement judged by reads, which are expected or counted.
struct JudgedPlacement {
  std::string method;
  double seconds = 0;            // time that the placement took, with computing the reads it uses
  std::vector<TierReads> reads;  // rows of an epoch by tier, for each device
  double cost = 0;               // the largest cost over the devices, in seconds of an epoch
  TierReads all() const;         // of all devices
};
JudgedPlacement judge_placement(const FeaturePlacement& placement, std::span<const float> reads,
                                const PlacementRequest& request);

// Places by every method of `methods`, except slow ones if the graph is large, and judges by
// `reads`. The cheapest comes first; of equal ones, that of request.method.
std::vector<JudgedPlacement> compare_placements(const PlacementRequest& request, std::span<const float> reads,
                                                std::span<const std::string> methods);

// Returns a table for people: what an epoch would read with each method, and how much longer than
// with the first.
std::string compared_text(std::span<const JudgedPlacement> methods);

}  // namespace nacre
