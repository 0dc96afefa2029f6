#include "nacre/base/task_line.h"

#include <algorithm>
#include <new>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {

TaskLine::~TaskLine() {
  Lock lock(mutex_);
  for (const auto& task : line_) {
    if (!std::exchange(task->begun, true)) task->over = true;
  }
  changed_.wait(lock,
                [&] { return std::all_of(line_.begin(), line_.end(), [](const auto& task) { return task->over; }); });
}

void TaskLine::add(std::function<void()> task) {
  {
    const Lock lock(mutex_);
    line_.push_back(std::make_shared<Task>());
    line_.back()->work = std::move(task);
  }
  if (tasks_.workers() == 0) return;
  // If there is no memory to call a worker, the task runs on the thread that waits for it.
  try {
    tasks_.post([this] {
      Lock lock(mutex_);
      run_one(lock);
    });
  } catch (const std::bad_alloc&) {
    return;
  }
}

size_t TaskLine::size() const {
  const Lock lock(mutex_);
  return line_.size();
}

// Runs the first task that has not begun. Returns false if there is none.
bool TaskLine::run_one(Lock& lock) {
  const auto free = std::find_if(line_.begin(), line_.end(), [](const auto& task) { return !task->begun; });
  if (free == line_.end()) return false;
  const std::shared_ptr<Task> task = *free;
  task->begun = true;
  lock.unlock();
  try {
    task->work();
  } catch (...) {
    task->error = std::current_exception();
  }
  lock.lock();
  task->over = true;
  changed_.notify_all();
  return true;
}

void TaskLine::finish_first() {
  Lock lock(mutex_);
  NACRE_CHECK(!line_.empty(), "no task is in the line");
  const std::shared_ptr<Task> first = line_.front();
  while (!first->over) {
    if (!run_one(lock)) changed_.wait(lock);
  }
  line_.pop_front();
  if (first->error) std::rethrow_exception(first->error);
}

}  // namespace nacre
