// Defines the stages in which a batch is loaded, and the clock that measures them. Only files of
// this room include this header.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/base/trace.h"
#include "nacre/schedule/batch_loader.h"

namespace nacre {

enum class Stage : uint8_t { pick, insert, reindex, lookup, transfer, prepare };
constexpr size_t kStages = 6;

inline int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// StageClock: adds up the time that all threads spend in each stage. Any thread may use it.
class StageClock {
 public:
  explicit StageClock(int hops) {
    constexpr std::array<const char*, kStages> names = {"S pick ", "S insert ", "R ", "K ", "T ", "prepare"};
    for (size_t s = 0; s < kStages; ++s) {
      for (int h = 0; h < hops; ++h) {
        const std::string hop = static_cast<Stage>(s) == Stage::prepare ? "" : std::to_string(h);
        names_[s].push_back(trace_name(names[s] + hop));
      }
    }
  }
  const char* name(Stage stage, int hop) const { return names_[static_cast<size_t>(stage)][hop]; }
  void add(Stage stage, int64_t ns) { ns_[static_cast<size_t>(stage)].fetch_add(ns, std::memory_order_relaxed); }
  // Counts a batch that was drawn. `second` says that a second sampler
  // (Sampler::make_second_sampler()) has drawn it.
  void add_drawn(bool second) { drawn_[second ? 1 : 0].fetch_add(1, std::memory_order_relaxed); }
  void add_waited(int64_t ns) { waited_.fetch_add(ns, std::memory_order_relaxed); }
  void add_waited_for_rows(int64_t ns) { waited_for_rows_.fetch_add(ns, std::memory_order_relaxed); }

  LoaderTimes times() const {
    const auto seconds = [&](Stage s) {
      return static_cast<double>(ns_[static_cast<size_t>(s)].load(std::memory_order_relaxed)) * 1e-9;
    };
    return {seconds(Stage::pick),
            seconds(Stage::insert),
            seconds(Stage::reindex),
            seconds(Stage::lookup),
            seconds(Stage::transfer),
            seconds(Stage::prepare),
            static_cast<double>(waited_.load(std::memory_order_relaxed)) * 1e-9,
            static_cast<double>(waited_for_rows_.load(std::memory_order_relaxed)) * 1e-9,
            0,
            drawn_[0].load(std::memory_order_relaxed),
            drawn_[1].load(std::memory_order_relaxed)};
  }

 private:
  std::array<std::vector<const char*>, kStages> names_;
  std::array<std::atomic<int64_t>, kStages> ns_{};
  std::atomic<int64_t> waited_{0};
  std::atomic<int64_t> waited_for_rows_{0};
  std::array<std::atomic<int64_t>, 2> drawn_{};
};

// StageSpan: counts the time from here to the end of the scope for a stage, in the clock and in the
// trace.
class StageSpan {
 public:
  StageSpan(StageClock& clock, Stage stage, int hop)
      : clock_(clock), stage_(stage), begin_(steady_ns()), span_("batch", clock.name(stage, hop)) {}
  ~StageSpan() { clock_.add(stage_, steady_ns() - begin_); }
  StageSpan(const StageSpan&) = delete;
  StageSpan& operator=(const StageSpan&) = delete;

 private:
  StageClock& clock_;
  Stage stage_;
  int64_t begin_;
  TraceSpan span_;
};

}  // namespace nacre
