// EndTimer: a clock of the system that kills this process. A process that is stopped cannot end
// itself, and the launcher would wait for it for ever, but the system kills stopped processes, too.
#pragma once

#include <csignal>
#include <ctime>

namespace nacre {

class EndTimer {
 public:
  // Kills the process after `seconds` unless the object is destroyed before. Does nothing if the
  // system refuses timers.
  explicit EndTimer(double seconds) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    made_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (made_) set(seconds);
  }
  ~EndTimer() {
    if (made_) timer_delete(timer_);
  }
  EndTimer(const EndTimer&) = delete;
  EndTimer& operator=(const EndTimer&) = delete;

  // Kills the process `seconds` after this call, even if this object has been destroyed.
  void keep(double seconds) {
    if (made_) set(seconds);
    made_ = false;
  }

 private:
  void set(double seconds) {
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(seconds);
    when.it_value.tv_nsec =
        static_cast<decltype(when.it_value.tv_nsec)>((seconds - static_cast<double>(when.it_value.tv_sec)) * 1e9);
    timer_settime(timer_, 0, &when, nullptr);
  }

  timer_t timer_{};
  bool made_ = false;
};

}  // namespace nacre
