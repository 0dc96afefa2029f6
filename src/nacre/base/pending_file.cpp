#include "nacre/base/pending_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "nacre/base/error.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;

// The names of the temporary files that exist now, for remove_pending_files(). If all places are
// taken, further files are not listed.
std::array<std::atomic<const char*>, 64> g_temporaries;

void list_temporary(const char* name) {
  for (auto& place : g_temporaries) {
    const char* nothing = nullptr;
    if (place.compare_exchange_strong(nothing, name)) return;
  }
}

void unlist_temporary(const char* name) {
  for (auto& place : g_temporaries) {
    const char* expected = name;
    if (place.compare_exchange_strong(expected, nullptr)) return;
  }
}

std::string temporary_of(const std::string& target) { return target + ".tmp." + std::to_string(getpid()); }

[[noreturn]] void refuse(const std::string& path) {
  throw UserError(path, std::string("cannot be written: ") + std::strerror(errno), "choose a folder you can write to");
}

int open_temporary(const std::string& path, const std::string& temporary) {
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) refuse(path);
  return fd;
}

}  // namespace

std::string end_of_links(const std::string& path) {
  constexpr int most_links = 40;  // the limit of the Linux kernel
  std::string at = path;
  for (int i = 0; i < most_links; ++i) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(at, error))) return at;
    const fs::path next = fs::read_symlink(at, error);
    if (error) throw UserError(path, "cannot be written: " + error.message());
    at = (fs::path(at).parent_path() / next).string();
  }
  throw UserError(path, "is a symbolic link that leads back to itself", "remove it, or choose another file");
}

bool writes_straight(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error || !fs::exists(status) || fs::is_directory(status)) return false;
  if (!fs::is_regular_file(status)) return true;
  // A path such as /dev/stdout leads to a link in /proc. The link stands for a file that is already
  // open, and the name that it gives may no longer exist.
  const fs::path folder =
      fs::canonical(fs::path(path).parent_path().empty() ? "." : fs::path(path).parent_path(), error);
  std::string end = path;
  for (int i = 0; i < 3 && !end.starts_with("/proc/"); ++i) {
    const fs::path next = fs::read_symlink(end, error);
    if (error) break;
    end = (fs::path(end).parent_path() / next).lexically_normal().string();
  }
  return end.starts_with("/proc/") || folder.string().starts_with("/proc/");
}

PendingFile::PendingFile(std::string path) : path_(std::move(path)) {
  if (writes_straight(path_)) {
    fd_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (fd_ < 0) refuse(path_);
    return;
  }
  target_ = end_of_links(path_);
  temporary_ = temporary_of(target_);
  fd_ = open_temporary(path_, temporary_);
  list_temporary(temporary_.c_str());
  // The new file gets the permissions of the old one.
  struct stat old {};
  if (stat(target_.c_str(), &old) == 0 && S_ISREG(old.st_mode)) fchmod(fd_, old.st_mode & 0777);
}

PendingFile::~PendingFile() {
  if (fd_ >= 0) close(fd_);
  if (temporary_.empty()) return;
  if (!done_) unlink(temporary_.c_str());
  unlist_temporary(temporary_.c_str());
}

void PendingFile::check(const std::string& path) {
  if (writes_straight(path)) {
    if (access(path.c_str(), W_OK) != 0) refuse(path);
    return;
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw UserError(path, "is a folder", "name a file");
  const std::string temporary = temporary_of(end_of_links(path));
  close(open_temporary(path, temporary));
  unlink(temporary.c_str());
}

void PendingFile::fail(const char* what) const {
  throw RuntimeError(path_, std::string(what) + ": " + std::strerror(errno));
}

void PendingFile::append(const void* data, int64_t bytes) { write_at(end_, data, bytes); }

void PendingFile::write_at(int64_t offset, const void* data, int64_t bytes) {
  constexpr int64_t most_at_once = 64 << 20;
  const bool in_order = target_.empty();
  if (in_order && offset != end_) {
    throw UserError(path_, "is not a regular file, but this output is not written in order and needs one",
                    "write it to a file");
  }
  const auto* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const auto count = static_cast<size_t>(std::min(bytes, most_at_once));
    const ssize_t n = in_order ? write(fd_, p, count) : pwrite(fd_, p, count, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot write");
    p += n;
    offset += n;
    bytes -= n;
  }
  end_ = std::max(end_, offset);
}

void PendingFile::commit() {
  if (target_.empty()) {
    if (close(std::exchange(fd_, -1)) != 0) fail("cannot close");
    return;
  }
  if (fsync(fd_) != 0) fail("cannot sync");
  if (close(std::exchange(fd_, -1)) != 0) fail("cannot close");
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot rename");
  done_ = true;
  const auto folder = fs::path(target_).parent_path();
  sync_folder(folder.empty() ? "." : folder.string());
}

void remove_pending_files() noexcept {
  for (auto& place : g_temporaries) {
    if (const char* name = place.load()) unlink(name);
  }
}

void sync_folder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);  // some file systems cannot sync a folder; the data is safe by now
  close(fd);
}

void write_file(const std::string& path, std::string_view bytes) {
  PendingFile file(path);
  file.append(bytes);
  file.commit();
}

std::string read_file(const std::string& path) {
  if (std::error_code ignored; fs::is_directory(path, ignored))
    throw UserError(path, "is a folder where a file is needed");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(path, std::string("cannot be read: ") + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) throw RuntimeError(path, "cannot be read to the end");
  return std::move(text).str();
}

}  // namespace nacre
