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

}  // namespace
}  // namespace nacre::test
