// Warnings: what a user must know because it changes results. log_warning() shows them even with --quiet and keeps
// them; a run writes them into its folder.
#pragma once

#include <string>
#include <vector>

namespace nacre {

// All warnings of this process so far, each once, in the order they came.
std::vector<std::string> warnings_so_far();

// A note that begins with this is a warning. Notes travel with data sets, also through files.
inline constexpr const char* kWarningNote = "warning: ";

// Shows a note of a data set or a session: as a warning if it is marked as one.
void log_note(const std::string& note);

}  // namespace nacre
