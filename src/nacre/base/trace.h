// Timeline spans, written as Chrome trace events, which Perfetto and chrome://tracing open. Off unless started; a span
// costs one branch then.
#pragma once

#include <cstdint>
#include <string>

namespace nacre {

void trace_start();
bool trace_enabled();
// Writes everything recorded so far as JSON (to a temporary file, then renamed).
void trace_write(const std::string& path);

// Records [construction, destruction) under `name` in `category` on the calling thread's track.
// Both must outlive the trace (string literals, or names interned with trace_name).
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

// Keeps a copy of `name` alive for the rest of the program.
const char* trace_name(const std::string& name);

}  // namespace nacre
