// The thread sanitizer (make races) does not watch this file or the library of oneTBB, because it
// cannot follow how oneTBB hands its own objects from thread to thread. OrderPoint tells the
// sanitizer what it must know. Therefore this file does nothing but call oneTBB. It uses no atomics
// or templates of the standard library that other files use too, because the linker might take
// their unwatched copies from here.
#include "nacre/base/arena.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

#ifdef NACRE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace nacre {
namespace {

// These functions tell the sanitizer what oneTBB guarantees: everything that threads did before
// they called reached(place) has happened before what a thread does after it calls passed(place).
// The sanitizer forgets a place on the heap when its memory is freed.
#ifdef NACRE_THREAD_SANITIZER
void reached(void* place) { __tsan_release(place); }
void passed(void* place) { __tsan_acquire(place); }

class OrderPoint {
 public:
  OrderPoint() : place_(new char) {}
  ~OrderPoint() { delete place_; }
  OrderPoint(const OrderPoint&) = delete;
  OrderPoint& operator=(const OrderPoint&) = delete;
  void reached() { nacre::reached(place_); }
  void passed() { nacre::passed(place_); }

 private:
  char* place_;
};
#else
void reached(void*) {}
void passed(void*) {}

struct OrderPoint {
  void reached() {}
  void passed() {}
};
#endif

// The tasks of a loop come after what its caller did before the loop, and before what the caller
// does after the loop. The tasks have no order among themselves. This also holds for a task that
// throws.
struct LoopOrder {
  OrderPoint begun, ended;

  LoopOrder() { begun.reached(); }
  ~LoopOrder() { ended.passed(); }
  LoopOrder(const LoopOrder&) = delete;
  LoopOrder& operator=(const LoopOrder&) = delete;
};

struct TaskOrder {
  LoopOrder& loop;

  explicit TaskOrder(LoopOrder& of) : loop(of) { loop.begun.passed(); }
  ~TaskOrder() { loop.ended.reached(); }
  TaskOrder(const TaskOrder&) = delete;
  TaskOrder& operator=(const TaskOrder&) = delete;
};

tbb::task_arena make_arena(int threads, Arena::Purpose purpose) {
  if (purpose == Arena::Purpose::loops) return tbb::task_arena(threads);
  return {threads, /*reserved_for_masters=*/0, tbb::task_arena::priority::low};
}

}  // namespace

struct Arena::State {
  tbb::task_arena arena;
};

Arena::Arena(int threads, Purpose purpose) : state_(new State{make_arena(threads, purpose)}) {}

Arena::~Arena() = default;

int Arena::threads() const { return state_->arena.max_concurrency(); }

void Arena::loop(int64_t n, FunctionRef<void(int64_t)> body) {
  LoopOrder order;
  // A loop of one task, or on one thread, needs no scheduler. It enters the arena all the same, so
  // that index_in_arena() is in range.
  state_->arena.execute([&] {
    if (n == 1 || threads() == 1) {
      const TaskOrder task(order);
      for (int64_t i = 0; i < n; ++i) body(i);
      return;
    }
    tbb::parallel_for(
        int64_t{0}, n,
        [&](int64_t i) {
          const TaskOrder task(order);
          body(i);
        },
        tbb::auto_partitioner{});
  });
}

void Arena::enqueue(void (*run)(void* what), void* what) {
  reached(what);
  state_->arena.enqueue([run, what] {
    passed(what);
    run(what);
  });
}

void limit_arena_threads(int threads) {
  static std::unique_ptr<tbb::global_control> limit;
  limit =
      std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
}

int index_in_arena() { return std::max(0, tbb::this_task_arena::current_thread_index()); }

}  // namespace nacre
