#include "nacre/base/tasks.h"

#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"

namespace nacre {

struct BackgroundTasks::Impl {
  explicit Impl(int threads)
      : workers(threads), arena(std::max(1, threads), /*reserved_for_masters=*/0, tbb::task_arena::priority::low) {}

  int workers;
  tbb::task_arena arena;
  tbb::task_group group;
};

BackgroundTasks::BackgroundTasks() : impl_(std::make_unique<Impl>(num_threads() - 1)) {}

BackgroundTasks::~BackgroundTasks() {
  if (impl_->workers == 0) return;
  try {
    impl_->arena.execute([this] { impl_->group.wait(); });
  } catch (const std::exception& error) {
    // Tasks hand their errors to whoever waits for their results; here nobody does any more.
    log_warning(std::string("a background task failed: ") + error.what());
  }
}

int BackgroundTasks::workers() const { return impl_->workers; }

void BackgroundTasks::post(std::function<void()> task) {
  NACRE_CHECK(impl_->workers > 0, "there is no thread for background tasks");
  impl_->arena.enqueue(impl_->group.defer(std::move(task)));
}

}  // namespace nacre
