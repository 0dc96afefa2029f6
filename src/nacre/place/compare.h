// Compares what the methods of placement cost, for people who ask why rows lie where they lie.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nacre/place/placement.h"

namespace nacre {

// Judges one placement by reads, which are either expected or counted.
struct JudgedPlacement {
  std::string method;
  double seconds = 0;            // seconds that placing took, including the computation of the
                                 // reads that the method uses
  std::vector<TierReads> reads;  // for each device: rows that it reads in an epoch, by tier
  double cost = 0;               // the largest cost over the devices, in seconds of an epoch
  TierReads all() const;         // returns the sum of `reads` over all devices
};
JudgedPlacement judge_placement(const FeaturePlacement& placement, std::span<const float> reads,
                                const PlacementRequest& request);

// Places the features with every method of `methods` and judges each result by `reads`. Slow
// methods are left out if the graph is large. The cheapest placement comes first; if several cost
// the same, the one by request.method comes first.
std::vector<JudgedPlacement> compare_placements(const PlacementRequest& request, std::span<const float> reads,
                                                std::span<const std::string> methods);

// Returns a table for people that says what an epoch would read with each method, and how much
// longer it would take than with the first method.
std::string compared_text(std::span<const JudgedPlacement> methods);

}  // namespace nacre
