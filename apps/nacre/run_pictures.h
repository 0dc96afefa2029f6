// Makes what a finished run writes for its report, beside the results: the times of the kernels,
// and a picture of the partition.
#pragma once

#include <string>

#include "nacre/train/vertex_model.h"

namespace nacre::cli {

// Returns a JSON list with an object for each kernel of the plan: `ms`, the mean time in a step
// (null if it was not timed), and `floor_ms`, the least time by the measured rates of this machine
// (null if they are not known). Kernels are timed on the CPU, on the whole graph; other runs give
// [].
std::string kernel_times_json(VertexModel& session);

// Writes partition.svg into the run folder, if kernels of the plan run over gTasks and the graph is
// small enough to be cut again.
void write_partition_picture(VertexModel& session, const std::string& folder);

// Writes report.html into the run folder and returns its path. Returns an empty text, after a
// warning, if that fails: the run itself is complete.
std::string write_run_report(const std::string& folder);

}  // namespace nacre::cli
