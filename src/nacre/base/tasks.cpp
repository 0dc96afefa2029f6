#include "nacre/base/tasks.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>

#include "nacre/base/arena.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/thread_team.h"

namespace nacre {

// Holds the tasks that have not begun. The arena is told only that there is something to do; the
// tasks themselves lie here, so that post() can take a task back if no thread could be started.
struct BackgroundTasks::Queue {
  std::mutex mutex;
  std::condition_variable idle;
  std::list<std::function<void()>> tasks;
  int running = 0;
  bool refused = false;          // the system could not start a thread
  Arena* team = current_team();  // loops inside of tasks use the threads of this team

  // Runs the first waiting task on a worker's thread. Tasks hand their errors to whoever waits for
  // their results, so an exception that arrives here is a bug in Nacre: it becomes a warning, and
  // the other tasks go on.
  void run_one() noexcept {
    std::unique_lock lock(mutex);
    if (tasks.empty()) return;
    std::list<std::function<void()>> mine;
    mine.splice(mine.begin(), tasks, tasks.begin());
    ++running;
    lock.unlock();
    try {
      const TeamMember member(team);
      mine.front()();
    } catch (const std::exception& e) {
      log_warning(std::string("a background task failed: ") + e.what());
    } catch (...) {
      log_warning("a background task failed");
    }
    mine.clear();
    lock.lock();
    --running;
    idle.notify_all();
  }
};

struct BackgroundTasks::Workers {
  explicit Workers(int threads) : count(threads), arena(std::max(1, threads), Arena::Purpose::tasks) {}
  int count;
  Arena arena;
};

void BackgroundTasks::run_next(void* kept) {
  const std::unique_ptr<std::shared_ptr<Queue>> queue(static_cast<std::shared_ptr<Queue>*>(kept));
  (*queue)->run_one();
}

BackgroundTasks::BackgroundTasks()
    : queue_(std::make_shared<Queue>()), workers_(std::make_unique<Workers>(num_threads() - 1)) {}

BackgroundTasks::~BackgroundTasks() {
  std::unique_lock lock(queue_->mutex);
  queue_->idle.wait(lock, [this] { return queue_->tasks.empty() && queue_->running == 0; });
}

int BackgroundTasks::workers() const {
  const std::lock_guard lock(queue_->mutex);
  return queue_->refused ? 0 : workers_->count;
}

bool BackgroundTasks::post(std::function<void()> task) {
  NACRE_CHECK(workers_->count > 0, "there is no thread for background tasks");
  std::list<std::function<void()>> mine;
  mine.push_back(std::move(task));
  const auto at = mine.begin();
  const std::function<void()>* const place = &*at;
  auto kept = std::make_unique<std::shared_ptr<Queue>>(queue_);
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->refused) return false;
    queue_->tasks.splice(queue_->tasks.end(), mine);
  }
  try {
    // run_next() deletes `kept`. If enqueue() throws, this memory is leaked, because run_next() may
    // still be called.
    workers_->arena.enqueue(&run_next, kept.release());
    return true;
  } catch (const std::exception& error) {
    const std::lock_guard lock(queue_->mutex);
    const auto& tasks = queue_->tasks;
    const bool waits = std::any_of(tasks.begin(), tasks.end(), [&](const auto& t) { return &t == place; });
    if (waits) mine.splice(mine.begin(), queue_->tasks, at);
    if (!queue_->refused) log_warning(std::string("the program goes on without background threads: ") + error.what());
    queue_->refused = true;
    return !waits;
  }
}

}  // namespace nacre
