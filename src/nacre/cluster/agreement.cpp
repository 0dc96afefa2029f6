#include "nacre/cluster/agreement.h"

#include <algorithm>

namespace nacre {
namespace {

// A rank waits kTurn seconds for each lower rank to choose a report, kTurnOfFailed seconds for the
// lower rank that has failed, because that rank may choose nothing, and kLongestWait seconds at
// most.
constexpr double kTurn = 1.5;
constexpr double kTurnOfFailed = 0.5;
constexpr double kLongestWait = 6;

}  // namespace

void FailureAgreement::adopt(const FailureReport& choice) {
  if (!choice_) choice_ = choice;
}

bool FailureAgreement::due(double now) const {
  if (!vote_.failed() || choice_) return false;
  const bool failed_is_lower = vote_.chosen().rank < rank_;
  const double wait = failed_is_lower ? kTurn * (rank_ - 1) + kTurnOfFailed : kTurn * rank_;
  return now >= vote_.deadline() + std::min(wait, kLongestWait);
}

}  // namespace nacre
