// Declares what readers of settings files share: functions that name a place in a file, and limit
// the depth of nesting.
#pragma once

#include <cstdint>
#include <string>

namespace nacre::cli {

// Returns "FILE, line 3", for messages.
std::string at_line(const std::string& path, int64_t line);

// Throws a UserError that names the line if brackets or the dots of keys nest too deeply. Parsers
// need memory for every level, so this must be called before parsing. `comments` says whether #
// begins a comment, as in TOML.
void refuse_nesting(const std::string& path, const std::string& text, bool comments);

}  // namespace nacre::cli
