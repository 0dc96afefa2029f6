#include "nacre/cluster/failure.h"

#include <algorithm>
#include <tuple>

#include "nacre/base/log.h"

namespace nacre {
namespace {

constexpr double kSettleClear = 0.25;
constexpr double kSettleVague = 1.0;

auto preference(const FailureReport& report) { return std::make_tuple(report.vague, report.rank, report.teller); }

}  // namespace

RankFailure::RankFailure(const FailureReport& report)
    : RuntimeError("rank " + std::to_string(report.rank), report.reason), rank_(report.rank), teller_(report.teller) {}

void FailureVote::add(const FailureReport& report, double now) {
  if (settled(now)) return;
  const double deadline = now + (report.vague ? kSettleVague : kSettleClear);
  deadline_ = failed() ? std::min(deadline_, deadline) : deadline;
  if (!failed() || preference(report) < preference(*best_)) best_ = report;
}

Patience::Patience(double limit) : limit_(limit), last_(now_seconds()) {}

bool Patience::tick() {
  const double now = now_seconds();
  waited_ += std::min(now - last_, kLongestStep);
  last_ = now;
  return limit_ > 0 && waited_ > limit_;
}

void Patience::restart() {
  waited_ = 0;
  last_ = now_seconds();
}

}  // namespace nacre
