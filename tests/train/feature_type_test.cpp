// Tests features stored as bf16 or f16: what is stored, what is refused, and that models learn from
// them as well.
#include <gtest/gtest.h>

#include <cmath>

#include "nacre/base/error.h"
#include "nacre/tensor/narrow_floats.h"
#include "nacre/train/batch_inputs.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/feature_options.h"
#include "nacre/train/session.h"
#include "nacre/train/trainer.h"
#include "train/runs.h"

namespace nacre::test {
namespace {

RunConfig batches_of(const std::string& type, int epochs) {
  RunConfig config = small_run("sage", epochs);
  config.device = "cpu";
  config.mode = "minibatch";
  config.plan = "off";
  config.batch_size = 12;
  config.sampling.fanout = {4, 3};
  config.features.type = type;
  return config;
}

TEST(FeatureTypes, NarrowRowsTakeHalfTheMemoryAndAreReadAsFloats) {
  for (const std::string type : {"bf16", "f16"}) {
    SCOPED_TRACE(type);
    const Tensor given = small_data().features;
    BatchSession session(small_data(), batches_of(type, 2));
    const Tensor& stored = session.dataset().features;
    EXPECT_EQ(stored.bytes() * 2, given.bytes());
    const std::vector<NodeId> ids = {5, 0, 59, 5};
    const Tensor rows = gather_rows(stored, ids);
    ASSERT_EQ(rows.dtype(), DType::f32);
    for (int64_t i = 0; i < rows.size(); ++i) {
      const float exact = given.data<float>()[ids[static_cast<size_t>(i / 7)] * 7 + i % 7];
      const DType element = feature_type(type);
      EXPECT_EQ(rows.data<float>()[i], widen(element, narrow(element, exact)));
      EXPECT_NEAR(rows.data<float>()[i], exact, 0.005 * std::abs(exact));
    }
  }
}

// A loader that widens rows gives the values that the whole table has when it is rounded first.
TEST(FeatureTypes, BatchesTrainOnTheRoundedValues) {
  for (const std::string type : {"bf16", "f16"}) {
    RunConfig config = batches_of(type, 4);
    BatchSession narrow_rows(small_data(), config);
    narrow_rows.start();
    train(narrow_rows, {});
    Dataset rounded = small_data();
    store_features(config, rounded, true);
    ASSERT_EQ(rounded.features.dtype(), DType::f32);
    config.features.type = "f32";
    config.deterministic = true;  // evaluates layer by layer, as the other session does
    BatchSession exact_rows(std::move(rounded), config);
    exact_rows.start();
    train(exact_rows, {});
    EXPECT_EQ(weight_bytes(narrow_rows.parameters()), weight_bytes(exact_rows.parameters())) << type;
    const Scores a = narrow_rows.evaluate(true), b = exact_rows.evaluate(true);
    EXPECT_EQ(a.test, b.test);
    EXPECT_EQ(a.val_loss, b.val_loss);
    EXPECT_EQ(narrow_rows.rows_read().host, exact_rows.rows_read().host);
    EXPECT_GT(narrow_rows.rows_read().host, 0);
  }
}

TEST(FeatureTypes, ModelsLearnAsWell) {
  double loss[3];
  int i = 0;
  for (const std::string type : {"f32", "bf16", "f16"}) {
    RunConfig config = batches_of(type, 40);
    config.model.dropout = 0;
    BatchSession session(small_data(), config);
    session.start();
    const TrainResult result = train(session, {});
    loss[i++] = result.final_loss;
    EXPECT_GT(result.val_score, 0.7) << type;
  }
  EXPECT_NEAR(loss[1], loss[0], 0.02);
  EXPECT_NEAR(loss[2], loss[0], 0.02);
}

// Full-graph runs also round features to --feature-type, so that trained weights are used with the
// values that they were trained on.
TEST(FeatureTypes, TheWholeGraphHasTheRoundedValues) {
  RunConfig config = batches_of("bf16", 2);
  config.mode = "full";
  const Session session(small_data(), config);
  const Tensor& features = session.dataset().features;
  ASSERT_EQ(features.dtype(), DType::f32);
  for (const float x : features.span<float>()) EXPECT_EQ(x, widen(DType::bf16, narrow(DType::bf16, x)));
  EXPECT_NE(config_json(session.config()).find("\"feature_type\": \"bf16\""), std::string::npos);
  RunConfig used;
  apply_config_json(weights_config_json(session.config()), "test", used);
  EXPECT_EQ(used.features.type, "bf16");
}

TEST(FeatureTypes, WhatDoesNotFitIsRefused) {
  Dataset large = small_data();
  large.features.data<float>()[9 * 7 + 2] = 1e6F;
  try {
    const BatchSession session(std::move(large), batches_of("f16", 2));
    FAIL() << "1e6 is beyond the range of f16";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("feature 2 of node 9"), std::string::npos) << error.what();
  }
  RunConfig config = batches_of("f64", 2);
  EXPECT_THROW(BatchSession(small_data(), config), UserError);
  config = batches_of("bf16", 2);
  config.load.features_file = "learned";
  EXPECT_THROW(check_feature_options(config), UserError);
  config = batches_of("f32", 2);
  config.features.budget = {1000};
  // refused, because the run is on the CPU
  EXPECT_THROW(BatchSession(small_data(), config), UserError);
  config.features_on = "device";
  EXPECT_THROW(check_feature_options(config), UserError);
  config = batches_of("f32", 2);
  config.features.budget = {1000, 1000};
  EXPECT_THROW(check_feature_options(config), UserError);
  config = batches_of("f32", 2);
  config.features.placement = "nowhere";
  EXPECT_THROW(check_feature_options(config), UserError);
  config.features.placement = "auto";
  config.features.host_rows = "pigeon";
  EXPECT_THROW(check_feature_options(config), UserError);
}

}  // namespace
}  // namespace nacre::test
