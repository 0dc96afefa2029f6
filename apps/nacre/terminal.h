// Finds the properties of the terminal that the program writes to: its width, and whether it shows
// colours.
#pragma once

#include <string>

namespace nacre::cli {

enum class Stream { out, err };

// Returns whether the stream is a terminal that understands control sequences (TERM is not "dumb").
bool is_terminal(Stream stream);
// Returns the width of the terminal in columns at this moment (a terminal may be resized), or 80 if
// the width cannot be found out.
int terminal_columns(Stream stream);

// These functions return the text in bold or in a colour if the stream is a terminal and NO_COLOR
// is not set; otherwise they return it unchanged.
std::string bold(const std::string& text, Stream stream);
std::string red(const std::string& text, Stream stream);
std::string yellow(const std::string& text, Stream stream);

// Holds one line of progress. fit_progress() writes it in at most `columns` columns: it leaves out
// the bar first, then the time left, then the title.
struct ProgressLine {
  std::string title, note, left;
  double share = 0;
};
std::string fit_progress(const ProgressLine& line, int columns);

}  // namespace nacre::cli
