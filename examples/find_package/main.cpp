// Trains a model on a graph that the program makes itself, stops when it is good enough, and
// predicts.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "nacre/nacre.h"

namespace {

constexpr uint32_t kNodes = 600;
constexpr uint32_t kClasses = 3;

// Three communities: a node's class is its number modulo 3, and most edges join nodes of one class.
// The features are noise, so that a model has to look at the neighbours.
nacre::Dataset communities() {
  nacre::EdgeList edges;
  edges.num_nodes = kNodes;
  uint32_t random = 1;
  const auto below = [&](uint32_t n) { return (random = random * 1664525 + 1013904223) / 65536 % n; };
  for (uint32_t v = 0; v < kNodes; ++v) {
    for (int k = 0; k < 8; ++k) {
      const uint32_t other = below(kNodes / kClasses) * kClasses + (k < 7 ? v % kClasses : below(kClasses));
      edges.src.push_back(other);
      edges.dst.push_back(v);
    }
  }
  nacre::Dataset data;
  data.name = "communities";
  data.graph = nacre::build_graph(std::move(edges), "communities");
  std::vector<int32_t> labels(kNodes);
  std::vector<nacre::NodeId> train, val, test;
  data.features = nacre::Tensor(nacre::DType::f32, {kNodes, 8});
  for (uint32_t v = 0; v < kNodes; ++v) {
    labels[v] = static_cast<int32_t>(v % kClasses);
    for (uint32_t f = 0; f < 8; ++f) {
      const float noise = static_cast<float>(below(1000)) / 1000;
      data.features.data<float>()[v * 8 + f] = noise + (f == v % kClasses ? 0.5F : 0.0F);
    }
    (v < 300 ? train : v < 450 ? val : test).push_back(v);
  }
  data.labels = nacre::Array<int32_t>(std::move(labels));
  data.num_classes = kClasses;
  data.splits.train = nacre::Array<nacre::NodeId>(std::move(train));
  data.splits.val = nacre::Array<nacre::NodeId>(std::move(val));
  data.splits.test = nacre::Array<nacre::NodeId>(std::move(test));
  nacre::validate(data, data.name);
  return data;
}

// Called after every epoch; training goes on while it returns true.
bool not_good_enough(const nacre::EpochReport& report) {
  if (report.epoch % 10 == 0) {
    std::printf("epoch %d: loss %.3f, validation %.3f\n", report.epoch, report.loss, report.scores.val);
  }
  return report.scores.val < 0.9;
}

int run() {
  nacre::RunConfig config;
  config.model.model = "sage";
  config.model.layers = 2;
  config.model.hidden = 16;
  config.epochs = 200;
  config.device = "cpu";
  // {}: the default SessionNeeds, for training and evaluation
  const std::unique_ptr<nacre::VertexModel> session = nacre::make_session(communities(), config, {});
  session->start();
  nacre::TrainerOptions options;
  options.after_epoch = not_good_enough;
  const nacre::TrainResult result = nacre::train(*session, options);

  const float* scores = session->predict();  // one row of kClasses numbers for each node
  const auto predicted = std::max_element(scores, scores + kClasses) - scores;
  std::printf("%d epochs, test accuracy %.3f; node 0 is of class %d\n", result.epochs, result.test_score,
              static_cast<int>(predicted));
  return result.stopped_early ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const nacre::UserError& error) {
    // The data or the settings are wrong; the message says what to change.
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
