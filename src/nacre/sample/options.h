// Internal to the room.
#pragma once

#include <vector>

#include "nacre/sample/sample.h"

namespace nacre {

std::vector<SamplerInfo> all_samplers();  // made by the build from the functions samplers_in_NAME()

// Throws UserError naming the flag where the options do not fit together or do not fit the graph;
// returns the number of blocks.
int check_options(const Graph& graph, const SampleOptions& options);

}  // namespace nacre
