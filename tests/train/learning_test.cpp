// Tests what shapes a training step besides the optimiser: clipping, averaged weights, weights of
// classes, plateaus, warm starts. Each is compared with a plain computation, in whole-graph and
// mini-batch runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/fixtures.h"
#include "nacre/base/parallel.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/class_weights.h"
#include "nacre/train/metrics.h"
#include "nacre/train/session.h"
#include "nacre/train/warm_start.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

class Learning : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(2); }
  TempDir dir_;
};

// A step of plain SGD with rate 1 leaves weights − gradient.
std::vector<double> gradient_of(const RunConfig& config) {
  Session session(small_data(), config);
  session.start();
  const std::vector<float> before(session.parameters().data(),
                                  session.parameters().data() + session.parameters().trained_size());
  session.train_step(0, 1);
  std::vector<double> gradient;
  for (size_t i = 0; i < before.size(); ++i) gradient.push_back(before[i] - session.parameters().data()[i]);
  return gradient;
}

double norm_of(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

TEST_F(Learning, GradientsAreClippedByTheirNormTogether) {
  RunConfig config = small_run("gcn");
  config.optimizer = {.name = "sgd"};
  const std::vector<double> whole = gradient_of(config);
  const double norm = norm_of(whole);
  ASSERT_GT(norm, 0.01);
  config.optimizer.clip_norm = norm / 3;
  const std::vector<double> clipped = gradient_of(config);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(clipped[i], whole[i] / 3, 1e-6);
  config.optimizer.clip_norm = norm * 2;
  const std::vector<double> small = gradient_of(config);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(small[i], whole[i]);
  EXPECT_EQ(clip_factor(0, 100), 1);
  EXPECT_NEAR(clip_factor(2, 8), 0.25, 1e-6);
}

TEST_F(Learning, ClippingGivesTheSameBitsOnAnyNumberOfThreads) {
  RunConfig config = small_run("sage");
  config.model.hidden = 500;  // several chunks of a parameter
  config.optimizer.clip_norm = 0.1;
  std::string bytes;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    Session session(small_data(), config);
    session.start();
    for (int step = 0; step < 3; ++step) session.train_step(step, 0.01);
    const std::string now = weight_bytes(session.parameters());
    EXPECT_TRUE(bytes.empty() || bytes == now) << threads;
    bytes = now;
  }
}

TEST_F(Learning, TheAverageFollowsItsDefinition) {
  RunConfig config = small_run("gcn");
  config.optimizer.ema = 0.6;
  config.model.norm = "batch";
  Session session(small_data(), config);
  session.start();
  const int64_t size = session.parameters().trained_size();
  const auto weights = [&] {
    return std::vector<float>(session.parameters().data(), session.parameters().data() + size);
  };
  std::vector<float> first = weights();
  std::vector<double> want(first.begin(), first.end());
  for (int step = 1; step <= 8; ++step) {
    session.train_step(step - 1, 0.05);
    const double kept = std::min(0.6, (1.0 + step) / (10.0 + step));
    const std::vector<float> now = weights();
    for (size_t i = 0; i < now.size(); ++i) want[i] = kept * want[i] + (1 - kept) * now[i];
  }
  const std::vector<float> trained = weights();
  const std::vector<float> plain(session.predict(), session.predict() + 180);
  session.use_average(true);
  const std::vector<float> average = weights();
  const std::vector<float> averaged(session.predict(), session.predict() + 180);
  session.use_average(false);
  for (size_t i = 0; i < average.size(); ++i) ASSERT_NEAR(average[i], want[i], 1e-5);
  EXPECT_EQ(weights(), trained) << "the weights themselves come back";
  EXPECT_NE(average, trained);
  EXPECT_NE(plain, averaged) << "predictions follow the weights in use";
  EXPECT_EQ(std::vector<float>(session.predict(), session.predict() + 180), plain);
}

TEST_F(Learning, ARunKeepsTheAverage) {
  RunConfig config = small_run("gcn", 6);
  config.select = "last";
  config.optimizer.ema = 0.8;
  Session session(small_data(), config);
  session.start();
  train(session, {.run_folder = dir_.path("run")});
  session.use_average(true);
  const std::string average = weight_bytes(session.parameters());
  Session fresh(small_data(), config, {.training = false});
  load_weights(dir_.path("run/model.safetensors"), fresh.parameters());
  EXPECT_EQ(weight_bytes(fresh.parameters()), average);
}

TEST_F(Learning, ClassesWeighInTheLoss) {
  RunConfig config = small_run("mlp");
  config.model.dropout = 0;
  config.class_weights = "1,0.5,4";
  config.model.label_smoothing = 0.1;
  Session session(small_data(), config);
  session.start();
  const float* z = session.predict();
  const Dataset& d = session.dataset();
  const std::vector<double> weight = {1, 0.5, 4};
  double sum = 0, total = 0;
  for (const NodeId v : d.splits.train) {
    const float* row = z + static_cast<int64_t>(v) * 3;
    const double lse = std::log(std::exp(row[0]) + std::exp(row[1]) + std::exp(row[2]));
    const double mean = (row[0] + row[1] + row[2]) / 3;
    const double w = weight[static_cast<size_t>(d.labels[v])];
    sum += w * (lse - 0.9 * row[d.labels[v]] - 0.1 * mean);
    total += w;
  }
  EXPECT_NEAR(session.train_step(0, 0.1), sum / total, 1e-5);

  // A batch of all training nodes has the same loss, because an mlp looks at no neighbours.
  config.mode = "minibatch";
  config.batch_size = 1000;
  config.model.model = "gcn";
  config.sampling.fanout = {-1, -1};
  RunConfig whole = config;
  whole.mode = "full";
  BatchSession batches(small_data(), config);
  batches.start();
  batches.begin_epoch(0, 0);
  Session full(small_data(), whole);
  full.start();
  EXPECT_NEAR(batches.train_step(0, 0.1), full.train_step(0, 0.1), 1e-5);
}

TEST_F(Learning, WeightsOfClasses) {
  Dataset d = small_data();
  std::string text;
  EXPECT_TRUE(class_weights(text, d).empty());
  text = "balanced";
  const std::vector<double> balanced = class_weights(text, d);
  std::vector<double> count(3, 0);
  for (const NodeId v : d.splits.train) count[static_cast<size_t>(d.labels[v])] += 1;
  const auto train = static_cast<double>(d.splits.train.size());
  for (size_t k = 0; k < 3; ++k) EXPECT_DOUBLE_EQ(balanced[k], train / (3 * count[k]));
  text = dir_.write("weights.txt", "1\n0.25\n3e0\n");
  EXPECT_EQ(class_weights(text, d), (std::vector<double>{1, 0.25, 3}));
  EXPECT_EQ(text, "1,0.25,3") << "settings hold the numbers, not the name of the file";
  for (const char* wrong : {"1,2", "1,2,3,4", "1,x,2", "-1,1,1", "0,0,0", "nowhere.txt"}) {
    text = wrong;
    EXPECT_USER_ERROR(class_weights(text, d), wrong[0] == 'n' ? "no file" : "weight");
  }
  // Of the 30 training nodes of these data, 10 have each class.
  text = "balanced";
  EXPECT_EQ(class_weights(text, small_data({.multilabel = true})), (std::vector<double>{2, 2, 2}));
}

TEST_F(Learning, ClassesThatANodeHasWeighInTheLoss) {
  RunConfig config = small_run("gcn");
  config.model.dropout = 0;
  config.class_weights = "3,0.5,0";
  config.model.label_smoothing = 0.1;
  config.sampling.fanout = {-1, -1};
  config.batch_size = 1000;
  for (const std::string mode : {"full", "minibatch"}) {
    SCOPED_TRACE(mode);
    config.mode = mode;
    const auto session = make_session(small_data({.multilabel = true}), config, {});
    session->start();
    const float* z = session->predict();
    const Dataset& d = session->dataset();
    const std::vector<double> weight = {3, 0.5, 0};
    double sum = 0;
    for (const NodeId v : d.splits.train) {
      for (int64_t c = 0; c < 3; ++c) {
        const double x = z[static_cast<int64_t>(v) * 3 + c];
        const bool has = d.targets.data<uint8_t>()[static_cast<int64_t>(v) * 3 + c] != 0;
        sum += (has ? weight[static_cast<size_t>(c)] : 1) * (std::log1p(std::exp(x)) - (has ? 0.95 : 0.05) * x);
      }
    }
    session->begin_epoch(0, 0);
    EXPECT_NEAR(session->train_step(0, 0.1), sum / (3.0 * static_cast<double>(d.splits.train.size())), 1e-5);
  }
}

TEST_F(Learning, ThePlateauWaitsAndDrops) {
  const ScheduleOptions schedule = {.name = "plateau", .gamma = 0.5, .final_ratio = 0.2, .patience = 1};
  Plateau p;
  std::vector<double> factors;
  for (const double score : {0.5, 0.4, 0.5, 0.6, 0.6, 0.6, 0.1, 0.1, 0.1, 0.1}) {
    p.observe(schedule, score, false);
    factors.push_back(p.factor);
  }
  // Two results in a row are not better than 0.5, then 0.6 is new, then two more, and so on. The
  // factor never falls below a fifth.
  EXPECT_EQ(factors, (std::vector<double>{1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2, 0.2}));
  Plateau falling;
  for (const double loss : {3.0, 2.0, 1.0}) falling.observe(schedule, loss, true);
  EXPECT_EQ(falling.factor, 1);
  falling.observe(schedule, NAN, true);
  EXPECT_EQ(falling.waited, 0);
}

TEST_F(Learning, AWarmStartTakesWeightsByName) {
  RunConfig config = small_run("gcn", 3);
  Session first(small_data(), config);
  first.start();
  train(first, {.run_folder = dir_.path("run")});
  config.seed = 9;
  Session second(small_data(), config);
  const size_t count = second.parameters().list().size();
  EXPECT_EQ(warm_start(dir_.path("run"), false, second.parameters()), static_cast<int>(count));
  Session read(small_data(), config, {.training = false});
  load_weights(dir_.path("run/model.safetensors"), read.parameters());
  EXPECT_EQ(weight_bytes(second.parameters()), weight_bytes(read.parameters()));
  EXPECT_EQ(warm_start(dir_.path("run/model.safetensors"), false, second.parameters()), static_cast<int>(count));

  config.model.hidden *= 2;
  Session wider(small_data(), config);
  EXPECT_USER_ERROR(warm_start(dir_.path("run"), false, wider.parameters()), "has the shape");
  const int fitting = warm_start(dir_.path("run"), true, wider.parameters());
  EXPECT_GT(fitting, 0);
  EXPECT_LT(fitting, static_cast<int>(count));
  EXPECT_USER_ERROR(warm_start(dir_.path("absent"), false, wider.parameters()), "no file or folder");
  EXPECT_USER_ERROR(warm_start(dir_.path(""), false, wider.parameters()), "no weights");
}

TEST_F(Learning, FeaturesOfNodesAreLearned) {
  RunConfig config = small_run("gcn", 30);
  config.model.input_dropout = 0;
  config.load.features_file = "learned";
  Session session(small_data({.features = false}), config);
  session.start();
  EXPECT_EQ(session.config().model.in_dim, session.config().model.hidden);
  const double first = session.train_step(0, 0.02);
  double last = first;
  for (int step = 1; step < 30; ++step) last = session.train_step(step, 0.02);
  EXPECT_LT(last, first / 2) << "the rows can be learned";
}

}  // namespace
}  // namespace nacre::test
