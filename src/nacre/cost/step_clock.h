// Predicts how long a step of several ranks takes, from how long each rank computes and how long
// its messages travel. A rank that needs rows of another rank waits until that rank has sent them.
// This file knows only numbers; engine/step_forecast.h makes them from plans.
#pragma once

#include <cstdint>
#include <vector>

namespace nacre {

// Describes one action of a rank; a rank does one action after the other. A communication is two
// actions: with `start` the rank says that its operand is ready, and with `finish` it needs the
// result.
struct StepAction {
  enum class Kind : uint8_t { compute, start, finish };
  Kind kind = Kind::compute;
  // This is the number of the communication, in the order of the step; -1 for a computation.
  int call = -1;
  double seconds = 0;  // seconds that a computation takes
};

// Describes the step of one rank. The steps of all ranks have the same communication in the same
// order.
struct RankStep {
  std::vector<StepAction> actions;
  std::vector<double> moving;  // seconds that the bytes of each communication travel
};

struct ClockOptions {
  // If true, links move bytes while the device computes. If false, the device moves the bytes
  // itself when it needs them.
  bool links_work_alone = false;
  // For each communication, this says whether all ranks wait for all others. In any other
  // communication, a rank waits only for its peers.
  std::vector<char> everyone;
  std::vector<std::vector<int>> peers;  // the ranks that each rank exchanges rows with
};

// Says where the time of a rank's step goes, in seconds.
struct StepSplit {
  double computing = 0;
  double communicating = 0;  // seconds of communication in which the rank could not compute
  // These are the seconds in which the rank waited until others had started a communication.
  double waiting = 0;

  double step() const { return computing + communicating + waiting; }
};

// Returns where the time of each rank's step goes. In a communication in which all ranks wait for
// all others (ClockOptions::everyone), each rank waits for the slowest one.
std::vector<StepSplit> run_step_clock(const std::vector<RankStep>& ranks, const ClockOptions& options);

// Returns the seconds of the longest step of any rank.
double longest_step(const std::vector<StepSplit>& ranks);

}  // namespace nacre
