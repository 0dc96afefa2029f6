#include "nacre/train/stop_signal.h"

#include <atomic>

namespace nacre {
namespace {

std::atomic<int> g_signal{0};

}  // namespace

StopSignalGuard::StopSignalGuard() {
  g_signal = 0;
  struct sigaction note {};
  note.sa_handler = [](int number) { g_signal = number; };
  note.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  constexpr int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < old_.size(); ++i) {
    Old& old = old_[i];
    old.number = numbers[i];
    if (sigaction(old.number, nullptr, &old.action) != 0 || old.action.sa_handler == SIG_IGN) continue;
    old.replaced = sigaction(old.number, &note, nullptr) == 0;
  }
}

StopSignalGuard::~StopSignalGuard() {
  for (const Old& old : old_) {
    if (old.replaced) sigaction(old.number, &old.action, nullptr);
  }
}

int StopSignalGuard::signal() { return g_signal.load(); }

}  // namespace nacre
