#include "nacre/cluster/failure.h"

#include <gtest/gtest.h>

#include "cluster/launcher.h"
#include "nacre/cluster/agreement.h"

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

TEST(FailureAgreement, lets_the_lowest_rank_choose_that_can) {
  const FailureReport hangs{1, 3, false, "hangs"}, full{2, 2, false, "a disk is full"};
  FailureAgreement first(0), third(2);
  first.add(hangs, 10);
  third.add(hangs, 10);
  EXPECT_TRUE(third.failed());
  EXPECT_FALSE(third.due(10.3));
  ASSERT_TRUE(first.due(10.3));
  first.choose();
  EXPECT_FALSE(first.due(10.4));
  third.adopt(*first.choice());
  EXPECT_EQ(third.choice()->reason, "hangs");
  third.adopt(full);  // this report comes too late to be chosen
  EXPECT_EQ(third.choice()->reason, "hangs");
  // If rank 0 does not choose, others do after a while.
  FailureAgreement alone(2);
  alone.add(full, 10);
  EXPECT_FALSE(alone.due(11));
  EXPECT_TRUE(alone.due(20));
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
