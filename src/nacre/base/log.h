// Messages to people while the program works. They all go to stderr; stdout is for results.
#pragma once

#include <cstdint>
#include <string>

namespace nacre {

enum class LogLevel { quiet, info, verbose };
void set_log_level(LogLevel level);

void log_info(const std::string& line);
void log_verbose(const std::string& line);
// always shown, and kept for warnings_so_far() (warnings.h)
void log_warning(const std::string& line);

// Shows a progress bar on a terminal, a plain line every few seconds in a pipe, and nothing if the
// log level is quiet.
class Progress {
 public:
  explicit Progress(std::string title, double total);
  ~Progress();  // finishes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(double done, const std::string& note = "");
  // Returns whether update() would print now. Callers whose note takes time to make ask this first.
  bool due() const;

 private:
  std::string title_;
  double total_;
  double last_print_ = 0;
  double started_;
  bool terminal_;
  bool printed_ = false;
};

// These functions write numbers as people read them: "1.20 GiB", "310.0 ms", "1,166,243".
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);
std::string human_count(int64_t count);

// Returns the seconds on a monotonic clock.
double now_seconds();

}  // namespace nacre
