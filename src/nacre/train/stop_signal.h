// Asking a run to stop: by SIGINT (Ctrl-C), SIGTERM, or SIGHUP (the terminal was closed).
#pragma once

#include <array>
#include <csignal>

namespace nacre {

// While it lives, these signals only leave a note; a second one ends the program as usual. What is ignored (nohup, a
// job in the background of a script) stays ignored.
class StopSignalGuard {
 public:
  StopSignalGuard();
  ~StopSignalGuard();
  StopSignalGuard(const StopSignalGuard&) = delete;
  StopSignalGuard& operator=(const StopSignalGuard&) = delete;

  // The signal that came since the newest guard was made; 0 if none did.
  static int signal();

 private:
  struct Old {
    int number = 0;
    bool replaced = false;
    struct sigaction action {};
  };
  std::array<Old, 3> old_;
};

}  // namespace nacre
