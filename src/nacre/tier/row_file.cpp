#include "nacre/tier/row_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "nacre/base/log.h"

namespace nacre {

RowFile::RowFile(std::string path, const RowLayout& layout, const std::string& name)
    : path_(std::move(path)), layout_(layout) {
  fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  direct_ = fd_ >= 0;
  if (fd_ < 0 && errno == EINVAL) fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (!name.empty()) path_ = name;
  if (fd_ < 0) throw UserError(path_, std::string("cannot open: ") + std::strerror(errno));
  struct stat status {};
  if (fstat(fd_, &status) != 0) {
    const int error = errno;
    close(fd_);
    throw UserError(path_, std::string("cannot open: ") + std::strerror(error));
  }
  size_ = status.st_size;
  changed_ = status.st_mtim;
  if (size_ < layout.end(layout.rows - 1)) {
    close(fd_);
    throw UserError(path_, "is shorter than its features", "convert the data set again");
  }
}

RowFile::~RowFile() { close(fd_); }

void RowFile::require_unchanged() const {
  struct stat status {};
  if (fstat(fd_, &status) != 0) fail(errno);
  if (status.st_size < size_) fail(0);
  if (status.st_size != size_ || status.st_mtim.tv_sec != changed_.tv_sec || status.st_mtim.tv_nsec != changed_.tv_nsec)
    throw ReadFailure(path_, "was changed by another program while features were read from it");
}

void RowFile::fail(int error) const {
  if (error == 0) throw ReadFailure(path_, "was cut short by another program while features were read from it");
  throw ReadFailure(path_, std::string("features cannot be read: ") + std::strerror(error));
}

std::shared_ptr<char> page_memory(int64_t bytes) {
  const auto size = static_cast<size_t>(std::max<int64_t>(1, bytes));
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw RuntimeError("memory", "cannot allocate " + human_bytes(static_cast<double>(bytes)) + " for feature rows");
  return {static_cast<char*>(memory), [size](char* p) { munmap(p, size); }};
}

}  // namespace nacre
