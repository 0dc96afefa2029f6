// Reports what a run has read of features that stay on disk.
#pragma once

#include <string>

#include "nacre/train/vertex_model.h"

namespace nacre::cli {

// Returns a line for people that says how many rows were read from disk; empty if all features were
// in memory.
std::string disk_line(VertexModel& session);
// Returns the figures of disk_line() as a JSON object, or null if all features were in memory.
std::string disk_report_json(VertexModel& session);

}  // namespace nacre::cli
