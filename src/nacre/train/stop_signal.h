// Lets users stop a run: by SIGINT (Ctrl-C), SIGTERM, or SIGHUP (the terminal was closed).
#pragma once

#include <array>
#include <csignal>

namespace nacre {

// While an object of this class lives, these signals are only noted; a second one ends the program
// as usual. Signals that are ignored (nohup, a background job of a script) stay ignored.
class StopSignalGuard {
 public:
  StopSignalGuard();
  ~StopSignalGuard();
  StopSignalGuard(const StopSignalGuard&) = delete;
  StopSignalGuard& operator=(const StopSignalGuard&) = delete;

  // Returns the signal that came since the newest guard was made; 0 if none did.
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
