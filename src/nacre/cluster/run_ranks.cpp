#include "nacre/cluster/run_ranks.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace nacre {
namespace {

// Collects how the ranks of a run have ended.
class Endings {
 public:
  explicit Endings(int size) : running_(size) { errors_.resize(static_cast<size_t>(size)); }

  // Notes that a rank has ended. `error` is what the rank threw, or null if the rank returned.
  void ended(int rank, std::exception_ptr error, const std::optional<RankFailure>& failure) {
    const std::lock_guard lock(mutex_);
    errors_[rank] = std::move(error);
    if (failure && !failure_) failure_.emplace(*failure);
    --running_;
    changed_.notify_all();
  }

  void await(const RunRanksOptions& options) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0 || failure_; });
    const auto limit = std::chrono::duration<double>(options.stuck_seconds);
    if (changed_.wait_for(lock, limit, [&] { return running_ == 0; }) || !options.on_stuck) return;
    const RankFailure failure = *failure_;
    lock.unlock();
    options.on_stuck(failure);
  }

  // Throws the failure of the run, if there was one. All ranks must have ended.
  void rethrow() {
    if (!failure_) return;
    if (const auto& error = errors_[failure_->rank()]; error != nullptr) std::rethrow_exception(error);
    throw RankFailure(*failure_);
  }

 private:
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<std::exception_ptr> errors_;
  std::optional<RankFailure> failure_;
  int running_;
};

void run_rank(Communicator& own, const std::function<void(Communicator&)>& body, Endings& endings) {
  std::exception_ptr error;
  std::optional<RankFailure> failure;
  try {
    body(own);
  } catch (const RankFailure& thrown) {
    error = std::current_exception();
    failure.emplace(thrown);
  } catch (const std::exception& thrown) {
    error = std::current_exception();
    failure.emplace(own.abort(thrown.what()));
  }
  endings.ended(own.rank(), std::move(error), failure);
}

}  // namespace

void run_ranks(int size, const std::function<void(Communicator&)>& body, const RunRanksOptions& options) {
  auto group = make_group(size, options.group);
  Endings endings(size);
  std::vector<std::thread> threads;
  threads.reserve(size);
  for (auto& member : group) {
    try {
      threads.emplace_back([&body, &endings, &member] {
        run_rank(*member, body, endings);
        member.reset();
      });
    } catch (const std::system_error& error) {
      endings.ended(member->rank(), std::current_exception(), member->abort(error.what()));
    }
  }
  endings.await(options);
  for (std::thread& thread : threads) thread.join();
  endings.rethrow();
}

}  // namespace nacre
