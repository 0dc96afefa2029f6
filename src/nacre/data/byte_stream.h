// Bytes that arrive in order, whatever they are wrapped in. Streams borrow their input: its owner must outlive them.
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

  // Fills `to` with up to `bytes` bytes; fewer only when the stream ends. Throws UserError when the input is damaged.
  virtual int64_t read(void* to, int64_t bytes) = 0;
};

std::unique_ptr<ByteStream> memory_stream(std::span<const std::byte> input);

enum class Wrapping {
  deflate,  // one raw deflate stream that fills the input exactly (a ZIP member)
  gzip,     // one or more gzip members; zero padding may follow
};
// `first` is where in the file the input begins, for messages.
std::unique_ptr<ByteStream> inflate_stream(std::span<const std::byte> input, Wrapping wrapping, std::string where,
                                           int64_t first = 0);

struct Expected {
  int64_t size;    // bytes the inner stream must give, no more and no fewer
  uint32_t crc32;  // of those bytes
};
// Passes `inner` on and checks it against `expected` as the last byte is handed out; never reads past it.
std::unique_ptr<ByteStream> checked_stream(std::unique_ptr<ByteStream> inner, Expected expected, std::string where);

}  // namespace nacre
