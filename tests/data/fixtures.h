// Functions that write the bytes of files and share no code with the readers under test, and checks
// that every reader must pass.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/data/mapped_file.h"

namespace nacre::test {

std::shared_ptr<const MappedFile> in_memory(const std::string& bytes, const std::string& name = "memory");

// Returns the little-endian bytes of values of one type.
template <class T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::string raw(std::initializer_list<T> values) {
  return raw(std::vector<T>(values));
}

struct NpyText {
  std::string descr;
  std::string shape;  // the shape as Python writes it: "(2, 3)"
  bool fortran = false;
  int version = 1;
};
std::string npy(const NpyText& header, const std::string& payload);
// Returns an .npy file with any header text.
std::string npy_with_header(const std::string& header, const std::string& payload, int version = 1);

std::string line_shape(size_t count);  // "(7,)"
std::string npy_i64(const std::vector<int64_t>& values, const std::string& shape = "");
std::string npy_f32(const std::vector<float>& values, const std::string& shape = "");

enum class Pack { stored, deflated };
struct Member {
  std::string name;
  std::string bytes;
  Pack pack = Pack::deflated;
  bool zip64 = false;            // sizes and offset are in the ZIP64 extra field
  bool data_descriptor = false;  // CRC and sizes follow the data
  int64_t claimed_size = -1;     // a wrong size to claim
  uint32_t crc_change = 0;       // xor-ed into the CRC
  uint16_t flags = 0;
  uint16_t method = 0xFFFF;  // a wrong method to claim
};
struct ZipText {
  std::string comment;
  bool zip64 = false;  // the ZIP64 end record describes the directory
};
std::string zip(const std::vector<Member>& members, const ZipText& text = {});
std::string deflate_raw(const std::string& bytes);
std::string gzip(const std::string& bytes);
uint32_t crc_of(const std::string& bytes);

// A folder that is removed with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const;
  std::vector<std::string> files() const;

 private:
  std::filesystem::path folder_;
};
std::string read_bytes(const std::string& path);

// As long as the object lives, address space can grow by about 256 MiB only, so a reader that
// believes an enormous claim fails with something other than a UserError. It has no effect under
// sanitizers, which reserve terabytes.
class MemoryLimit {
 public:
  MemoryLimit();
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  uint64_t before_ = 0;
};

// Returns the message of the UserError that `body` must throw. If it does not, or the message is
// not one line, the test fails and the result is "".
std::string user_error(const std::function<void()>& body);
// Runs `body`, which may succeed or throw UserError; anything else fails the test. Returns true if
// it succeeded.
bool survives(const std::function<void()>& body, const std::string& what);

// Calls `read` with every proper prefix of `bytes`.
void for_each_truncation(const std::string& bytes, const std::function<void(const std::string&, size_t)>& read);
// Calls `read` with a copy of `bytes` for every byte and several ways of damaging it.
void for_each_flip(const std::string& bytes, const std::function<void(const std::string&, size_t)>& read);

#define EXPECT_USER_ERROR(statement, text)                                               \
  EXPECT_NE(::nacre::test::user_error([&] { statement; }).find(text), std::string::npos) \
      << "message: " << ::nacre::test::user_error([&] { statement; })

}  // namespace nacre::test
