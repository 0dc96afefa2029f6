// Tests --schedule on a GPU: every schedule that a run can follow gives the same bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "data/fixtures.h"
#include "device/gpu.h"
#include "nacre/device/device.h"
#include "nacre/train/batch_schedules.h"
#include "nacre/train/batch_session.h"
#include "train/placed_runs.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

class ScheduleGpu : public OnGpu {};

TEST_F(ScheduleGpu, EveryScheduleGivesTheSameBits) {
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

// The host computes some batches beside the GPU, and draws some. Values differ only by rounding,
// and by nothing at all if the host only draws.
TEST_F(ScheduleGpu, TheHostComputesBatchesBesideTheGpu) {
  const TempDir dir;
  for (const bool batch_norm : {false, true}) {
    for (const int staleness : {0, 2}) {
      SCOPED_TRACE((batch_norm ? "batch norm " : "plain ") + std::to_string(staleness));
      RunConfig config = small_run("sage", 2);
      config.device = "cuda";
      config.mode = "minibatch";
      config.plan = "off";
      config.batch_size = 6;
      config.sampling.fanout = {3, 2};
      config.optimizer = {.name = "sgd"};
      config.staleness = staleness;
      if (batch_norm) config.model.norm = "batch";
      const auto values = [&](const RunConfig& run, ScheduleReport* report) {
        BatchSession session(small_data(), run);
        session.start();
        train(session, {});
        if (report != nullptr) *report = session.schedule_report();
        const Parameters& p = session.parameters();
        return std::vector<float>(p.data(), p.data() + p.size());
      };
      const std::vector<float> want = values(config, nullptr);
      for (const char* computed : {"ddd", "dhd", "hhh"}) {
        SCOPED_TRACE(computed);
        const BatchPlaces places{.drawn = "hdd", .computed = computed};
        ScheduleReport report;
        const std::vector<float> got = values(placed_run(small_data(), config, places, dir.path("plan.json")), &report);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], places.host_computes() ? 1e-4 : 0) << i;
        EXPECT_GT(report.drawn_on_device, 0);
        EXPECT_GT(report.drawn_on_host, 0);
        EXPECT_EQ(report.computed_on_host > 0, places.host_computes());
        EXPECT_EQ(report.computed_on_device > 0, places.computed != "hhh");
      }
    }
  }
}

// When batches begin to be shuffled, the loader and the sampler of the device have already drawn
// batches of the next epoch in the old order. These must not be trained on.
TEST_F(ScheduleGpu, BatchesThatAreShuffledLaterHaveTheirOwnSamples) {
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
