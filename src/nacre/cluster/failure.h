// Defines how a run over several ranks fails: one rank is named as the one that failed, and all
// ranks throw the same message.
#pragma once

#include <optional>
#include <string>

#include "nacre/base/error.h"

namespace nacre {

// Holds what is known of a failure.
struct FailureReport {
  int rank = 0;    // the rank that failed
  int teller = 0;  // the rank that noticed; this rank prints the message
  // If true, `reason` is only what other ranks could see, for example that the rank has left. The
  // rank itself may still report the true reason.
  bool vague = false;
  std::string reason;
};

// RankFailure is thrown by every pending and later call of every rank after one rank has failed.
class RankFailure : public RuntimeError {
 public:
  explicit RankFailure(const FailureReport& report);
  int rank() const { return rank_; }
  // Returns the rank that prints the message. No other rank prints it, so people read it once.
  int teller() const { return teller_; }

 private:
  int rank_, teller_;
};

// Chooses among the reports of one failure, which may come from several ranks almost at once. The
// choice is made a quarter of a second after the first clear report, or one second after the first
// vague one, so that ranks that hear of the same reports choose the same one. Clear reports are
// preferred to vague ones, then those of the lowest failed rank, then those of the lowest teller.
// The owner of a vote guards it with a mutex.
class FailureVote {
 public:
  // Adds a report. `now` is now_seconds(). Reports that come after the choice are dropped.
  void add(const FailureReport& report, double now);
  // Returns whether the vote has any report.
  bool failed() const { return best_.has_value(); }
  // Returns whether the choice is made at the time `now`.
  bool settled(double now) const { return failed() && now >= deadline_; }
  double deadline() const { return deadline_; }
  const FailureReport& chosen() const { return *best_; }

 private:
  std::optional<FailureReport> best_;
  double deadline_ = 0;
};

// Measures how long a rank has waited, as the sum of the times between two calls of tick(). Each of
// these times counts as kLongestStep at most, so time in which this process was stopped does not
// count. A run whose processes are all stopped and continued therefore goes on.
class Patience {
 public:
  static constexpr double kLongestStep = 0.25;  // callers call tick() more often than this

  // Starts to measure. `limit` is in seconds; with 0 or less, there is no limit.
  explicit Patience(double limit);
  // Adds the time since the last call, and returns whether the limit has been passed.
  bool tick();
  void restart();

 private:
  double limit_;
  double waited_ = 0;
  double last_;
};

}  // namespace nacre
