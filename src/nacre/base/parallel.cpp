#include "nacre/base/parallel.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <memory>

#include "nacre/base/error.h"
#include "nacre/base/machine.h"

namespace nacre {
namespace {

std::unique_ptr<tbb::task_arena>& arena() {
  static std::unique_ptr<tbb::task_arena> instance = std::make_unique<tbb::task_arena>(usable_cpus());
  return instance;
}

// Without this oneTBB never starts more workers than the machine has cores, and arenas of loops and of background tasks
// together could keep more threads busy than were asked for.
std::unique_ptr<tbb::global_control>& worker_limit() {
  static std::unique_ptr<tbb::global_control> instance;
  return instance;
}

}  // namespace

void set_num_threads(int threads) {
  NACRE_CHECK(threads >= 1, "thread count must be positive");
  worker_limit() =
      std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
  arena() = std::make_unique<tbb::task_arena>(threads);
}

int num_threads() { return arena()->max_concurrency(); }

int thread_index() { return std::max(0, tbb::this_task_arena::current_thread_index()); }

void parallel_for(int64_t n, int64_t chunk, FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  chunk = std::max<int64_t>(1, chunk);
  const int64_t chunks = (n + chunk - 1) / chunk;
  parallel_tasks(chunks, [&](int64_t i) { body(i * chunk, std::min(n, (i + 1) * chunk)); });
}

void parallel_tasks(int64_t n, FunctionRef<void(int64_t)> body) {
  if (n <= 0) return;
  // A loop of one task, or on one thread, needs no scheduler; it still enters the arena so thread_index() is in range.
  arena()->execute([&] {
    if (n == 1 || num_threads() == 1) {
      for (int64_t i = 0; i < n; ++i) body(i);
      return;
    }
    tbb::parallel_for(
        int64_t{0}, n, [&](int64_t i) { body(i); }, tbb::auto_partitioner{});
  });
}

}  // namespace nacre
