// Blocks of CUDA threads on one thread of the host. Every CUDA thread has a stack of its own; one runs until it ends or
// waits for others, then the next. A block whose threads wait for one another for ever is reported, not waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/emulator/thread.h"

namespace nacre::emulator {

// A compiled kernel: see nacre_enter() in cuda_shim.h.
using Entry = int (*)(void** args, int* sizes);

struct Grid {
  std::string name;  // of the kernel, for messages
  Entry entry = nullptr;
  unsigned blocks = 0;
  unsigned threads = 0;
  int64_t shared_bytes = 0;  // dynamic
  int64_t shared_limit = 0;  // of both kinds together
};

class Block;

class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  // Throws InternalError that names the kernel where a block cannot end or leaves its shared memory.
  void run(const Grid& grid, void** args);

 private:
  std::unique_ptr<Block> block_;
};

// The kernel that this thread of the host runs now; empty outside of run(). Safe to call in a signal handler.
const char* kernel_running();

}  // namespace nacre::emulator
