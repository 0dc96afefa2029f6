#include "nacre/base/trace.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

// A span of time or, if `numbers` is not empty, the moment at which these numbers were recorded.
struct Event {
  const char* category;
  const char* name;
  int64_t begin_ns;
  int64_t end_ns;
  int thread;
  std::vector<TraceNumber> numbers;
};

// The most spans that are held in memory if there is a file that they can be written to.
constexpr size_t kHeld = 1 << 14;

std::atomic<bool> g_enabled{false};
std::atomic<int> g_next_thread{0};
std::mutex g_mutex;
// g_mutex guards all variables below.
std::vector<Event> g_events;
std::set<std::string> g_names;  // c_str() stays valid because a set never moves its elements
int64_t g_origin_ns = 0;
// The file that spans are written to as they come, or an empty text if there is none.
std::string g_path;
std::unique_ptr<PendingFile> g_file;  // opened when more than kHeld spans have come
std::exception_ptr g_failure;         // why spans could not be recorded

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

std::string numbers_of(const Event& e) {
  std::string list;
  for (const TraceNumber& n : e.numbers)
    list += fmt::format(R"({}"{}":{})", list.empty() ? "" : ",", escaped(n.name), n.value);
  return fmt::format(R"({{"ph":"C","pid":1,"name":"{}","ts":{:.3f},"args":{{{}}}}})", escaped(e.name),
                     static_cast<double>(e.begin_ns - g_origin_ns) / 1e3, list);
}

std::string text_of(const Event& e) {
  if (!e.numbers.empty()) return numbers_of(e);
  return fmt::format(R"({{"ph":"X","pid":1,"tid":{},"cat":"{}","name":"{}","ts":{:.3f},"dur":{:.3f}}})", e.thread,
                     escaped(e.category), escaped(e.name), static_cast<double>(e.begin_ns - g_origin_ns) / 1e3,
                     static_cast<double>(e.end_ns - e.begin_ns) / 1e3);
}

// Appends the spans that are held to the file. `first` says whether the file has no span yet.
void append_events(PendingFile& file, bool& first) {
  constexpr size_t kPiece = 1 << 16;
  std::string text;
  for (const Event& e : g_events) {
    text += (first ? "\n" : ",\n") + text_of(e);
    first = false;
    if (text.size() < kPiece) continue;
    file.append(text);
    text.clear();
  }
  file.append(text);
}

void begin_file(PendingFile& file) { file.append(R"({"displayTimeUnit":"ms","traceEvents":[)"); }

void make_room() {
  bool first = g_file == nullptr;
  if (first) {
    g_file = std::make_unique<PendingFile>(g_path);
    begin_file(*g_file);
  }
  append_events(*g_file, first);
  g_events.clear();
}

// Never throws, because spans end in destructors: an error is kept, and trace_write() throws it.
void keep_event(Event event) {
  const std::lock_guard lock(g_mutex);
  if (g_failure || !g_enabled) return;
  try {
    if (!g_path.empty() && g_events.size() == kHeld) make_room();
    g_events.push_back(std::move(event));
  } catch (...) {
    g_failure = std::current_exception();
  }
}

}  // namespace

void trace_start(const std::string& file) {
  const std::lock_guard lock(g_mutex);
  g_events.clear();
  g_events.reserve(kHeld);
  g_file.reset();
  g_failure = nullptr;
  g_path = file;
  g_origin_ns = now_ns();
  g_enabled = true;
}

bool trace_enabled() { return g_enabled.load(std::memory_order_relaxed); }

void trace_write(const std::string& path) {
  const std::lock_guard lock(g_mutex);
  if (g_failure) std::rethrow_exception(g_failure);
  bool first = g_file == nullptr;
  std::unique_ptr<PendingFile> file = std::move(g_file);
  if (first) {
    file = std::make_unique<PendingFile>(path);
    begin_file(*file);
  }
  append_events(*file, first);
  file->append("\n]}\n");
  file->commit();
}

void trace_end() {
  const std::lock_guard lock(g_mutex);
  g_enabled = false;
  g_events = {};
  g_file.reset();
  g_failure = nullptr;
  g_path.clear();
}

TraceSpan::TraceSpan(const char* category, const char* name)
    : category_(category), name_(name), begin_ns_(trace_enabled() ? now_ns() : 0) {}

TraceSpan::~TraceSpan() {
  if (begin_ns_ == 0 || !trace_enabled()) return;
  keep_event({category_, name_, begin_ns_, now_ns(), thread_number(), {}});
}

void trace_numbers(const char* name, std::initializer_list<TraceNumber> numbers) {
  if (!trace_enabled()) return;
  const int64_t now = now_ns();
  keep_event({"", name, now, now, thread_number(), numbers});
}

const char* trace_name(const std::string& name) {
  const std::lock_guard lock(g_mutex);
  return g_names.insert(name).first->c_str();
}

}  // namespace nacre
