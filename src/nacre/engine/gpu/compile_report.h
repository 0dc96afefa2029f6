// CompileReport: shows the progress line that people see while kernels are compiled. All loaders of
// a process share one report, so that there is one line, even if several streams of the device have
// loaders of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "nacre/base/log.h"

namespace nacre {

class CompileReport {
 public:
  // Returns the report of all loaders of this process.
  static CompileReport& shared();

  // Notes that one more source is to be compiled.
  void add();
  // Notes that one source is compiled or failed to compile. Ends the progress line if it was the
  // last one. The threads of a loader call this function, so it lets no error of printing escape.
  void done() noexcept;
  // Notes that `count` sources will not be compiled after all.
  void drop(int64_t count) noexcept;
  // Shows the progress if the wait has lasted for a while. Code that waits for a kernel calls this
  // function again and again.
  void waiting(const std::string& device);

 private:
  void show();
  void end_if_all_done() noexcept;

  std::mutex mutex_;
  // Number of sources requested since there was last nothing left to compile, and how many of these
  // sources are done.
  int64_t asked_ = 0, done_ = 0;
  double since_ = 0;
  std::unique_ptr<Progress> progress_;
};

}  // namespace nacre
