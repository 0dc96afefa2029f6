// A file as a run of bytes. Regular files are mapped copy-on-write: tensors may point into the
// mapping and may even be written to, but the file itself never changes.
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
  // Maps the file at `path`. Throws UserError if it cannot be read or is not a regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  // Returns a MappedFile that holds a copy of these bytes instead of a mapping, so that readers of
  // files can read from memory. Messages show `name` where they would show the path.
  static std::shared_ptr<const MappedFile> from_bytes(std::span<const std::byte> bytes, std::string name);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() = default;

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
  int64_t size() const { return size_; }
  // Returns the owner of the bytes, which keeps them alive. It is for tensors, which need a pointer
  // that they could write through.
  const std::shared_ptr<void>& memory() const { return memory_; }
  bool starts_with(std::string_view magic) const;

 private:
  MappedFile(std::string name, std::shared_ptr<void> memory, int64_t size);

  std::string name_;
  std::shared_ptr<void> memory_;
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

// Installs a handler for files that another program cuts short while they are mapped: the program
// then ends with status 1 and a message that names the file. Without the handler, the system ends
// the program without a message (SIGBUS).
void guard_mapped_files();

}  // namespace nacre
