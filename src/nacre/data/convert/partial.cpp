#include "nacre/data/convert/partial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/data/checksum.h"

namespace nacre {
namespace {

constexpr int64_t kWriteBack = 64 << 20;

std::string sealed(std::string_view entry) {
  return fmt::format("{:016x} {}\n", checksum64(entry.data(), static_cast<int64_t>(entry.size())), entry);
}

// Returns the whole, undamaged entries at the beginning of `text`. `bytes` becomes the position of
// their end.
std::vector<std::string> unsealed(const std::string& text, size_t& bytes) {
  std::vector<std::string> entries;
  for (bytes = 0; bytes < text.size();) {
    const size_t end = text.find('\n', bytes);
    if (end == std::string::npos || end < bytes + 17) break;
    std::string entry = text.substr(bytes + 17, end - bytes - 17);
    if (text.compare(bytes, end + 1 - bytes, sealed(entry)) != 0) break;
    entries.push_back(std::move(entry));
    bytes = end + 1;
  }
  return entries;
}

int open_file(const std::string& path) { return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); }

}  // namespace

PartialFolder::PartialFolder(const std::string& target, const std::string& identity)
    : target_(end_of_links(target)), folder_(target_ + ".partial") {
  if (writes_straight(target)) {
    throw UserError(target, "is not a regular file, but this output is not written in order and needs one",
                    "write it to a file");
  }
  if (mkdir(folder_.c_str(), 0777) != 0 && errno != EEXIST) {
    throw UserError(target_, std::string("cannot be written: ") + std::strerror(errno),
                    "choose a folder you can write to");
  }
  journal_ = open_file(path("journal"));
  if (journal_ < 0) {
    throw UserError(folder_, std::string("cannot be written: ") + std::strerror(errno),
                    "remove it, or write elsewhere");
  }
  if (flock(journal_, LOCK_EX | LOCK_NB) != 0) {
    throw UserError(target_, "another process is writing it", "wait for its end, or write to another file");
  }
  read_journal(identity);
  data_ = open_file(path("data"));
  if (data_ < 0) fail("cannot be written");
}

PartialFolder::~PartialFolder() {
  for (const int fd : {journal_, data_}) {
    if (fd >= 0) close(fd);
  }
}

void PartialFolder::fail(const char* what) const {
  throw RuntimeError(folder_,
                     std::string(what) + ": " + std::strerror(errno) + "; the same command will continue from here");
}

void PartialFolder::read_journal(const std::string& identity) {
  size_t bytes = 0;
  earlier_ = unsealed(read_file(path("journal")), bytes);
  if (!earlier_.empty() && earlier_[0] == identity) {
    earlier_.erase(earlier_.begin());
    if (ftruncate(journal_, static_cast<off_t>(bytes)) != 0) fail("cannot write");
    if (!earlier_.empty()) log_info("continuing the conversion that was begun in " + folder_);
    return;
  }
  if (!earlier_.empty())
    log_info(folder_ + " was begun with another source or other options: starting again from the beginning");
  earlier_.clear();
  clear();
  if (ftruncate(journal_, 0) != 0) fail("cannot write");
  note(identity);
}

// Removes everything but the journal, which is locked.
void PartialFolder::clear() {
  std::error_code error;
  for (const char* name : {"data", "runs", "weight", "type"}) std::filesystem::remove(path(name), error);
}

void PartialFolder::note(std::string_view entry) {
  NACRE_CHECK(entry.find('\n') == std::string_view::npos, "a journal entry has several lines");
  const std::string line = sealed(entry);
  lseek(journal_, 0, SEEK_END);
  if (write(journal_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) fail("cannot write");
}

void PartialFolder::write_at(int64_t offset, const void* data, int64_t bytes) {
  const auto* p = static_cast<const char*>(data);
  const int64_t end = offset + bytes;
  while (bytes > 0) {
    const ssize_t n = pwrite(data_, p, static_cast<size_t>(std::min(bytes, kWriteBack)), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot write");
    p += n;
    offset += n;
    bytes -= n;
  }
  // The system begins to write the data to disk while the conversion computes, so that the sync at
  // the end is short.
  unsynced_end_ = std::max(unsynced_end_, end);
  if (unsynced_end_ - unsynced_begin_ >= kWriteBack) {
    sync_file_range(data_, unsynced_begin_, unsynced_end_ - unsynced_begin_, SYNC_FILE_RANGE_WRITE);
    unsynced_begin_ = unsynced_end_;
  }
}

bool PartialFolder::read_at(int64_t offset, void* to, int64_t bytes) const {
  auto* p = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = pread(data_, p, static_cast<size_t>(std::min(bytes, kWriteBack)), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read");
    if (n == 0) return false;
    p += n;
    offset += n;
    bytes -= n;
  }
  return true;
}

void PartialFolder::commit(int64_t bytes) {
  if (ftruncate(data_, bytes) != 0 || fsync(data_) != 0) fail("cannot sync");
  if (rename(path("data").c_str(), target_.c_str()) != 0) fail("cannot rename");
  discard();
  const auto parent = std::filesystem::path(target_).parent_path();
  sync_folder(parent.empty() ? "." : parent.string());
}

void PartialFolder::discard() {
  std::error_code error;
  clear();
  std::filesystem::remove(path("journal"), error);
  std::filesystem::remove(folder_, error);  // fails if the folder holds anything else
}

}  // namespace nacre
