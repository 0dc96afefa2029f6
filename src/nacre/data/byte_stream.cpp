#include "nacre/data/byte_stream.h"

#define ZLIB_CONST
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr const char* kDamaged = "the file is damaged: fetch or write it again";
constexpr int64_t kMostAtOnce = 1 << 30;  // zlib counts in 32 bits

class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::span<const std::byte> input) : input_(input) {}

  int64_t read(void* to, int64_t bytes) override {
    const size_t n = std::min(static_cast<size_t>(bytes), input_.size());
    if (n > 0) std::memcpy(to, input_.data(), n);
    input_ = input_.subspan(n);
    return static_cast<int64_t>(n);
  }

 private:
  std::span<const std::byte> input_;
};

class InflateStream final : public ByteStream {
 public:
  InflateStream(std::span<const std::byte> input, Wrapping wrapping, std::string where, int64_t first)
      : input_(input), wrapping_(wrapping), where_(std::move(where)), end_(first + static_cast<int64_t>(input.size())) {
    if (inflateInit2(&z_, wrapping == Wrapping::gzip ? 15 + 16 : -15) != Z_OK)
      throw RuntimeError(where_, "there is no memory left to inflate the data");
  }
  ~InflateStream() override { inflateEnd(&z_); }
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  int64_t read(void* to, int64_t bytes) override {
    auto* out = static_cast<unsigned char*>(to);
    int64_t done = 0;
    while (done < bytes && !ended_) {
      const auto room = static_cast<uInt>(std::min(bytes - done, kMostAtOnce));
      const auto given = static_cast<uInt>(std::min(input_.size(), static_cast<size_t>(kMostAtOnce)));
      z_.next_out = out + done;
      z_.avail_out = room;
      z_.next_in = reinterpret_cast<const Bytef*>(input_.data());
      z_.avail_in = given;
      const int status = inflate(&z_, Z_NO_FLUSH);
      done += room - z_.avail_out;
      input_ = input_.subspan(given - z_.avail_in);
      if (status == Z_STREAM_END) {
        finish_member();
      } else if (status == Z_BUF_ERROR || (status == Z_OK && input_.empty() && z_.avail_out > 0)) {
        throw UserError(place(), "compressed data end too early", "the file is truncated: fetch or write it again");
      } else if (status == Z_MEM_ERROR) {
        throw RuntimeError(where_, "there is no memory left to inflate the data");
      } else if (status != Z_OK) {
        throw UserError(
            place(), std::string("compressed data are damaged") + (z_.msg ? std::string(": ") + z_.msg : ""), kDamaged);
      }
    }
    return done;
  }

 private:
  // Returns the place up to which the input has been decompressed, as messages name it.
  std::string place() const {
    return where_ + " at byte " + std::to_string(end_ - static_cast<int64_t>(input_.size()));
  }

  void finish_member() {
    if (wrapping_ == Wrapping::deflate) {
      if (!input_.empty()) throw UserError(place(), "bytes follow the end of the compressed data", kDamaged);
      ended_ = true;
      return;
    }
    if (input_.size() >= 2 && input_[0] == std::byte{0x1F} && input_[1] == std::byte{0x8B}) {
      inflateReset(&z_);
      return;
    }
    if (std::any_of(input_.begin(), input_.end(), [](std::byte b) { return b != std::byte{0}; })) {
      throw UserError(place(), "bytes follow the end of the compressed data", kDamaged);
    }
    ended_ = true;
  }

  z_stream z_{};
  std::span<const std::byte> input_;
  Wrapping wrapping_;
  std::string where_;
  int64_t end_;  // where the input ends in the file
  bool ended_ = false;
};

class CheckedStream final : public ByteStream {
 public:
  CheckedStream(std::unique_ptr<ByteStream> inner, Expected expected, std::string where)
      : inner_(std::move(inner)), left_(expected.size), expected_(expected), where_(std::move(where)) {
    if (left_ == 0) check_end();
  }

  int64_t read(void* to, int64_t bytes) override {
    const int64_t wanted = std::min(bytes, left_);
    if (wanted == 0) return 0;
    const int64_t n = inner_->read(to, wanted);
    if (n < wanted) throw UserError(where_, "holds fewer bytes than its directory says", kDamaged);
    crc_ = static_cast<uint32_t>(crc32_z(crc_, static_cast<const Bytef*>(to), static_cast<size_t>(n)));
    left_ -= n;
    if (left_ == 0) check_end();
    return n;
  }

 private:
  void check_end() {
    char beyond;
    if (inner_->read(&beyond, 1) != 0) throw UserError(where_, "holds more bytes than its directory says", kDamaged);
    if (crc_ != expected_.crc32) throw UserError(where_, "the checksum does not match", kDamaged);
  }

  std::unique_ptr<ByteStream> inner_;
  int64_t left_;
  Expected expected_;
  uint32_t crc_ = 0;
  std::string where_;
};

}  // namespace

std::unique_ptr<ByteStream> memory_stream(std::span<const std::byte> input) {
  return std::make_unique<MemoryStream>(input);
}

std::unique_ptr<ByteStream> inflate_stream(std::span<const std::byte> input, Wrapping wrapping, std::string where,
                                           int64_t first) {
  return std::make_unique<InflateStream>(input, wrapping, std::move(where), first);
}

std::unique_ptr<ByteStream> checked_stream(std::unique_ptr<ByteStream> inner, Expected expected, std::string where) {
  return std::make_unique<CheckedStream>(std::move(inner), expected, std::move(where));
}

}  // namespace nacre
