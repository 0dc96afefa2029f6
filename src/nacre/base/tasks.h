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

  // Threads there are besides the caller's; with none, nothing may be posted. None from the moment that the system
  // refused to start one.
  int workers() const;
  // Runs `task`, which must not throw, on another thread some time later. Loops come first: a thread goes back to them
  // between two tasks. False when no thread could be started: then the task will not run.
  bool post(std::function<void()> task);

 private:
  struct Queue;
  struct Workers;
  // Runs the first task that waits in the queue to which `kept`, a std::shared_ptr<Queue> on the heap, points.
  static void run_next(void* kept);
  std::shared_ptr<Queue> queue_;  // threads that are late may still look into it
  std::unique_ptr<Workers> workers_;
};

}  // namespace nacre
