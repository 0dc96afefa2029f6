// This file draws the pictures of a plan in a report: which kernel reads what another kernel has
// written, and when the kernels of a step run.
#pragma once

#include <string>

#include "nacre/report/run_record.h"

namespace nacre {

// These functions return figures for the page. They return an empty text if the record of the run
// lacks what a figure needs, or if the run has more than 300 kernels.
std::string kernel_graph(const RunRecord& run);
std::string step_timeline(const RunRecord& run);
std::string partition_picture(const RunRecord& run);

}  // namespace nacre
