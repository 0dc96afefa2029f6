// A file that appears under its name only when it is complete. Until commit(), everything goes to a
// temporary file beside it, which is removed if anything fails before. If the path is a symbolic
// link, the file it points to is replaced and the link stays. A device or a pipe is never replaced:
// bytes go straight into it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nacre {

class PendingFile {
 public:
  explicit PendingFile(std::string path);  // Throws UserError if the folder cannot be written to.
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  // Throws UserError if a PendingFile of `path` could not be made. Leaves everything as it was and
  // opens no pipe.
  static void check(const std::string& path);

  void append(const void* data, int64_t bytes);
  void append(std::string_view text) { append(text.data(), static_cast<int64_t>(text.size())); }
  // Writes at a position of the file. A device or a pipe accepts only the position after the last
  // byte.
  void write_at(int64_t offset, const void* data, int64_t bytes);
  // Syncs the file, renames it, and syncs the folder. Throws RuntimeError if the disk refuses.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_;       // the path as the user gave it
  std::string target_;     // the file that is replaced; empty if bytes go straight into `path_`
  std::string temporary_;  // the temporary file; empty if bytes go straight into `path_`
  int fd_ = -1;
  int64_t end_ = 0;
  bool done_ = false;
};

// Returns the file that writing to `path` replaces: the end of a chain of symbolic links, which
// need not exist. Throws UserError if the links cannot be followed.
std::string end_of_links(const std::string& path);
// Returns whether output to `path` goes straight into what exists there: a device, a pipe, or the
// name of an open file in /proc.
bool writes_straight(const std::string& path);

// Removes the temporary files of all PendingFiles that are open. A signal handler may call this
// before the process ends.
void remove_pending_files() noexcept;

// Makes a rename inside `folder` durable if the file system can do so.
void sync_folder(const std::string& folder);

// Writes `bytes` to a PendingFile of `path` and commits it.
void write_file(const std::string& path, std::string_view bytes);
std::string read_file(const std::string& path);  // throws UserError if the file cannot be read

}  // namespace nacre
