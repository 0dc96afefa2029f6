// Work beside the parallel loops: tasks that run on the same num_threads() threads, in an arena of their own. A thread
// that waits for the end of a loop never picks one of them up, and they never wait for a loop's threads.
#pragma once

#include <functional>
#include <memory>

namespace nacre {

class BackgroundTasks {
 public:
  // For num_threads() as it is now.
  BackgroundTasks();
  // Waits until everything posted has run.
  ~BackgroundTasks();
  BackgroundTasks(const BackgroundTasks&) = delete;
  BackgroundTasks& operator=(const BackgroundTasks&) = delete;

  // Threads there are besides the caller's; with none, nothing may be posted.
  int workers() const;
  // Runs `task`, which must not throw, on another thread some time later. Loops come first: a thread goes back to them
  // between two tasks.
  void post(std::function<void()> task);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nacre
