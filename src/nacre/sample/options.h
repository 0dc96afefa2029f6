// Checks sampling options, for samplers and for code that computes what samplers draw.
#pragma once

#include <vector>

#include "nacre/sample/sample.h"

namespace nacre {

std::vector<SamplerInfo> all_samplers();  // made by the build from the functions samplers_in_NAME()

// Returns the number of blocks. Throws a UserError that names the option if the options contradict
// each other or do not suit the graph.
int check_options(const Graph& graph, const SampleOptions& options);

}  // namespace nacre
