// Spans of a timeline, written as Chrome trace events, which Perfetto and chrome://tracing open.
// Tracing is off until trace_start(); a span costs one branch then.
#pragma once

#include <cstdint>
#include <string>

namespace nacre {

void trace_start();
bool trace_enabled();
// Writes everything recorded so far as JSON. The file appears only when it is complete.
void trace_write(const std::string& path);

// Records the time from construction to destruction under `name` in `category` on the calling
// thread's track. Both texts must outlive the trace: use string literals, or names kept by
// trace_name().
class TraceSpan {
 public:
  TraceSpan(const char* category, const char* name);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  const char* category_;
  const char* name_;
  int64_t begin_ns_;
};

// Keeps a copy of `name` for the rest of the program and returns it.
const char* trace_name(const std::string& name);

}  // namespace nacre
