// RowFile: opens a file with rows of a table for reading past the page cache.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "nacre/base/error.h"
#include "nacre/tier/row_layout.h"

namespace nacre {

// ReadFailure: says that rows could not be read. It is thrown only while rows are read, so what was
// computed before is intact.
class ReadFailure : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

class RowFile {
 public:
  // Throws a UserError if the file cannot be opened or is shorter than its rows.
  // `name` stands for the path in messages, unless it is empty.
  RowFile(std::string path, const RowLayout& layout, const std::string& name = "");
  ~RowFile();
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  const std::string& path() const { return path_; }
  const RowLayout& layout() const { return layout_; }
  int descriptor() const { return fd_; }
  int64_t size() const { return size_; }
  // Returns whether reads go past the page cache. Not all file systems can do that.
  bool direct() const { return direct_; }
  // Throws a ReadFailure if the file has changed since it was opened.
  void require_unchanged() const;
  // Throws a ReadFailure that says why a read of `bytes` bytes failed: because of `error` (errno)
  // or, if `error` is 0, because the file has become shorter.
  [[noreturn]] void fail(int error) const;

 private:
  std::string path_;
  RowLayout layout_;
  int fd_ = -1;
  bool direct_ = false;
  int64_t size_ = 0;
  struct timespec changed_ {};
};

// Returns memory that starts at a multiple of the size of a page.
std::shared_ptr<char> page_memory(int64_t bytes);

}  // namespace nacre
