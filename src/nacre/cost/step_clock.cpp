#include "nacre/cost/step_clock.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {
namespace {

class StepClock {
 public:
  StepClock(const std::vector<RankStep>& ranks, const ClockOptions& options)
      : ranks_(ranks), options_(options), clocks_(ranks.size()) {
    for (const RankStep& rank : ranks) {
      NACRE_CHECK(rank.moving.size() == options.everyone.size(), "all ranks must have the same communication");
    }
    started_.assign(calls(), std::vector<double>(ranks.size(), 0));
    met_ = arrived_ = started_;
  }

  std::vector<StepSplit> run() {
    for (size_t call = 0; call < calls(); ++call) {
      for (size_t r = 0; r < ranks_.size(); ++r) advance(r, static_cast<int>(call));
      meet(call);
    }
    std::vector<StepSplit> splits;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      advance(r, -1);
      splits.push_back(clocks_[r].split);
    }
    return splits;
  }

 private:
  struct Clock {
    double now = 0;
    double link_free = 0;  // time at which the link has moved all bytes of earlier communication
    size_t next = 0;       // number of the next action of the rank
    StepSplit split;
  };

  size_t calls() const { return options_.everyone.size(); }

  // Lets a rank go on until it has started the communication `call`. If `call` is -1, lets it go on
  // until its step ends.
  void advance(size_t r, int call) {
    Clock& clock = clocks_[r];
    const std::vector<StepAction>& actions = ranks_[r].actions;
    while (clock.next < actions.size()) {
      const StepAction& action = actions[clock.next++];
      if (action.kind == StepAction::Kind::start) {
        started_[action.call][r] = clock.now;
        if (action.call == call) return;
      } else if (action.kind == StepAction::Kind::finish) {
        finish(r, static_cast<size_t>(action.call));
      } else {
        clock.now += action.seconds;
        clock.split.computing += action.seconds;
      }
    }
    NACRE_CHECK(call < 0, "every rank must start the communication that others start");
  }

  // Computes, for each rank, when all ranks that it waits for have started the communication
  // `call`, and when its bytes have arrived.
  void meet(size_t call) {
    const std::vector<double>& started = started_[call];
    const double last = *std::max_element(started.begin(), started.end());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      double met = started[r];
      for (const int peer : options_.peers[r]) met = std::max(met, started[peer]);
      if (options_.everyone[call] != 0) met = last;
      met_[call][r] = met;
      clocks_[r].link_free = std::max(clocks_[r].link_free, met) + ranks_[r].moving[call];
      arrived_[call][r] = clocks_[r].link_free;
    }
  }

  void finish(size_t r, size_t call) {
    Clock& clock = clocks_[r];
    const double met = std::max(clock.now, met_[call][r]);
    const double end = options_.links_work_alone ? std::max(met, arrived_[call][r]) : met + ranks_[r].moving[call];
    clock.split.waiting += met - clock.now;
    clock.split.communicating += end - met;
    clock.now = end;
  }

  const std::vector<RankStep>& ranks_;
  const ClockOptions& options_;
  std::vector<Clock> clocks_;
  // These are times in seconds, by the number of the communication and then by rank: when the rank
  // started it, when all ranks it waits for had started it, and when its bytes had arrived.
  std::vector<std::vector<double>> started_, met_, arrived_;
};

}  // namespace

std::vector<StepSplit> run_step_clock(const std::vector<RankStep>& ranks, const ClockOptions& options) {
  NACRE_CHECK(options.peers.size() == ranks.size(), "there must be a list of peers for each rank");
  return StepClock(ranks, options).run();
}

double longest_step(const std::vector<StepSplit>& ranks) {
  double longest = 0;
  for (const StepSplit& rank : ranks) longest = std::max(longest, rank.step());
  return longest;
}

}  // namespace nacre
