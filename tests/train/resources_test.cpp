// Tests the report of which resource limited a mini-batch run.
#include "nacre/train/resources.h"

#include <gtest/gtest.h>

namespace nacre {
namespace {

StepTimes ten_seconds() {
  StepTimes steps;
  steps.steps = 100;
  steps.waited = 2;
  steps.host = 7;
  steps.awaited = 3;
  steps.settled = 1;
  steps.device = 8;
  return steps;
}

TEST(Resources, TheFullestComesFirst) {
  LoaderTimes loader;
  loader.sample_pick = 6;
  loader.sample_insert = 2;
  loader.prepare = 12;
  const ResourceUse use = resource_use(ten_seconds(), loader, 4, false);
  EXPECT_EQ(use.text(),
            "fullest: device 80 %; host threads 50 % of 4 (S 20 %, R 0 %, K 0 %, T 0 %, making ready 30 %); "
            "launching thread 40 %");
  EXPECT_DOUBLE_EQ(use.percent("device"), 80);
  EXPECT_DOUBLE_EQ(use.percent("launching thread"), 40);
  EXPECT_LT(use.percent("link"), 0) << "no features were sent";

  loader.reindex = 4;
  loader.lookup = 10;
  loader.transfer = 3.2;
  loader.copied = 4.5;
  const ResourceUse busy = resource_use(ten_seconds(), loader, 4, true);
  EXPECT_EQ(busy.all.front().name, "host threads");
  EXPECT_EQ(
      busy.text(),
      "fullest: host threads 93 % of 4 (S 20 %, R 10 %, K 25 %, T 8 %, making ready 30 %); device 80 %; link 45 %; "
      "launching thread 40 %");
}

TEST(Resources, NoStepsUseNothing) {
  LoaderTimes loader;
  loader.prepare = 1;
  const ResourceUse use = resource_use({}, loader, 2, true);
  EXPECT_TRUE(use.all.empty());
  EXPECT_EQ(use.text(), "");
  EXPECT_LT(use.percent("device"), 0);
}

}  // namespace
}  // namespace nacre
