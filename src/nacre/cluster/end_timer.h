// EndTimer: a timer of the operating system that kills this process. A process that is stopped
// cannot end itself, and the launcher would wait for it for ever, but the system can kill a stopped
// process.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace nacre {

// The timer of the system never runs for more than kStopped seconds. While the process runs, a
// thread sets the timer anew again and again. So a process that is stopped is killed soon, and a
// process that is only slow is killed when all of its time is over.
class EndTimer {
 public:
  // A process that is stopped for this many seconds is killed.
  static constexpr double kStopped = 5;

  // Kills the process after `seconds`, or after kStopped seconds in which it was stopped, unless
  // the object is destroyed before. Does nothing if the system refuses timers.
  explicit EndTimer(double seconds) : state_(std::make_shared<State>()) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    if (timer_create(CLOCK_MONOTONIC, &event, &state_->timer) != 0) {
      state_->over = true;
      return;
    }
    state_->set(seconds);
    try {
      std::thread([state = state_] { state->run(); }).detach();
    } catch (const std::system_error&) {
      // Without the thread, nothing sets the clock anew, so it is set once, to the whole of
      // `seconds`.
      state_->renewed = false;
      state_->set(seconds);
    }
  }
  ~EndTimer() {
    if (!kept_) state_->stop();
  }
  EndTimer(const EndTimer&) = delete;
  EndTimer& operator=(const EndTimer&) = delete;

  // Kills the process `seconds` after this call, or after kStopped seconds in which it was stopped,
  // even if this object has been destroyed.
  void keep(double seconds) {
    kept_ = true;
    state_->set(seconds);
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct State {
    // The thread sets the clock anew every kStep seconds.
    static constexpr double kStep = 0.5;

    std::mutex mutex;  // guards the members below
    std::condition_variable changed;
    bool over = false;
    timer_t timer{};
    Clock::time_point end;
    bool renewed = true;  // whether there is a thread that sets the clock anew

    void set(double seconds) {
      const std::lock_guard lock(mutex);
      if (over) return;
      end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
      // If there is a thread, the clock is set to kStopped seconds at most from the start, because
      // the process may be stopped before the thread runs for the first time.
      put_off(renewed ? std::min(seconds, kStopped) : seconds);
    }
    void stop() {
      const std::lock_guard lock(mutex);
      if (over) return;
      over = true;
      timer_delete(timer);
      changed.notify_all();
    }
    void run() {
      std::unique_lock lock(mutex);
      while (!over) {
        const double left = std::chrono::duration<double>(end - Clock::now()).count();
        put_off(std::min(left, kStopped));
        changed.wait_for(lock, std::chrono::duration<double>(kStep), [&] { return over; });
      }
    }
    // Sets the clock, which then kills the process after `seconds` unless it is set again.
    void put_off(double seconds) {
      const double positive = std::max(seconds, 1e-3);  // 0 would switch the clock off
      itimerspec when{};
      when.it_value.tv_sec = static_cast<time_t>(positive);
      when.it_value.tv_nsec =
          static_cast<decltype(when.it_value.tv_nsec)>((positive - static_cast<double>(when.it_value.tv_sec)) * 1e9);
      timer_settime(timer, 0, &when, nullptr);
    }
  };

  std::shared_ptr<State> state_;
  bool kept_ = false;
};

}  // namespace nacre
