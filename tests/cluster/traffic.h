// A random exchange whose contents can be checked: which rank sends how many rows to which, the
// same on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/launcher.h"

namespace nacre {

class Traffic {
 public:
  // `most` is the largest number of rows of a message. Some ranks send or receive nothing.
  Traffic(uint64_t seed, int size, int64_t most);

  // Makes the memory and the request of one rank.
  const ExchangeRequest& prepare(int rank);
  // Checks that all rows have arrived and nothing else was written.
  void check() const;
  int64_t bytes_sent(int rank) const;
  int64_t bytes_received(int rank) const;

 private:
  struct Block {  // rows of one message in memory: every second row, in reverse order
    std::vector<std::byte> memory;
    std::vector<uint32_t> index;
  };
  int64_t count(int from, int to) const { return counts_[from * size_ + to]; }
  std::byte value(int from, int to, int64_t row, int64_t at) const;
  template <class Byte>
  RowRange<Byte> rows_of(Block& block, int64_t rows) const;

  uint64_t seed_;
  int size_, rank_ = -1;
  int64_t row_bytes_, pitch_;
  bool indexed_;
  std::vector<int64_t> counts_;
  std::vector<Block> sent_, received_;
  ExchangeRequest request_;
};

}  // namespace nacre
