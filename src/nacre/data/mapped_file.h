// A file as a run of bytes. Regular files are mapped, copy-on-write: tensors may point into the mapping and even be
// written to, the file itself never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace nacre {

class MappedFile {
 public:
  // Throws UserError when the path cannot be read or is not a regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // The same interface over a copy of bytes in memory; `name` stands for the path in messages.
  static std::shared_ptr<const MappedFile> from_bytes(std::span<const std::byte> bytes, std::string name);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() = default;

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
  int64_t size() const { return size_; }
  // Keeps the bytes alive; for tensors, which want a pointer they could write through.
  const std::shared_ptr<void>& memory() const { return memory_; }
  // True when the file begins with `magic`.
  bool starts_with(std::string_view magic) const;

 private:
  MappedFile(std::string name, std::shared_ptr<void> memory, int64_t size);

  std::string name_;
  std::shared_ptr<void> memory_;
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

// From now on a file that another program cuts short while it is mapped ends this program with a message that names the
// file, and with status 1. Without it the system ends the program without a word (SIGBUS).
void guard_mapped_files();

}  // namespace nacre
