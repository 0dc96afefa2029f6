// The only header that hides oneTBB: no other file includes oneTBB. Code that wants to run in
// parallel uses parallel.h and tasks.h.
#pragma once

#include <cstdint>
#include <memory>

#include "nacre/base/function_ref.h"

namespace nacre {

// Limits how many threads all arenas of this process may use together, including the caller's.
// Without a limit, oneTBB never starts more threads than the machine has cores.
void limit_arena_threads(int threads);

// A set of oneTBB threads that work on loops or on tasks.
class Arena {
 public:
  // In an arena for loops, the caller of a loop is one of the threads. In an arena for tasks, no
  // thread belongs to a caller, and tasks run only when no arena for loops wants the thread.
  enum class Purpose : uint8_t { loops, tasks };
  Arena(int threads, Purpose purpose);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int threads() const;
  // Calls body(i) for every i in [0, n), and returns when all calls have returned. Throws what a
  // call threw.
  void loop(int64_t n, FunctionRef<void(int64_t)> body);
  // Calls run(what) on a thread of this arena some time later. `what` must not be null and must lie
  // on the heap. If enqueue() throws, it is unknown whether run(what) will be called.
  void enqueue(void (*run)(void* what), void* what);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the index of the calling thread in the arena in which it works now, or 0 if it works in
// none.
int index_in_arena();

}  // namespace nacre
