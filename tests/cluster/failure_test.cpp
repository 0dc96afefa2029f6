#include "nacre/cluster/failure.h"

#include <gtest/gtest.h>

#include "cluster/launcher.h"

namespace nacre {
namespace {

TEST(FailureVote, prefers_clear_reports_then_low_ranks) {
  FailureVote vote;
  EXPECT_FALSE(vote.failed());
  vote.add({0, 0, true, "left"}, 10);
  EXPECT_FALSE(vote.settled(10.9));
  vote.add({3, 3, false, "no memory"}, 10.1);
  vote.add({2, 5, false, "hangs"}, 10.2);
  vote.add({2, 4, false, "hangs"}, 10.3);
  EXPECT_FALSE(vote.settled(10.3));
  EXPECT_TRUE(vote.settled(10.36));
  vote.add({1, 1, false, "too late"}, 10.4);
  EXPECT_EQ(vote.chosen().rank, 2);
  EXPECT_EQ(vote.chosen().teller, 4);
  EXPECT_STREQ(RankFailure(vote.chosen()).what(), "rank 2: hangs");
}

TEST(Patience, does_not_count_time_in_which_the_process_was_stopped) {
  Patience patience(0.4);
  nap(0.6);  // stands for a stop: nobody called tick()
  EXPECT_FALSE(patience.tick());
  nap(0.2);
  EXPECT_TRUE(patience.tick());
  patience.restart();
  EXPECT_FALSE(patience.tick());
  Patience endless(0);
  nap(0.05);
  EXPECT_FALSE(endless.tick());
}

}  // namespace
}  // namespace nacre
