// MetricsFile: writes metrics.jsonl, which has a line with a JSON object for every epoch of a run.
#pragma once

#include <cstdint>
#include <string>

namespace nacre {

class MetricsFile {
 public:
  // With an empty path nothing is written. A run that is resumed after `resumed_epoch` epochs drops
  // the lines of the epochs that it will run again, and adds `unwritten`, the line that a failed
  // write kept out of the file, unless the file has a line of that epoch. Throws a UserError if the
  // file cannot be written.
  MetricsFile(const std::string& path, int resumed_epoch, const std::string& unwritten = "");
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  bool writes() const { return fd_ >= 0; }
  // Adds a line. Throws a RuntimeError if the file cannot take the whole line; the file then ends
  // with the line before it.
  void add(const std::string& line);
  // Returns when the lines so far are on the disk. Throws a RuntimeError if the system cannot write
  // them there.
  void sync();

 private:
  std::string path_;
  int fd_ = -1;
  bool regular_ = true;
};

}  // namespace nacre
