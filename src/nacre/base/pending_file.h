// A file that appears under its name only when it is complete. Until commit() everything goes to a temporary file
// beside it, which is removed if anything fails before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nacre {

class PendingFile {
 public:
  explicit PendingFile(std::string path);  // throws UserError when the folder cannot be written to
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void append(const void* data, int64_t bytes);
  void append(std::string_view text) { append(text.data(), static_cast<int64_t>(text.size())); }
  void write_at(int64_t offset, const void* data, int64_t bytes);
  // Syncs, renames, syncs the folder. Throws RuntimeError when the disk refuses.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  int64_t end_ = 0;
  bool done_ = false;
};

// Makes a rename inside `folder` durable, where the file system can.
void sync_folder(const std::string& folder);

void write_file(const std::string& path, std::string_view bytes);  // a PendingFile in one call
std::string read_file(const std::string& path);                    // throws UserError

}  // namespace nacre
