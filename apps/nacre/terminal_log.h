// Shows the messages of the library on the terminal. Everything goes to stderr; stdout belongs to
// results.
#pragma once

namespace nacre::cli {

enum class LogLevel { quiet, info, verbose };
// Sets which messages are shown: only warnings (quiet), all but verbose ones (info), or all.
void set_log_level(LogLevel level);

// Shows the library's messages from now on: on a terminal with a progress bar, in a pipe with a
// plain line of progress every few seconds, and without progress when the level is quiet.
void log_to_terminal();

}  // namespace nacre::cli
