#include "nacre/base/trace.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <vector>

#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

struct Event {
  const char* category;
  const char* name;
  int64_t begin_ns;
  int64_t end_ns;
  int thread;
};

std::atomic<bool> g_enabled{false};
std::atomic<int> g_next_thread{0};
std::mutex g_mutex;
std::vector<Event> g_events;  // guarded by g_mutex
// Guarded by g_mutex; c_str() stays valid because a set never moves its elements.
std::set<std::string> g_names;
int64_t g_origin_ns = 0;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns `text` as it may stand between the quotes of a JSON string.
std::string escaped(const char* text) {
  std::string out;
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\') out += '\\';
    if (static_cast<unsigned char>(*text) >= 0x20) out += *text;
  }
  return out;
}

int thread_number() {
  thread_local const int number = g_next_thread++;
  return number;
}

}  // namespace

void trace_start() {
  const std::lock_guard lock(g_mutex);
  g_events.clear();
  g_events.reserve(1 << 16);
  g_origin_ns = now_ns();
  g_enabled = true;
}

bool trace_enabled() { return g_enabled.load(std::memory_order_relaxed); }

void trace_write(const std::string& path) {
  const std::lock_guard lock(g_mutex);
  std::string text("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  for (size_t i = 0; i < g_events.size(); ++i) {
    const Event& e = g_events[i];
    text += fmt::format(R"({{"ph":"X","pid":1,"tid":{},"cat":"{}","name":"{}","ts":{:.3f},"dur":{:.3f}}}{})", e.thread,
                        escaped(e.category), escaped(e.name), static_cast<double>(e.begin_ns - g_origin_ns) / 1e3,
                        static_cast<double>(e.end_ns - e.begin_ns) / 1e3, i + 1 < g_events.size() ? ",\n" : "\n");
  }
  write_file(path, text + "]}\n");
}

TraceSpan::TraceSpan(const char* category, const char* name)
    : category_(category), name_(name), begin_ns_(trace_enabled() ? now_ns() : 0) {}

TraceSpan::~TraceSpan() {
  if (begin_ns_ == 0 || !trace_enabled()) return;
  const std::lock_guard lock(g_mutex);
  g_events.push_back({category_, name_, begin_ns_, now_ns(), thread_number()});
}

const char* trace_name(const std::string& name) {
  const std::lock_guard lock(g_mutex);
  return g_names.insert(name).first->c_str();
}

}  // namespace nacre
