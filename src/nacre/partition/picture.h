// Draws a partition: a bar for each part, which shows its work against its target, and a square of
// parts × parts that shows how many edges lead from each part to each other one.
#pragma once

#include <string>

#include "nacre/partition/stats.h"

namespace nacre {

// Returns the picture as a self-contained SVG.
std::string parts_svg(const PartitionStats& stats, const std::string& title);

}  // namespace nacre
