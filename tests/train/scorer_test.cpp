// The scores of a run on a GPU are those that the host computes from the same predictions.
#include "nacre/train/scorer.h"

#include <gtest/gtest.h>

#include "device/gpu.h"
#include "nacre/train/gpu_device.h"
#include "nacre/train/metrics.h"
#include "nacre/train/vertex_model.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

class ScorerTest : public OnGpu {};

void expect_equal(double a, double b) { EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << a << " and " << b; }

// Runs three epochs, because the first evaluation runs kernel by kernel and later ones are
// recorded.
void expect_same_scores(VertexModel& model) {
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const bool with_loss = epoch != 1;
    model.begin_epoch(epoch, 0);
    for (int64_t step = 0; step < model.steps_per_epoch(); ++step) model.train_step(step, 0.01);
    const Scores device = model.evaluate(with_loss);
    const Scores host = score_splits(model.metric(), model.dataset(), model.predict(), with_loss);
    expect_equal(device.train, host.train);
    expect_equal(device.val, host.val);
    expect_equal(device.test, host.test);
    EXPECT_EQ(std::isnan(device.val_loss), !with_loss);
    if (with_loss) {
      EXPECT_NEAR(device.val_loss, host.val_loss, 1e-9);
    }
  }
}

RunConfig gpu_run(const std::string& mode, const std::string& metric) {
  RunConfig config = small_run("sage");
  config.device = "cuda";
  config.mode = mode;
  config.metric = metric;
  config.plan = "off";
  config.batch_size = 12;
  config.sampling.fanout = {3, 3};  // mean degrees of all batches lie below the same power of two
  return config;
}

TEST_F(ScorerTest, RowsThatAreLearnedInBatchesAreTheHosts) {
  RunConfig config = gpu_run("minibatch", "accuracy");
  config.model.dropout = 0;
  config.load.features_file = "learned";
  for (const int width : {8, 6}) {  // rows that are whole words of 16 bytes, and rows that are not
    SCOPED_TRACE(width);
    config.model.in_dim = width;
    std::vector<float> weights[2];
    for (const bool gpu : {false, true}) {
      config.device = gpu ? "cuda" : "cpu";
      const auto model = make_session(small_data({.features = false}), config, {});
      model->start();
      int64_t step = 0;
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        model->begin_epoch(epoch, 0);
        for (int64_t i = 0; i < model->steps_per_epoch(); ++i) model->train_step(step++, 0.01);
      }
      const Parameters& p = model->parameters();
      weights[gpu ? 1 : 0].assign(p.data(), p.data() + p.size());
      expect_same_scores(*model);
    }
    ASSERT_EQ(weights[0].size(), weights[1].size());
    for (size_t i = 0; i < weights[0].size(); ++i) ASSERT_NEAR(weights[0][i], weights[1][i], 2e-3) << i;
  }
}

TEST_F(ScorerTest, OfEveryMetricAreTheHosts) {
  for (const std::string mode : {"full", "minibatch"}) {
    for (const std::string metric : {"accuracy", "micro_f1", "roc_auc"}) {
      SCOPED_TRACE(mode + " " + metric);
      Dataset data = small_data({.multilabel = metric != "accuracy"});
      if (metric == "accuracy") {
        std::vector<int32_t> labels(data.labels.begin(), data.labels.end());
        for (size_t v = 2; v < labels.size(); v += 7) labels[v] = -1;
        data.labels = labels;
      }
      const auto session = make_session(std::move(data), gpu_run(mode, metric), {});
      session->start();
      const int64_t compiled = gpu_of(session->device()).compiler().num_sources();
      expect_same_scores(*session);
      // Only what no run needs from the first step on is compiled later: the loss of a split.
      EXPECT_EQ(gpu_of(session->device()).compiler().num_sources(), compiled + (metric == "roc_auc" ? 0 : 1));
    }
  }
}

}  // namespace
}  // namespace nacre::test
