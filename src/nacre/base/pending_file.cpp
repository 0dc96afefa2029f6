#include "nacre/base/pending_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {

PendingFile::PendingFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".tmp." + std::to_string(getpid())) {
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw UserError(path_, std::string("cannot be written: ") + std::strerror(errno),
                    "choose a folder you can write to");
  }
}

PendingFile::~PendingFile() {
  if (fd_ >= 0) close(fd_);
  if (!done_) unlink(temporary_.c_str());
}

void PendingFile::fail(const char* what) const {
  throw RuntimeError(path_, std::string(what) + ": " + std::strerror(errno));
}

void PendingFile::append(const void* data, int64_t bytes) { write_at(end_, data, bytes); }

void PendingFile::write_at(int64_t offset, const void* data, int64_t bytes) {
  constexpr int64_t most_at_once = 64 << 20;
  const auto* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = pwrite(fd_, p, static_cast<size_t>(std::min(bytes, most_at_once)), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot write");
    p += n;
    offset += n;
    bytes -= n;
  }
  end_ = std::max(end_, offset);
}

void PendingFile::commit() {
  if (fsync(fd_) != 0) fail("cannot sync");
  if (close(std::exchange(fd_, -1)) != 0) fail("cannot close");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename");
  done_ = true;
  const auto folder = std::filesystem::path(path_).parent_path();
  sync_folder(folder.empty() ? "." : folder.string());
}

void sync_folder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);  // some file systems cannot; the data itself is safe by now
  close(fd);
}

void write_file(const std::string& path, std::string_view bytes) {
  PendingFile file(path);
  file.append(bytes);
  file.commit();
}

std::string read_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw UserError(path, "is a folder where a file is needed");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(path, std::string("cannot be read: ") + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) throw RuntimeError(path, "cannot be read to the end");
  return std::move(text).str();
}

}  // namespace nacre
