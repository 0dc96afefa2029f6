// Warnings tell users what they must know because it changes results. log_warning() (log.h) shows
// warnings even with --quiet and keeps them; a run writes them into its folder.
#pragma once

#include <string>
#include <vector>

namespace nacre {

// Returns all distinct warnings of this process so far, in the order in which they came.
std::vector<std::string> warnings_so_far();

// A note that begins with this text is a warning. Notes travel with data sets, also through files.
inline constexpr const char* kWarningNote = "warning: ";

// Shows a note of a data set or a session, as a warning if the note begins with kWarningNote.
void log_note(const std::string& note);

}  // namespace nacre
