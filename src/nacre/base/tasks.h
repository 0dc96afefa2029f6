// Work that runs beside the parallel loops: tasks on the same num_threads() threads, in an arena of
// their own. A thread that waits for the end of a loop never picks up such a task, and tasks never
// wait for the threads of a loop.
#pragma once

#include <functional>
#include <memory>

namespace nacre {

class BackgroundTasks {
 public:
  // The number of workers is the value of num_threads() - 1 at construction. If the calling thread
  // has a team (thread_team.h), loops inside the tasks run on the threads of that team, which must
  // outlive this object.
  BackgroundTasks();
  // Waits until all posted tasks have run.
  ~BackgroundTasks();
  BackgroundTasks(const BackgroundTasks&) = delete;
  BackgroundTasks& operator=(const BackgroundTasks&) = delete;

  // Returns the number of threads besides the caller's. It is 0 from the moment that the system
  // refused to start a thread. If it is 0, nothing may be posted.
  int workers() const;
  // Runs `task`, which must not throw, on another thread some time later. Loops come first: between
  // two tasks, a thread goes back to the loops. Returns false if no thread could be started; the
  // task does not run then.
  bool post(std::function<void()> task);

 private:
  struct Queue;
  struct Workers;
  // Runs the first task that waits in the queue to which `kept`, a std::shared_ptr<Queue> on the
  // heap, points.
  static void run_next(void* kept);
  std::shared_ptr<Queue> queue_;  // shared, because a late thread may still read the queue
  std::unique_ptr<Workers> workers_;
};

}  // namespace nacre
