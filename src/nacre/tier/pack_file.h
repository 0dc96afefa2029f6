// PackFile: makes a temporary file for packed rows. The file has no name, so it disappears when the
// process ends, even if the process is killed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nacre/tier/row_file.h"
#include "nacre/tier/row_reader.h"

namespace nacre {

class PackFile {
 public:
  // Throws a RuntimeError that names the folder if no file can be made there.
  explicit PackFile(const std::string& folder);
  ~PackFile();
  PackFile(const PackFile&) = delete;
  PackFile& operator=(const PackFile&) = delete;

  // Reserves disk space for the file. Throws a RuntimeError if there is not enough.
  void reserve(int64_t bytes);
  void write(int64_t offset, std::span<const char> bytes);
  void sync();
  // Returns the file, opened for reading. All rows must have been written before.
  std::shared_ptr<const RowFile> opened(const RowLayout& layout) const;

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::string folder_;
  int fd_ = -1;
};

// Holds the packed rows of a group of batches.
struct Pack {
  std::shared_ptr<const RowFile> file;
  std::vector<RowLayout> layouts;  // for each batch: where its rows lie, one after the other
  int64_t bytes = 0;
  ReadCounts read;  // what packing has read
};

// Reads the rows of `batches` (ascending in each batch) from `source`, in the order of the source,
// and writes them to a file in `folder`. Takes at most about `memory` bytes. Throws a ReadFailure
// if the source cannot be read, and another RuntimeError if the pack cannot be written.
Pack pack_rows(const RowFile& source, const std::vector<std::span<const RowFetch>>& batches, const std::string& folder,
               int64_t memory);

}  // namespace nacre
