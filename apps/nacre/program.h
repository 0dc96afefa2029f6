// Runs the command line as a function, for the program nacre and for `python -m nacre`.
#pragma once

#include <span>

namespace nacre::cli {

// Runs the command that `arguments` describe, which come without the program's name. Prints all
// errors, even if memory runs out, so callers should allocate nothing before this call. Returns the
// exit code: 0 success, 1 failure at run time, 2 wrong usage or input, 128 + signal if the program
// was asked to stop. If `prepare` is given, calls it with the arguments first. Changes how the
// process handles SIGPIPE, SIGXFSZ and uncaught exceptions, so the caller should end the process
// with this code.
using Arguments = std::span<const char* const>;
int run_program(Arguments arguments, void (*prepare)(Arguments) = nullptr);

}  // namespace nacre::cli
