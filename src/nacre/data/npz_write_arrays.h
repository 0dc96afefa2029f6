// Writes NumPy arrays in pieces: .npy files, and .npz archives of stored members. Each member has a
// ZIP64 extra field, so its size does not matter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/base/pending_file.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

std::string npy_header(std::string_view descr, const Shape& shape);

template <class T>
constexpr const char* npy_descr();
template <>
constexpr const char* npy_descr<float>() {
  return "<f4";
}
template <>
constexpr const char* npy_descr<int64_t>() {
  return "<i8";
}
template <>
constexpr const char* npy_descr<int32_t>() {
  return "<i4";
}
template <>
constexpr const char* npy_descr<uint8_t>() {
  return "|u1";
}

class NpzWriter {
 public:
  explicit NpzWriter(const std::string& path) : file_(path) {}

  // Writes value(i) for all i in [0, number of elements of shape) as elements of T.
  template <class T, class Value>
  void add(const std::string& key, const Shape& shape, const Value& value) {
    begin(key, npy_header(npy_descr<T>(), shape));
    pieces<T>(num_elements(shape), value, [&](std::string_view bytes) { append(bytes); });
    end();
  }
  // Adds a string, as NumPy writes np.array("csr").
  void add_word(const std::string& key, std::string_view word);
  // Adds strings, as NumPy writes an array of bytes: each is padded with zeros to the longest.
  void add_words(const std::string& key, const std::vector<std::string>& words);
  void finish();

  // Hands value(i) for all i to `sink` as bytes, a piece at a time.
  template <class T, class Value, class Sink>
  static void pieces(int64_t count, const Value& value, const Sink& sink) {
    std::vector<T> piece;
    for (int64_t b = 0; b < count; b += 1 << 20) {
      const int64_t e = std::min<int64_t>(count, b + (1 << 20));
      piece.clear();
      for (int64_t i = b; i < e; ++i) piece.push_back(static_cast<T>(value(i)));
      sink({reinterpret_cast<const char*>(piece.data()), piece.size() * sizeof(T)});
    }
  }

 private:
  struct Member {
    std::string name;
    uint32_t crc = 0;
    int64_t offset = 0;  // position of the local header
    int64_t size = 0;
  };
  static std::string header_of(const Member& member, bool central);
  void begin(const std::string& key, const std::string& header);
  void append(std::string_view bytes);
  // Finishes a member. Its checksum is known only after its bytes, so its header is written last,
  // in the place kept for it.
  void end();

  PendingFile file_;
  int64_t end_ = 0;
  std::vector<Member> members_;
};

template <class T, class Value>
void write_npy(const std::string& path, const Shape& shape, const Value& value) {
  PendingFile file(path);
  file.append(npy_header(npy_descr<T>(), shape));
  NpzWriter::pieces<T>(num_elements(shape), value, [&](std::string_view bytes) { file.append(bytes); });
  file.commit();
}

}  // namespace nacre
