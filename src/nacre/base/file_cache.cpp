// Layout of a file: magic (8 bytes), size of the key, size of the value, key, value, checksum of
// everything before. Numbers are 8 bytes in the byte order of the machine.
#include "nacre/base/file_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "nacreKV1";
constexpr size_t kNumber = sizeof(uint64_t);
constexpr size_t kHeader = 3 * kNumber;

// Returns a hash of `text`, mixed in word by word. If one argument of mix_key() is fixed, the
// result is a bijection of the other argument, so one damaged word always changes the hash. This is
// not a cryptographic hash.
uint64_t hash_text(std::string_view text, uint64_t seed) {
  uint64_t h = mix_key(seed, text.size());
  for (size_t at = 0; at < text.size(); at += kNumber) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(kNumber, text.size() - at));
    h = mix_key(h, word);
  }
  return h;
}

std::string file_of(const std::string& folder, std::string_view key) {
  return (fs::path(folder) / fmt::format("{:016x}{:016x}", hash_text(key, 1), hash_text(key, 2))).string();
}

void append_number(std::string& text, uint64_t number) {
  char bytes[kNumber];
  std::memcpy(bytes, &number, kNumber);
  text.append(bytes, kNumber);
}

uint64_t number_at(std::string_view text, size_t at) {
  uint64_t number = 0;
  std::memcpy(&number, text.data() + at, kNumber);
  return number;
}

}  // namespace

std::optional<std::string> read_cached(const std::string& folder, std::string_view key) {
  if (folder.empty()) return std::nullopt;
  try {
    const std::string path = file_of(folder, key);
    if (!fs::is_regular_file(path)) return std::nullopt;
    const std::string text = read_file(path);
    const size_t frame = kHeader + key.size() + kNumber;  // number of bytes besides the value
    if (text.size() < frame || !text.starts_with(kMagic)) return std::nullopt;
    if (number_at(text, kNumber) != key.size() || number_at(text, 2 * kNumber) != text.size() - frame) {
      return std::nullopt;
    }
    const std::string_view content = std::string_view(text).substr(0, text.size() - kNumber);
    if (hash_text(content, 0) != number_at(text, content.size())) return std::nullopt;
    if (content.substr(kHeader, key.size()) != key) return std::nullopt;
    return std::string(content.substr(kHeader + key.size()));
  } catch (const std::exception& error) {
    log_verbose(fmt::format("a file of the cache was not read: {}", error.what()));
    return std::nullopt;
  }
}

void write_cached(const std::string& folder, std::string_view key, std::string_view value) {
  // Temporary files have the process id in their names but no thread id, so one thread writes at a
  // time.
  static std::mutex one_writer;
  try {
    if (folder.empty()) throw UserError("cache folder", "is unknown", "set NACRE_CACHE to a folder");
    std::string text;
    text.reserve(kHeader + key.size() + value.size() + kNumber);
    text += kMagic;
    append_number(text, key.size());
    append_number(text, value.size());
    text += key;
    text += value;
    append_number(text, hash_text(text, 0));
    const std::lock_guard lock(one_writer);
    fs::create_directories(folder);
    write_file(file_of(folder, key), text);
  } catch (const std::exception& error) {
    log_warning(fmt::format("a file of the cache was not written: {}", error.what()));
  }
}

void drop_cached(const std::string& folder, std::string_view key) {
  if (folder.empty()) return;
  std::error_code ignored;
  fs::remove(file_of(folder, key), ignored);
}

}  // namespace nacre
