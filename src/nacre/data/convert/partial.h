// The folder DST.partial of a conversion under way: the file that will become DST, scratch files, and a journal of what
// is finished, by which a later process goes on. Entries are lines of a checksum and text; whatever follows a torn or
// damaged line does not count. What an entry speaks of is checked by its own checksum, so nothing needs to be synced
// before the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nacre {

class PartialFolder {
 public:
  // Opens or makes the folder beside `target`. Entries of an earlier process count when it had the same `identity`;
  // otherwise the folder is emptied, and the user told. Throws UserError when it cannot be written, or is in use.
  PartialFolder(const std::string& target, const std::string& identity);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::vector<std::string>& earlier() const { return earlier_; }
  // Makes an entry of one line.
  void note(std::string_view entry);
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  // The file to be.
  void write_at(int64_t offset, const void* data, int64_t bytes);
  // False when the file is shorter.
  bool read_at(int64_t offset, void* to, int64_t bytes) const;
  // Gives the file its length and name, durably, and removes the folder.
  void commit(int64_t bytes);
  // Removes the folder.
  void discard();

 private:
  void read_journal(const std::string& identity);
  void clear();
  [[noreturn]] void fail(const char* what) const;

  std::string target_;
  std::string folder_;
  int journal_ = -1;
  int data_ = -1;
  int64_t unsynced_begin_ = 0;  // bytes the system has not been told to write yet
  int64_t unsynced_end_ = 0;
  std::vector<std::string> earlier_;
};

}  // namespace nacre
