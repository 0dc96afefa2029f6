#include "nacre/base/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "nacre/base/arena.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/thread_team.h"

namespace nacre {
namespace {

// Returns how many threads the system lets this process have, including the caller's, but at most
// `wanted`. oneTBB cannot continue if the system refuses it a thread, so as many threads are
// started here first, all at once.
int startable_threads(int wanted) {
  std::vector<std::thread> others;
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  const auto end_all = [&] {
    {
      const std::lock_guard lock(mutex);
      over = true;
    }
    changed.notify_all();
    for (std::thread& thread : others) thread.join();
  };
  try {
    others.reserve(wanted);
    while (static_cast<int>(others.size()) + 1 < wanted) {
      others.emplace_back([&] {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return over; });
      });
    }
  } catch (const std::system_error&) {
    log_warning(fmt::format("the system lets this program start only {} of {} threads", others.size() + 1, wanted));
  } catch (...) {
    end_all();
    throw;
  }
  end_all();
  return static_cast<int>(others.size()) + 1;
}

std::unique_ptr<Arena> g_arena;
std::once_flag g_arena_chosen;
// The threads of the team that the calling thread belongs to; null if it belongs to none.
thread_local Arena* t_team = nullptr;

std::unique_ptr<Arena> make_arena(int threads) { return std::make_unique<Arena>(threads, Arena::Purpose::loops); }

// Returns the arena of the parallel loops of the calling thread: that of its team, if it has one.
// Unless set_num_threads() was called before, the arena of all other threads has a thread for every
// processor that this process may use.
Arena& arena() {
  if (t_team != nullptr) return *t_team;
  std::call_once(g_arena_chosen, [] { g_arena = make_arena(startable_threads(usable_cpus())); });
  return *g_arena;
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) : arena_(make_arena(threads)), before_(t_team) { t_team = arena_.get(); }

ThreadTeam::~ThreadTeam() { t_team = before_; }

Arena* current_team() { return t_team; }

TeamMember::TeamMember(Arena* team) : before_(t_team) { t_team = team; }

TeamMember::~TeamMember() { t_team = before_; }

void set_num_threads(int threads) {
  NACRE_CHECK(threads >= 1, "the number of threads must be positive");
  threads = startable_threads(threads);
  // The arenas of loops and of background tasks together must not keep more threads busy than the
  // caller asked for.
  limit_arena_threads(threads);
  std::call_once(g_arena_chosen, [] {});
  g_arena = make_arena(threads);
}

int num_threads() { return arena().threads(); }

int thread_index() { return index_in_arena(); }

void parallel_for(int64_t n, int64_t chunk, FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  chunk = std::max<int64_t>(1, chunk);
  const int64_t chunks = (n + chunk - 1) / chunk;
  parallel_tasks(chunks, [&](int64_t i) { body(i * chunk, std::min(n, (i + 1) * chunk)); });
}

void parallel_tasks(int64_t n, FunctionRef<void(int64_t)> body) {
  if (n <= 0) return;
  if (t_team == nullptr) return arena().loop(n, body);
  // The body may start loops of its own, which must use the threads of the team as well. Therefore
  // each task makes its thread a member of the team.
  t_team->loop(n, [team = t_team, body](int64_t i) {
    const TeamMember member(team);
    body(i);
  });
}

}  // namespace nacre
