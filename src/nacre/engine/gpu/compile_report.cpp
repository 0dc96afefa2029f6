#include "nacre/engine/gpu/compile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace nacre {
namespace {

// Seconds after which people who wait are told what they wait for. Images from the cache on disk
// are ready sooner.
constexpr double kPatience = 0.4;

std::string kernels(int64_t count) { return fmt::format("{} kernel{}", count, count == 1 ? "" : "s"); }

}  // namespace

CompileReport& CompileReport::shared() {
  static CompileReport report;
  return report;
}

void CompileReport::add() {
  const std::lock_guard lock(mutex_);
  if (asked_ == done_) {
    asked_ = done_ = 0;
    since_ = now_seconds();
  }
  ++asked_;
}

void CompileReport::done() noexcept {
  const std::lock_guard lock(mutex_);
  ++done_;
  end_if_all_done();
}

void CompileReport::drop(int64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  asked_ -= count;
  end_if_all_done();
}

void CompileReport::waiting(const std::string& device) {
  const std::lock_guard lock(mutex_);
  if (asked_ == done_ || now_seconds() - since_ < kPatience) return;
  if (!progress_) {
    log_info(fmt::format("compiling {} for {}; later runs use them again", kernels(asked_), device));
    progress_ = std::make_unique<Progress>("compiling kernels", 1);
  }
  show();
}

// Shows the progress. The caller holds the mutex, and there is a progress line.
void CompileReport::show() {
  progress_->update(static_cast<double>(done_) / static_cast<double>(std::max<int64_t>(1, asked_)),
                    fmt::format("{}/{}", done_, asked_));
}

// Ends the progress line if nothing is left to compile. The caller holds the mutex. If there is no
// memory for the text, the line ends without its last numbers.
void CompileReport::end_if_all_done() noexcept {
  if (!progress_ || done_ != asked_) return;
  try {
    show();
    progress_.reset();
    log_info(fmt::format("compiled {} in {}", kernels(done_), human_seconds(now_seconds() - since_)));
  } catch (const std::exception&) {
    progress_.reset();
  }
}

}  // namespace nacre
