// Carries what the library tells people while it works. The library itself prints nothing: every
// message goes to the sink that the application has installed, and is dropped if there is none.
// Warnings are kept in any case (warnings.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace nacre {

enum class LogKind { info, verbose, warning };

// How far a piece of work has come.
struct ProgressState {
  std::string title;   // what is being done, for example "training"
  std::string note;    // figures beside it, for example "epoch 3/200  loss 1.2"
  double share = 0;    // share of the work that is done, from 0 to 1
  double seconds = 0;  // since the work began
  bool first = true;   // whether nothing of this work was shown before
};

// Receives the messages of the library. Its functions may be called from several threads at once.
// Messages may contain names from files unchanged, so a sink that writes to a terminal passes them
// through printable().
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void line(LogKind kind, const std::string& text) = 0;
  // Returns the least number of seconds between two calls of progress(). The default is infinite:
  // progress() is never called then.
  virtual double progress_interval() const;
  // Shows how far a piece of work has come. Returns whether anything was shown. If it was,
  // end_progress() is called when the work ends.
  virtual bool progress(const ProgressState& state);
  virtual void end_progress() {}
};

// Installs a sink for the whole process. With nullptr, messages are dropped, as before the first
// call.
void set_log_sink(std::shared_ptr<LogSink> sink);

void log_info(const std::string& line);
void log_verbose(const std::string& line);
void log_warning(const std::string& line);

// Tells a sink how far a piece of work has come. The sink is the one that was installed when the
// Progress was made.
class Progress {
 public:
  explicit Progress(std::string title, double total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(double done, const std::string& note = "");
  // Returns whether update() would tell the sink something now; a caller whose note is costly to
  // make asks first.
  bool due() const;

 private:
  std::shared_ptr<LogSink> sink_;  // may be null
  std::string title_;
  double total_;
  double last_shown_ = 0;
  double started_;
  bool shown_ = false;
};

// These functions return numbers as people read them: "1.20 GiB", "310.0 ms", "1,166,243".
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);
std::string human_count(int64_t count);

// Returns the seconds on a monotonic clock.
double now_seconds();

}  // namespace nacre
