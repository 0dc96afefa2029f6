#include "nacre/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/tensor/array.h"

namespace nacre {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

std::shared_ptr<void> map(const Descriptor& file, int64_t size, const std::string& path) {
  if (size == 0) return nullptr;
  const auto bytes = static_cast<size_t>(size);
  // NORESERVE: a private writable mapping larger than memory must not be refused; it is only ever read in practice.
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.fd, 0);
  if (p == MAP_FAILED) throw RuntimeError(path, std::string("cannot map the file: ") + std::strerror(errno));
  return {p, [bytes](void* q) { munmap(q, bytes); }};
}

}  // namespace

MappedFile::MappedFile(std::string name, std::shared_ptr<void> memory, int64_t size)
    : name_(std::move(name)),
      memory_(std::move(memory)),
      data_(static_cast<const std::byte*>(memory_.get())),
      size_(size) {}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // NONBLOCK: opening a pipe nobody writes to must not hang; it is refused below.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw UserError(path, "no such file", "check the path");
    throw UserError(path, std::string("cannot open: ") + std::strerror(errno));
  }
  struct stat status {};
  if (fstat(file.fd, &status) != 0) throw UserError(path, std::string("cannot open: ") + std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw UserError(path, "is a folder", "name a file inside it");
  if (!S_ISREG(status.st_mode)) throw UserError(path, "is not a regular file", "write it to a file first");
  const int64_t size = status.st_size;
  return std::shared_ptr<const MappedFile>(new MappedFile(path, map(file, size, path), size));
}

std::shared_ptr<const MappedFile> MappedFile::from_bytes(std::span<const std::byte> bytes, std::string name) {
  const auto size = static_cast<int64_t>(bytes.size());
  std::shared_ptr<void> copy = allocate_bytes(size);
  if (size > 0) std::memcpy(copy.get(), bytes.data(), bytes.size());
  return std::shared_ptr<const MappedFile>(new MappedFile(std::move(name), std::move(copy), size));
}

bool MappedFile::starts_with(std::string_view magic) const {
  return size_ >= static_cast<int64_t>(magic.size()) && std::memcmp(data_, magic.data(), magic.size()) == 0;
}

}  // namespace nacre
