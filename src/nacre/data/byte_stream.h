// Streams of bytes that are read in order, whether or not the input is compressed. A stream borrows
// its input, so the owner of the input must outlive the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace nacre {

class ByteStream {
 public:
  ByteStream() = default;
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fills `to` with up to `bytes` bytes and returns their number, which is smaller only at the end
  // of the stream. Throws UserError if the input is damaged.
  virtual int64_t read(void* to, int64_t bytes) = 0;
};

std::unique_ptr<ByteStream> memory_stream(std::span<const std::byte> input);

enum class Wrapping {
  deflate,  // one raw deflate stream that fills the input exactly (a ZIP member)
  gzip,     // one or more gzip members; zero padding may follow
};
// Returns a stream of the bytes that `input` holds in compressed form. `first` is the position of
// the input in the file, for messages.
std::unique_ptr<ByteStream> inflate_stream(std::span<const std::byte> input, Wrapping wrapping, std::string where,
                                           int64_t first = 0);

struct Expected {
  int64_t size;    // exact number of bytes that the inner stream must give
  uint32_t crc32;  // checksum of those bytes
};
// Returns a stream that passes on the bytes of `inner` and checks them against `expected` when it
// hands out the last byte. The stream never reads past that byte.
std::unique_ptr<ByteStream> checked_stream(std::unique_ptr<ByteStream> inner, Expected expected, std::string where);

}  // namespace nacre
