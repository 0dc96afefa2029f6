// LogCapture: collects the messages of the library while an object of this class lives.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "nacre/base/log.h"

namespace nacre::test {

class LogCapture {
 public:
  LogCapture() { set_log_sink(sink_); }
  ~LogCapture() { set_log_sink(nullptr); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  // Returns all messages, one line for each. Verbose messages begin with "verbose: " and warnings
  // with "warning: ".
  std::string text() const {
    const std::lock_guard lock(sink_->mutex);
    return sink_->text;
  }
  // Returns the messages since the last call of take(), without verbose messages.
  std::string take() {
    const std::lock_guard lock(sink_->mutex);
    return std::exchange(sink_->brief, "");
  }

 private:
  struct Sink : LogSink {
    void line(LogKind kind, const std::string& line) override {
      const std::lock_guard lock(mutex);
      const char* mark = kind == LogKind::warning ? "warning: " : kind == LogKind::verbose ? "verbose: " : "";
      text += mark + line + "\n";
      if (kind != LogKind::verbose) brief += mark + line + "\n";
    }
    std::mutex mutex;
    std::string text;
    std::string brief;
  };
  std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
};

}  // namespace nacre::test
