// The lock of the Python interpreter. C++ code that runs for long gives it up with GilRelease; code
// that calls Python from another thread takes it with GilAcquire.
//
// When the interpreter ends, threads that are still in C++ must not ask for its lock again: Python
// would end them in the middle of a C++ function, and that ends the whole process with an error.
// With these guards, such a thread waits until the process is over instead.
#pragma once

#include <Python.h>

namespace nacre::python {

// Gives the lock up for the lifetime of the guard.
class GilRelease {
 public:
  GilRelease();
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the lock for the lifetime of the guard, unless the interpreter ends.
class GilAcquire {
 public:
  GilAcquire();
  ~GilAcquire();
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

  // Returns false if the interpreter ends. Then the lock was not taken, and Python must not be
  // called.
  bool held() const { return held_; }
  // Throws RuntimeError if the lock was not taken.
  void require() const;

 private:
  bool held_ = false;
  PyGILState_STATE state_{};
};

// Returns whether the interpreter ends and this thread may no longer call Python.
bool interpreter_ends();

// Tells the guards that the interpreter ends, and waits for threads that are in C++ to notice it:
// trainings stop after the step that they compute. A thread that has not noticed it after ten
// seconds goes on until the process is over. Must be called with the lock, once, by the thread that
// ends the interpreter.
void end_interpreter();

// Sets the counts of threads to 0 in a child that was forked, because it has only the thread that
// has forked it.
void forget_other_threads();

}  // namespace nacre::python
