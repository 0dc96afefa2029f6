// Tests --schedule on a GPU: every schedule that a run can follow gives the same bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "nacre/device/device.h"
#include "nacre/train/batch_schedules.h"
#include "nacre/train/batch_session.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

TEST(ScheduleGpu, EveryScheduleGivesTheSameBits) {
  std::string why;
  DevicePlugin* plugin = device_plugin(&why);
  if (plugin == nullptr) GTEST_SKIP() << why;
  if (plugin->devices().empty()) GTEST_SKIP() << "no GPU: " << plugin->why_no_devices();
  RunConfig config = small_run("sage", 2);
  config.device = "cuda";
  config.mode = "minibatch";
  config.plan = "off";
  config.batch_size = 6;
  config.sampling.fanout = {3, 2};
  std::string want;
  for (const char* schedule : {"auto", "salient", "cpu-sample", "all-gpu", "in-turn"}) {
    SCOPED_TRACE(schedule);
    config.batch_schedule = schedule;
    BatchSession session(small_data(), config);
    session.start();
    train(session, {});
    const std::string weights = weight_bytes(session.parameters());
    if (want.empty()) want = weights;
    EXPECT_EQ(weights, want);
    const RunConfig& followed = session.config();
    const bool serial = config.batch_schedule == "cpu-sample" || config.batch_schedule == "all-gpu";
    EXPECT_EQ(followed.loader.in_flight == 0, serial);
    EXPECT_EQ(followed.loader.group > 0, config.batch_schedule == "in-turn");
    const RowReads reads = session.rows_read();
    const bool sends = config.batch_schedule == "salient" || config.batch_schedule == "cpu-sample";
    EXPECT_EQ(reads.host > 0, sends);
    const std::vector<std::string>& notes = session.notes();
    const auto noted = [&](const char* text) {
      return std::any_of(notes.begin(), notes.end(),
                         [&](const std::string& note) { return note.find(text) < note.size(); });
    };
    EXPECT_EQ(noted("drawn on the device"), !sends);
    EXPECT_EQ(noted("the device and the host together"), config.batch_schedule == "in-turn");
  }
}

// When batches begin to be shuffled, the loader and the sampler of the device have already drawn
// batches of the next epoch in the old order. These must not be trained on.
TEST(ScheduleGpu, BatchesThatAreShuffledLaterHaveTheirOwnSamples) {
  std::string why;
  DevicePlugin* plugin = device_plugin(&why);
  if (plugin == nullptr) GTEST_SKIP() << why;
  if (plugin->devices().empty()) GTEST_SKIP() << "no GPU: " << plugin->why_no_devices();
  RunConfig config = small_run("sage", 3);
  config.device = "cuda";
  config.mode = "minibatch";
  config.plan = "off";
  config.shuffle = "never";
  config.batch_size = 6;
  config.sampling.fanout = {3, 2};
  std::string want;
  for (const char* where : {"host", "device"}) {
    SCOPED_TRACE(where);
    config.sample_on = where;
    BatchSession session(small_data(), config);
    session.start();
    session.expect_epochs(3);
    int64_t step = 0;
    for (int epoch = 0; epoch < 3; ++epoch) {
      if (epoch == 1) session.shuffle_from(1);
      session.begin_epoch(epoch, 0);
      for (int64_t i = 0; i < session.steps_per_epoch(); ++i) session.train_step(step++, 0.01);
    }
    EXPECT_EQ(session.draws_on_device(), std::string(where) == "device");
    const std::string weights = weight_bytes(session.parameters());
    if (want.empty()) want = weights;
    EXPECT_EQ(weights, want);
  }
}

}  // namespace
}  // namespace nacre::test
