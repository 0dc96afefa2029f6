// Finds accesses of a block's shared memory that no barrier orders. Two accesses of the same byte
// by different threads, of which at least one is a write, are a race unless __syncthreads() lies
// between them, or __syncwarp() of a mask that has both threads. Exchanges and votes of a warp do
// not count as barriers, because CUDA does not promise that they order memory. A race is found
// whichever of the two threads the emulator runs first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/emulator/thread.h"

namespace nacre::emulator {

class SharedRaces {
 public:
  // Makes an object for a shared memory of `bytes` bytes.
  explicit SharedRaces(int64_t bytes);

  // Begins a block of `threads` threads, and forgets what earlier blocks did.
  void begin_block(int threads);
  // Notes that all threads of the block have met at a barrier.
  void pass_barrier() { ++epoch_; }
  // Notes that the threads `first` + i for which bit i of `mask` is set have met by __syncwarp().
  void meet(int first, unsigned mask);
  // Notes that a thread accesses bytes [at, at + bytes). Returns a text that describes the race, or
  // an empty text if there is none.
  std::string touch(int thread, int64_t at, int64_t bytes, Access access);

 private:
  // Describes one access of a word of four bytes.
  struct Mark {
    uint32_t epoch = 0;  // number of block barriers before the access
    uint32_t clock = 0;  // the thread's own time, which __syncwarp() advances
    uint16_t thread = 0;
    uint8_t bytes = 0;  // bit i is set if byte i of the word was accessed
  };
  static constexpr int kReaders = 4;
  struct Shadow {
    Mark write, atomic;
    // These are the latest readers of the word. If there are more, some are forgotten, and races
    // with them are not found.
    std::array<Mark, kReaders> reads;
    uint8_t next_read = 0;
  };
  using Clocks = std::array<uint32_t, 32>;

  bool races(const Mark& earlier, const Mark& now) const;
  static void note_read(Shadow& word, const Mark& now);
  std::string check(Shadow& word, const Mark& now, Access access) const;

  std::vector<Shadow> words_;
  // For each thread, these are the times of all threads of its warp up to which barriers order
  // their accesses before its own. The entry of a thread for itself is its own time.
  std::vector<Clocks> known_;
  uint32_t epoch_ = 1;
};

}  // namespace nacre::emulator
