// Makes text from outside (names in data files, paths, values of options) safe to show on a
// terminal and in pictures.
#pragma once

#include <string>
#include <string_view>

namespace nacre {

// Returns `text` with control characters and bytes that are not UTF-8 written as \n, \t, \r, or
// \xNN in hex, so that no name can move the cursor, change colours or pretend to be another line.
// With `lines`, line breaks and tabs stay as they are.
std::string printable(std::string_view text, bool lines = false);

// Returns `text` as the text of an XML element, for pictures. Control characters become blanks,
// because XML does not allow them.
std::string xml_text(std::string_view text);

}  // namespace nacre
