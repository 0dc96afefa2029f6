// The folder DST.partial of a conversion in progress. It holds the file that will become DST,
// scratch files, and a journal of what is finished, from which a later process continues. An entry
// of the journal is a line with a checksum and a text. Lines after a torn or damaged line do not
// count. The data that an entry speaks of has a checksum in the entry, so nothing needs to be
// synced before the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nacre {

class PartialFolder {
 public:
  // Opens or makes the folder beside `target`. Entries of an earlier process count if that process
  // had the same `identity`; if not, the folder is emptied and the user is told. Throws UserError
  // if the folder cannot be written or is in use.
  PartialFolder(const std::string& target, const std::string& identity);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  // Returns the entries that an earlier process made.
  const std::vector<std::string>& earlier() const { return earlier_; }
  // Adds an entry of one line to the journal.
  void note(std::string_view entry);
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  // Writes into the file that will become DST.
  void write_at(int64_t offset, const void* data, int64_t bytes);
  // Reads from the file that will become DST. Returns false if the file is too short.
  bool read_at(int64_t offset, void* to, int64_t bytes) const;
  // Sets the length of the file that will become DST, gives it that name durably, and removes the
  // folder.
  void commit(int64_t bytes);
  void discard();

 private:
  void read_journal(const std::string& identity);
  void clear();
  [[noreturn]] void fail(const char* what) const;

  std::string target_;
  std::string folder_;
  int journal_ = -1;
  int data_ = -1;
  int64_t unsynced_begin_ = 0;  // range of bytes that the system has not been told to write
  int64_t unsynced_end_ = 0;
  std::vector<std::string> earlier_;
};

}  // namespace nacre
