// Lets C++ code that runs for long notice Ctrl-C and other signals that a Python program handles.
#pragma once

#include <optional>

#include "common.h"

namespace nacre::python {

// Lets Python's signal handlers run from time to time during long work. If a handler raises an
// exception, as that of Ctrl-C does, the work should end; the exception is kept.
class PythonInterrupt {
 public:
  // Returns whether a signal handler has raised an exception, or the interpreter ends. The handlers
  // run at most every 50 ms, because the interpreter's lock is needed for them. Must be called
  // without that lock. Python runs handlers on its main thread only; on other threads the answer is
  // true only if the interpreter ends.
  bool came();

  // Returns the exception that a signal handler raised, or None if none did.
  nb::object exception() const;

 private:
  std::optional<nb::python_error> error_;
  double last_ = 0;
};

// Returns whether this is Python's main thread, the only one that runs signal handlers. The module
// calls note_main_thread() once, when it is loaded.
bool on_main_thread();
void note_main_thread();

// Keeps an exception that a signal handler has raised where it could not be passed on. It ends the
// training that runs on the main thread, if one does; otherwise it is raised there as soon as
// Python code runs. Must be called with the interpreter's lock.
void raise_later(const nb::python_error& error);

}  // namespace nacre::python
