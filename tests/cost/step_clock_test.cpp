// Tests of the clock of several ranks, against times that are found by hand.
#include "nacre/cost/step_clock.h"

#include <gtest/gtest.h>

namespace nacre::test {
namespace {

using Kind = StepAction::Kind;

StepAction compute(double seconds) { return {Kind::compute, -1, seconds}; }
StepAction start(int call) { return {Kind::start, call, 0}; }
StepAction finish(int call) { return {Kind::finish, call, 0}; }

// Returns two ranks. One computes for 1 s before it starts an exchange, the other one for 3 s. Both
// then compute for 2 s before they need the rows, which travel for 5 s.
std::vector<RankStep> two_ranks() {
  return {{{compute(1), start(0), compute(2), finish(0), compute(1)}, {5}},
          {{compute(3), start(0), compute(2), finish(0), compute(1)}, {5}}};
}

TEST(StepClock, DevicesThatMoveRowsThemselvesDoNotComputeMeanwhile) {
  const auto split = run_step_clock(two_ranks(), {false, {0}, {{1}, {0}}});
  // The first rank needs the rows at 3 s, when the other one starts: it does not wait.
  EXPECT_DOUBLE_EQ(split[0].computing, 4);
  EXPECT_DOUBLE_EQ(split[0].waiting, 0);
  EXPECT_DOUBLE_EQ(split[0].communicating, 5);
  EXPECT_DOUBLE_EQ(split[1].step(), 6 + 5);
  EXPECT_DOUBLE_EQ(longest_step(split), 11);
}

TEST(StepClock, LinksMoveRowsWhileDevicesCompute) {
  const auto split = run_step_clock(two_ranks(), {true, {0}, {{1}, {0}}});
  // The rows travel from 3 s, when both have started, to 8 s.
  EXPECT_DOUBLE_EQ(split[0].step(), 9);
  EXPECT_DOUBLE_EQ(split[0].communicating, 5);
  EXPECT_DOUBLE_EQ(split[1].step(), 9);
  // The rows travel for 2 s more while kernels run, which does not count.
  EXPECT_DOUBLE_EQ(split[1].communicating, 3);
}

TEST(StepClock, RanksWaitForTheirPeersOnly) {
  std::vector<RankStep> ranks = {{{compute(1), start(0), finish(0)}, {0}},
                                 {{compute(2), start(0), finish(0)}, {0}},
                                 {{compute(9), start(0), finish(0)}, {0}}};
  auto split = run_step_clock(ranks, {true, {0}, {{1}, {0}, {}}});
  EXPECT_DOUBLE_EQ(split[0].waiting, 1);
  EXPECT_DOUBLE_EQ(split[1].waiting, 0);
  // Now every rank waits for all others.
  split = run_step_clock(ranks, {true, {1}, {{1}, {0}, {}}});
  EXPECT_DOUBLE_EQ(split[0].waiting, 8);
  EXPECT_DOUBLE_EQ(split[1].waiting, 7);
  EXPECT_DOUBLE_EQ(split[2].waiting, 0);
}

TEST(StepClock, ALinkMovesOneCommunicationAfterTheOther) {
  const std::vector<RankStep> ranks = {{{start(0), start(1), compute(1), finish(0), finish(1)}, {4, 4}},
                                       {{start(0), start(1), compute(1), finish(0), finish(1)}, {4, 4}}};
  const auto split = run_step_clock(ranks, {true, {0, 0}, {{1}, {0}}});
  EXPECT_DOUBLE_EQ(split[0].step(), 8);
  EXPECT_DOUBLE_EQ(split[0].communicating, 7);
}

TEST(StepClock, AStepWithoutCommunicationIsItsKernels) {
  const auto split = run_step_clock({{{compute(1), compute(2)}, {}}}, {false, {}, {{}}});
  EXPECT_DOUBLE_EQ(split[0].step(), 3);
  EXPECT_DOUBLE_EQ(split[0].computing, 3);
}

}  // namespace
}  // namespace nacre::test
