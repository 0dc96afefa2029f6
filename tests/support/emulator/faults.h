// Reports which kernel touched memory that is not its own, before the process dies of it.
#pragma once

#include <csignal>

namespace nacre::emulator {

// FaultStack gives the thread that makes it a stack for the signal handler, because the stack of
// the kernel may be full.
class FaultStack {
 public:
  FaultStack();
  ~FaultStack();
  FaultStack(const FaultStack&) = delete;
  FaultStack& operator=(const FaultStack&) = delete;

 private:
  void* memory_;
};

}  // namespace nacre::emulator
