// What the program tells people while it works. Everything goes to stderr; stdout belongs to results.
#pragma once

#include <cstdint>
#include <string>

namespace nacre {

enum class LogLevel { quiet, info, verbose };
void set_log_level(LogLevel level);

void log_info(const std::string& line);
void log_verbose(const std::string& line);
void log_warning(const std::string& line);  // always shown, and kept (warnings.h)

// A progress bar on a terminal, a plain line every few seconds in a pipe, nothing when quiet.
class Progress {
 public:
  explicit Progress(std::string title, double total);
  ~Progress();  // finishes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(double done, const std::string& note = "");
  // Whether update() would say something now: for notes that cost time to make.
  bool due() const;

 private:
  std::string title_;
  double total_;
  double last_print_ = 0;
  double started_;
  bool terminal_;
  bool printed_ = false;
};

// "1.2 GiB", "310.0 ms", "1,166,243": numbers as people read them.
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);
std::string human_count(int64_t count);

// Seconds on a monotonic clock.
double now_seconds();

}  // namespace nacre
