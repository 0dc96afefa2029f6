// How a run over several ranks fails: one rank is named, and all ranks throw the same message.
#pragma once

#include <optional>
#include <string>

#include "nacre/base/error.h"

namespace nacre {

// What is known of a failure.
struct FailureReport {
  int rank = 0;    // the rank that failed
  int teller = 0;  // the rank that noticed; this rank prints the message
  // Whether `reason` is only what others could see (the rank left); the rank itself may still say
  // why.
  bool vague = false;
  std::string reason;
};

// Is thrown by every pending and later call of every rank after one rank has failed.
class RankFailure : public RuntimeError {
 public:
  explicit RankFailure(const FailureReport& report);
  int rank() const { return rank_; }
  // Returns the rank that prints the message, so that people read it once.
  int teller() const { return teller_; }

 private:
  int rank_, teller_;
};

// Chooses among the reports of one failure, which may come from several ranks almost at once. The
// choice is made a quarter of a second after the first clear report, or one second after the first
// vague one, so that ranks that hear of the same reports choose the same one: clear before vague,
// then the lowest failed rank, then the lowest teller. Its owner guards it with a mutex.
class FailureVote {
 public:
  // `now` is now_seconds(). Reports that come after the choice are dropped.
  void add(const FailureReport& report, double now);
  // Returns whether there is any report.
  bool failed() const { return best_.has_value(); }
  // Returns whether the choice is made.
  bool settled(double now) const { return failed() && now >= deadline_; }
  double deadline() const { return deadline_; }
  const FailureReport& chosen() const { return *best_; }

 private:
  std::optional<FailureReport> best_;
  double deadline_ = 0;
};

// Measures how long a rank has waited. Time in which this process was stopped does not count: a
// step is at most kLongestStep long, however much later tick() is called. So a run that is stopped
// and continued as a whole goes on.
class Patience {
 public:
  static constexpr double kLongestStep = 0.25;  // callers call tick() more often than this

  // `limit` in seconds; 0 or less: without a limit.
  explicit Patience(double limit);
  // Returns whether the limit has been passed.
  bool tick();
  void restart();

 private:
  double limit_;
  double waited_ = 0;
  double last_;
};

}  // namespace nacre
