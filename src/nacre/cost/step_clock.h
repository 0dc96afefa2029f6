// Predicts how long a step of several ranks takes, from how long each rank computes and how long
// its messages travel. A rank waits where another rank has not come as far yet. This file knows
// only numbers; engine/step_forecast.h makes them from plans.
#pragma once

#include <cstdint>
#include <vector>

namespace nacre {

// What a rank does, one action after the other. A communication is two actions: the rank says that
// its operand is ready, and later needs the result.
struct StepAction {
  enum class Kind : uint8_t { compute, start, finish };
  Kind kind = Kind::compute;
  // Number of the communication, in the order of the step; -1 for a computation.
  int call = -1;
  double seconds = 0;  // seconds that a computation takes
};

// The step of one rank. All ranks have the same communication in the same order.
struct RankStep {
  std::vector<StepAction> actions;
  std::vector<double> moving;  // seconds that the bytes of each communication travel
};

struct ClockOptions {
  // Whether links move bytes while the device computes. If this is false, the device moves the
  // bytes itself when it needs them.
  bool links_work_alone = false;
  // For each communication, whether all ranks wait for all others. In the other communications, a
  // rank waits for its peers.
  std::vector<char> everyone;
  std::vector<std::vector<int>> peers;  // the ranks that each rank exchanges rows with
};

// Says where the time of a rank's step goes, in seconds.
struct StepSplit {
  double computing = 0;
  double communicating = 0;  // seconds of communication in which the rank could not compute
  // Seconds in which the rank waited until others had started a communication.
  double waiting = 0;

  double step() const { return computing + communicating + waiting; }
};

// Returns where the time of each rank's step goes. If the step has communication with everyone,
// each rank also waits at its end for the slowest one.
std::vector<StepSplit> run_step_clock(const std::vector<RankStep>& ranks, const ClockOptions& options);

// Returns the seconds of the longest step of any rank.
double longest_step(const std::vector<StepSplit>& ranks);

}  // namespace nacre
