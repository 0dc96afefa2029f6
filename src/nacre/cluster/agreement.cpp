#include "nacre/cluster/agreement.h"

#include <algorithm>

namespace nacre {
namespace {

// Seconds that a rank waits for each lower rank to choose. A lower rank may be the one that failed,
// and then it chooses nothing.
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
