// What the program knows of the terminal it writes to: how wide it is, and whether it shows colours.
#pragma once

#include <string>

namespace nacre {

enum class Stream { out, err };

// Whether the stream is a terminal that understands control sequences (TERM is not "dumb").
bool is_terminal(Stream stream);
// Returns the terminal's width in columns at this moment (it may be resized); 80 if it cannot be asked.
int terminal_columns(Stream stream);

// The text in bold or in a colour, where the stream is a terminal and NO_COLOR is not set; otherwise as it is.
std::string bold(const std::string& text, Stream stream);
std::string red(const std::string& text, Stream stream);
std::string yellow(const std::string& text, Stream stream);

// One line of progress of at most `columns` columns: the bar is left out first, then the time left, then the title.
struct ProgressLine {
  std::string title, note, left;
  double share = 0;
};
std::string fit_progress(const ProgressLine& line, int columns);

}  // namespace nacre
