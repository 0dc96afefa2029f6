// Finds accesses of a block's shared memory that no barrier orders. Two accesses of the same byte
// by different threads, one of which writes, are a race unless __syncthreads() lies between them,
// or __syncwarp() of a mask that has both threads. Exchanges and votes of a warp do not count as
// barriers, because CUDA does not promise that they order memory. A race is found whichever of the
// two threads the emulator runs first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/emulator/thread.h"

namespace nacre::emulator {

class SharedRaces {
 public:
  // `bytes` is the size of the shared memory.
  explicit SharedRaces(int64_t bytes);

  // A block of `threads` threads begins. What earlier blocks did is forgotten.
  void begin_block(int threads);
  // All threads of the block have met.
  void pass_barrier() { ++epoch_; }
  // The threads `first` + i have met by __syncwarp() for which bit i of `mask` is set.
  void meet(int first, unsigned mask);
  // Notes that a thread accesses bytes [at, at + bytes). Returns an empty text, or the race.
  std::string touch(int thread, int64_t at, int64_t bytes, Access access);

 private:
  // One access of a word of four bytes.
  struct Mark {
    uint32_t epoch = 0;  // block barriers that were passed before it
    uint32_t clock = 0;  // the thread's own time, which __syncwarp() advances
    uint16_t thread = 0;
    uint8_t bytes = 0;  // bit i: byte i of the word
  };
  static constexpr int kReaders = 4;
  struct Shadow {
    Mark write, atomic;
    // The latest readers. If a word has more of them, some are forgotten, and so are their races.
    std::array<Mark, kReaders> reads;
    uint8_t next_read = 0;
  };
  using Clocks = std::array<uint32_t, 32>;

  bool races(const Mark& earlier, const Mark& now) const;
  static void note_read(Shadow& word, const Mark& now);
  std::string check(Shadow& word, const Mark& now, Access access) const;

  std::vector<Shadow> words_;
  // For each thread, the times of its warp's threads up to which it knows their accesses. Its entry
  // for itself is its own time.
  std::vector<Clocks> known_;
  uint32_t epoch_ = 1;
};

}  // namespace nacre::emulator
