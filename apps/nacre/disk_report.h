// What a run tells of features that stay on disk.
#pragma once

#include <string>

#include "nacre/train/vertex_model.h"

namespace nacre::cli {

// Returns a line for people; empty if all features were in memory.
std::string disk_line(VertexModel& session);
// Returns a JSON object, or null if all features were in memory.
std::string disk_report_json(VertexModel& session);

}  // namespace nacre::cli
