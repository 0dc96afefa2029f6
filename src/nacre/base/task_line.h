// TaskLine: tasks that run beside each other on background threads and are finished in the order in
// which they were added. A caller who waits for the first one runs others meanwhile.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "nacre/base/tasks.h"

namespace nacre {

class TaskLine {
 public:
  TaskLine() = default;
  // Drops the tasks that have not begun, and waits for the others.
  ~TaskLine();
  TaskLine(const TaskLine&) = delete;
  TaskLine& operator=(const TaskLine&) = delete;

  // Adds a task at the end of the line. If this throws, the task is not in the line.
  void add(std::function<void()> task);
  // Returns how many tasks were added and not finished.
  size_t size() const;
  // Waits until the first task of the line is over, and takes it out of the line. Throws what the
  // task threw. Without background threads, all tasks run here.
  void finish_first();

 private:
  struct Task {
    std::function<void()> work;
    bool begun = false, over = false;
    std::exception_ptr error;
  };
  using Lock = std::unique_lock<std::mutex>;
  bool run_one(Lock& lock);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> line_;
  BackgroundTasks tasks_;  // the last member, because its tasks use the others
};

}  // namespace nacre
