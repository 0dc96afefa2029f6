// What people are told while kernels are compiled. The loaders of a process share one report, so that there is one
// progress line, however many streams of the device have a loader of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "nacre/base/log.h"

namespace nacre {

class CompileReport {
 public:
  // The report of all loaders of this process.
  static CompileReport& shared();

  // One more source is to be compiled.
  void add();
  // One source is compiled, or failed to compile. Ends the progress line if it was the last one. A thread of a loader
  // calls this, so no error of printing leaves it.
  void done() noexcept;
  // `count` sources will not be compiled after all.
  void drop(int64_t count) noexcept;
  // Called again and again by those who wait for a kernel: shows the progress to people who have waited for a while.
  void waiting(const std::string& device);

 private:
  void show();
  void end_if_all_done() noexcept;

  std::mutex mutex_;
  // Sources since nothing was left to compile: all of them, and those that are compiled.
  int64_t asked_ = 0, done_ = 0;
  double since_ = 0;
  std::unique_ptr<Progress> progress_;
};

}  // namespace nacre
