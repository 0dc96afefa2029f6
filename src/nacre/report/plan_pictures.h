// This file draws the pictures of a plan in a report: the operations of its DFG, which kernel reads
// what another kernel has written, and when the kernels of a step run.
#pragma once

#include "nacre/report/run_record.h"
#include "nacre/report/svg_parts.h"

namespace nacre {

// These functions draw a picture of a run, or say why they cannot.
Picture step_timeline(const RunRecord& run);
Picture partition_picture(const RunRecord& run);
Picture kernel_graph(const RunRecord& run);
Picture dfg_picture(const RunRecord& run);

}  // namespace nacre
