// The 64-bit checksum of Nacre's own files and of data set fingerprints.
//
// The bytes are cut into chunks of 1 MiB, which are hashed in parallel and combined in order.
// Within a chunk, eight accumulators take turns on 8-byte little-endian words:
//   accumulator = rotl((accumulator ^ word) * K, 29).
// Every step is a bijection of the accumulator for a given word and of the word for a given
// accumulator, so one damaged word always changes the checksum. This is not a cryptographic hash.
#pragma once

#include <cstdint>
#include <vector>

namespace nacre {

uint64_t checksum64(const void* data, int64_t bytes);

// Computes what checksum64() computes, for bytes that arrive piece by piece.
class Checksum64 {
 public:
  void update(const void* data, int64_t bytes);
  // Returns the checksum of all bytes so far.
  uint64_t value() const;
  int64_t bytes() const { return bytes_; }

 private:
  static constexpr int64_t kChunk = 1 << 20;

  std::vector<uint64_t> parts_;       // checksums of the whole chunks
  std::vector<unsigned char> begun_;  // bytes of the last, incomplete chunk
  int64_t bytes_ = 0;
};

}  // namespace nacre
