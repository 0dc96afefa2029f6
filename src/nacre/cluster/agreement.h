// FailureAgreement: ranks in several processes agree on one report of a failure, although reports
// reach them at different times, and although ranks may be dead or stopped.
#pragma once

#include <optional>

#include "nacre/cluster/failure.h"

namespace nacre {

// One rank chooses a report for all ranks. Every rank collects reports in a vote. When the vote is
// settled, rank 0 chooses and tells the others. If no choice comes from rank 0, rank 1 chooses, and
// so on. The owner of this object guards it with a mutex.
class FailureAgreement {
 public:
  explicit FailureAgreement(int rank) : rank_(rank) {}

  // Adds a report that has reached this rank at the time `now` (now_seconds()).
  void add(const FailureReport& report, double now) { vote_.add(report, now); }
  // Adopts the choice of another rank, unless there is a choice already.
  void adopt(const FailureReport& choice);
  // Returns whether it is this rank's turn at the time `now` to choose a report for all ranks.
  bool due(double now) const;
  // Chooses, for all ranks, the report that the vote of this rank prefers. The caller tells the
  // other ranks.
  void choose() { choice_ = vote_.chosen(); }

  // Returns whether a rank is known to have failed.
  bool failed() const { return vote_.failed() || choice_; }
  const std::optional<FailureReport>& choice() const { return choice_; }

 private:
  int rank_;
  FailureVote vote_;
  std::optional<FailureReport> choice_;
};

}  // namespace nacre
