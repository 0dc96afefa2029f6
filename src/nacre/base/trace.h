// Spans of a timeline, written as Chrome trace events, which Perfetto and chrome://tracing open.
// Tracing is off until trace_start(); while it is off, a span costs one branch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace nacre {

// Begins a timeline and forgets the last one. If `file` is given, spans are written to a temporary
// file beside it as they come, and at most 16,384 are held in memory; otherwise all are held until
// trace_write().
void trace_start(const std::string& file = "");
bool trace_enabled();
// Writes the timeline as JSON to `path`, which must be the `file` of trace_start() if one was
// given. The file appears only when it is complete. If spans could not be recorded, throws the
// reason here.
void trace_write(const std::string& path);
// Ends the timeline: nothing is recorded any more, and spans that were not written are dropped. A
// process that goes on after a traced run calls this, because the timeline would grow otherwise.
void trace_end();

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

// Records numbers at this moment, which viewers draw as curves under `name`. The texts must outlive
// the trace.
struct TraceNumber {
  const char* name;
  int64_t value;
};
void trace_numbers(const char* name, std::initializer_list<TraceNumber> numbers);

// Keeps a copy of `name` for the rest of the program and returns it.
const char* trace_name(const std::string& name);

}  // namespace nacre
