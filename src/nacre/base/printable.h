// Text from outside (names in data files, paths, values of options) as it may be shown on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace nacre {

// Control characters and bytes that are not UTF-8 become \n, \t, \r, or \xNN in hex, so that no name can move the
// cursor, change colours or pretend to be another line. With `lines`, new lines and tabs stay as they are.
std::string printable(std::string_view text, bool lines = false);

}  // namespace nacre
