#include "gil.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "nacre/base/error.h"

namespace nacre::python {
namespace {

std::atomic<bool> g_ends{false};
std::atomic<std::thread::id> g_ending_thread{};
// g_without_lock counts the threads that have given the lock up, g_taking those that are about to
// take it.
std::atomic<int> g_without_lock{0}, g_taking{0};

// Counts this thread among those that take the lock. Returns false, and does not count it, if the
// interpreter ends. end_interpreter() first sets g_ends and then lets the counted threads have the
// lock, so none of them asks for it too late.
bool begin_taking() {
  ++g_taking;
  if (!interpreter_ends()) return true;
  --g_taking;
  return false;
}

}  // namespace

bool interpreter_ends() { return g_ends && g_ending_thread.load() != std::this_thread::get_id(); }

GilRelease::GilRelease() : state_(PyEval_SaveThread()) { ++g_without_lock; }

GilRelease::~GilRelease() {
  --g_without_lock;
  while (!begin_taking()) pause();  // this thread waits here until the process is over
  PyEval_RestoreThread(state_);
  --g_taking;
}

GilAcquire::GilAcquire() : held_(begin_taking()) {
  if (!held_) return;
  state_ = PyGILState_Ensure();
  --g_taking;
}

GilAcquire::~GilAcquire() {
  if (held_) PyGILState_Release(state_);
}

void GilAcquire::require() const {
  if (!held_) throw RuntimeError("nacre", "the Python interpreter is ending");
}

void end_interpreter() {
  g_ending_thread = std::this_thread::get_id();
  g_ends = true;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const GilRelease released;
  // This thread is itself counted in g_without_lock.
  while (g_taking > 0 || (g_without_lock > 1 && Clock::now() - begin < std::chrono::seconds(10)))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void forget_other_threads() { g_without_lock = g_taking = 0; }

}  // namespace nacre::python
