// Reads ZIP archives as far as .npz files need it: stored and deflated members, ZIP64. Nothing that
// the directory claims is trusted before it has been compared with the file: members must lie
// inside the file, must not overlap, and cannot inflate beyond their declared size, which itself is
// bounded by what deflate can reach.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/data/byte_stream.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc32 = 0;
  int64_t packed_size = 0;
  int64_t size = 0;
  int64_t header_offset = 0;
  int64_t data_offset = 0;
};

class ZipArchive {
 public:
  explicit ZipArchive(std::shared_ptr<const MappedFile> file);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  // Returns where the directory begins, for messages about missing members.
  int64_t directory_offset() const { return directory_offset_; }
  const ZipEntry* find(std::string_view name) const;
  // Returns the bytes of a member, which are checked against size and CRC-32 as they are read. The
  // stream borrows from file().
  std::unique_ptr<ByteStream> open(const ZipEntry& entry) const;
  const std::shared_ptr<const MappedFile>& file() const { return file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  int64_t directory_offset_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace nacre
