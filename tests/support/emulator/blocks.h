// Runs blocks of CUDA threads on one thread of the host. Every CUDA thread has a stack of its own.
// One CUDA thread runs until it ends or waits for others; then the next one runs. A block whose
// threads wait for each other for ever is reported.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/emulator/thread.h"

namespace nacre::emulator {

// Entry is the type of a compiled kernel: nacre_enter() in cuda_shim.h says what it does.
using Entry = int (*)(void** args, int* sizes);

struct Grid {
  std::string name;  // name of the kernel, for messages
  Entry entry = nullptr;
  unsigned blocks = 0;
  unsigned threads = 0;
  int64_t shared_bytes = 0;  // dynamic shared memory
  int64_t shared_limit = 0;  // limit of dynamic and static shared memory together
};

class Block;

class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  // Runs all blocks of a kernel. Throws InternalError that names the kernel if a block cannot end
  // or leaves its shared memory.
  void run(const Grid& grid, void** args);

 private:
  std::unique_ptr<Block> block_;
};

// Returns the kernel that this thread of the host runs now, or null outside of run(). A signal
// handler may call this.
const char* kernel_running();

}  // namespace nacre::emulator
