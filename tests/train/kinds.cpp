#include "train/kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/fixtures.h"
#include "nacre/train/session.h"
#include "support/rng.h"

namespace nacre::test {

Tensor random_rows(int64_t rows, int64_t width, uint64_t seed) {
  Rng rng(seed);
  Tensor x(DType::f32, {rows, width});
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>(rng.normal());
  return x;
}

Dataset kinds_data() {
  Dataset d = small_data({.typed = true});
  d.features = {};
  d.node_types = {"paper", "reader", "author of papers", "field"};
  d.node_offsets = {0, kPapers, kPapers, kPapers + kAuthors, kPapers + kAuthors + kFields};
  d.type_features = {random_rows(kPapers, 7, 1), Tensor(), random_rows(kAuthors, 4, 2), Tensor()};
  for (int64_t v = 0; v < kPapers; ++v) d.type_features[0].data<float>()[v * 7 + v % 3] += 2;
  std::vector<int32_t> labels(d.labels.begin(), d.labels.end());
  std::fill(labels.begin() + kPapers, labels.end(), -1);
  d.labels = labels;
  const auto papers = [](const Array<NodeId>& all) {
    std::vector<NodeId> kept;
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept), [](NodeId v) { return v < kPapers; });
    return kept;
  };
  d.splits = {papers(d.splits.train), papers(d.splits.val), {}};
  validate(d, "kinds");
  return d;
}

RunConfig kinds_run(const std::string& model) {
  RunConfig config = small_run(model);
  config.mode = "minibatch";
  config.batch_size = 1000;
  config.model.dropout = 0;
  if (model != "mlp") config.sampling.fanout = {-1, -1};
  config.plan = "off";
  // Adam would make much of the rounding of a small gradient.
  config.optimizer.name = "sgd";
  config.optimizer.weight_decay = 0.01;  // acts on rows that no batch reads, too
  return config;
}

namespace {

double largest_difference(const float* a, const float* b, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
  return most;
}

}  // namespace

void expect_full_graph_training(RunConfig config) {
  BatchSession batches(kinds_data(), config);
  config.mode = "full";
  config.sampling = {};
  config.features_on = config.sample_on = "auto";
  Session full(kinds_data(), config);
  batches.start();
  full.start();
  for (int step = 0; step < 3; ++step) {
    batches.begin_epoch(step, 0);
    EXPECT_NEAR(batches.train_step(step, 0.2), full.train_step(step, 0.2), 1e-5) << "step " << step;
  }
  const Parameters& a = batches.parameters();
  const Parameters& b = full.parameters();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.list().size(); ++i) {
    const Parameter& p = a.list()[i];
    ASSERT_EQ(p.name, b.list()[i].name);
    ASSERT_EQ(p.shape, b.list()[i].shape);
    EXPECT_LT(largest_difference(a.data(p), b.data(p), p.size), 1e-5) << p.name;
  }
  EXPECT_LT(largest_difference(batches.predict(), full.predict(), 60 * 3), 1e-4);
}

double train_epoch(BatchSession& session, int64_t epoch, double lr) {
  double sum = 0;
  session.begin_epoch(epoch, 0);
  const int64_t steps = session.steps_per_epoch();
  for (int64_t i = 0; i < steps; ++i) sum += session.train_step(epoch * steps + i, lr);
  return sum;
}

void expect_unread_kinds_to_stay(RunConfig config) {
  config.batch_size = 5;
  config.optimizer.weight_decay = 0;
  BatchSession session(kinds_data(), config);
  session.start();
  std::map<std::string, std::vector<float>> before;
  const auto values = [&](const Parameter& p) {
    const float* data = session.parameters().data(p);
    return std::vector<float>(data, data + p.size);
  };
  for (const Parameter& p : session.parameters().list()) before[p.name] = values(p);
  train_epoch(session, 0, 0.1);
  for (const Parameter& p : session.parameters().list()) {
    const bool other = p.name.find("author") != std::string::npos || p.name.find("field") != std::string::npos;
    EXPECT_EQ(values(p) == before.at(p.name), other) << p.name;
  }
}

}  // namespace nacre::test
