// A file that appears under its name only when it is complete. Until commit() everything goes to a temporary file
// beside it, which is removed if anything fails before. Of a symbolic link, the file it points to is replaced and the
// link stays. What is neither a file nor a folder (a device, a pipe) is never replaced: bytes go straight into it.
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

  // Throws UserError when a PendingFile could not be made of `path`; leaves everything as it was, opens no pipe.
  static void check(const std::string& path);

  void append(const void* data, int64_t bytes);
  void append(std::string_view text) { append(text.data(), static_cast<int64_t>(text.size())); }
  // Pipes take bytes only in order.
  void write_at(int64_t offset, const void* data, int64_t bytes);
  // Syncs, renames, syncs the folder. Throws RuntimeError when the disk refuses.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_;       // as the user named it
  std::string target_;     // what is replaced; empty where bytes go straight into `path_`
  std::string temporary_;  // likewise
  int fd_ = -1;
  int64_t end_ = 0;
  bool done_ = false;
};

// The file that writing to `path` replaces: what symbolic links lead to, which need not exist. Throws UserError.
std::string end_of_links(const std::string& path);
// Whether output to `path` is written straight into what stands there: a device, a pipe, an open file's name in /proc.
bool writes_straight(const std::string& path);

// Removes the temporary files of all PendingFiles that are open; a signal handler may call it before the process ends.
void remove_pending_files() noexcept;

// Makes a rename inside `folder` durable, where the file system can.
void sync_folder(const std::string& folder);

void write_file(const std::string& path, std::string_view bytes);  // a PendingFile in one call
std::string read_file(const std::string& path);                    // throws UserError

}  // namespace nacre
