#include "support/emulator/faults.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "support/emulator/blocks.h"

namespace nacre::emulator {
namespace {

constexpr size_t kBytes = 64 << 10;

struct sigaction before_fault, before_trap;

void say(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// Handles a signal that says that a copy or a kernel left its memory, or that a kernel used an
// address that is not aligned: reports this, and then lets the process die of the signal.
void report(int signal, siginfo_t*, void*) {
  if (const char* kernel = kernel_running(); kernel != nullptr) {
    say("emulated device: kernel ");
    say(kernel);
    say(signal == SIGILL ? " reads or writes at an address that is not aligned\n"
                         : " reads or writes outside of the memory it was given\n");
  }
  sigaction(signal, signal == SIGILL ? &before_trap : &before_fault, nullptr);
}

}  // namespace

FaultStack::FaultStack() : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = report;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before_fault);
    sigaction(SIGILL, &action, &before_trap);
  });
  if (memory_ == MAP_FAILED) return;
  stack_t stack = {};
  stack.ss_sp = memory_;
  stack.ss_size = kBytes;
  sigaltstack(&stack, nullptr);
}

FaultStack::~FaultStack() {
  if (memory_ == MAP_FAILED) return;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(memory_, kBytes);
}

}  // namespace nacre::emulator
