// Tests runs over parts of one GPU.
#include <gtest/gtest.h>

#include "device/gpu.h"
#include "nacre/train/gpu_device.h"
#include "nacre/train/ranked_session.h"
#include "nacre/train/session.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

class RankedGpu : public OnGpu {};

// The parts take more than half of the GPU, so that new parts fit only if the old ones were closed.
TEST_F(RankedGpu, PartsAreClosedBeforeWorkIsMoved) {
  const int eighths = plugin_->devices()[0].multiprocessors / 16;
  RunConfig config = small_run("gcn");
  config.plan = "off";
  const Dataset data = small_data();
  std::vector<double> want;
  {
    Session one(data, config);
    one.start();
    for (int step = 0; step < 6; ++step) want.push_back(one.train_step(step, 0.01));
  }
  config.ranks.devices = {"cuda:0@8", "cuda:0@" + std::to_string(8 * std::max(1, eighths))};
  config.ranks.partition.use_cache = false;
  RankedSession several(data, config, {});
  several.start();
  for (int step = 0; step < 6; ++step) {
    if (step == 3) several.move_work({{0.3, 0.7}, 3});
    EXPECT_NEAR(several.train_step(step, 0.01), want[static_cast<size_t>(step)], 1e-5 * want[static_cast<size_t>(step)])
        << "step " << step;
  }
}

}  // namespace
}  // namespace nacre::test
