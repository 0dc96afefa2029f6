#include "train/runs.h"

#include <numeric>

#include "support/rng.h"

namespace nacre::test {
namespace {

constexpr int64_t kNodes = 60;
constexpr int kClasses = 3;
constexpr int64_t kFeatures = 7;

Array<NodeId> range(NodeId begin, NodeId end) {
  std::vector<NodeId> ids(end - begin);
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

}  // namespace

Dataset small_data(const DataText& text) {
  Rng rng(12);
  EdgeList edges{.num_nodes = kNodes, .src = {}, .dst = {}, .weight = {}, .type = {}, .num_types = text.typed ? 3 : 1};
  for (int i = 0; i < 240; ++i) {
    const auto src = static_cast<NodeId>(rng.below(kNodes));
    const bool inside = rng.below(4) != 0;
    const auto dst =
        static_cast<NodeId>(inside ? src % kClasses + kClasses * rng.below(kNodes / kClasses) : rng.below(kNodes));
    edges.src.push_back(src);
    edges.dst.push_back(dst);
    if (text.weighted) edges.weight.push_back(static_cast<float>(rng.uniform(0.5, 2)));
    if (text.typed) edges.type.push_back(static_cast<uint16_t>(rng.below(3)));
  }
  Dataset d;
  d.name = "small";
  d.graph = build_graph(std::move(edges), "small");
  if (text.features) {
    d.features = Tensor(DType::f32, {kNodes, kFeatures});
    for (int64_t i = 0; i < d.features.size(); ++i) {
      const bool own = i % kFeatures == (i / kFeatures) % kClasses;
      d.features.data<float>()[i] = static_cast<float>(rng.normal() + (own ? 1.5 : 0));
    }
  }
  if (text.labels) {
    d.num_classes = kClasses;
    d.splits = {range(0, 30), range(30, 45), range(45, kNodes)};
    std::vector<int32_t> labels(kNodes);
    for (int64_t v = 0; v < kNodes; ++v) labels[static_cast<size_t>(v)] = static_cast<int32_t>(v % kClasses);
    if (text.multilabel) {
      d.targets = Tensor::zeros(DType::u8, {kNodes, kClasses});
      for (int64_t v = 0; v < kNodes; ++v) d.targets.data<uint8_t>()[v * kClasses + labels[static_cast<size_t>(v)]] = 1;
    } else {
      d.labels = labels;
    }
  }
  validate(d, "small");
  return d;
}

RunConfig small_run(const std::string& model, int epochs) {
  RunConfig c;
  c.data = "small";
  c.model.model = model;
  c.model.hidden = 8;
  c.model.dropout = 0.4;
  c.optimizer.lr = 0.02;
  c.epochs = epochs;
  c.seed = 3;
  return c;
}

RunConfig small_batch_run(const std::string& model, int epochs) {
  RunConfig c = small_run(model, epochs);
  c.device = "cpu";
  c.mode = "minibatch";
  c.plan = "off";
  c.batch_size = 4;
  c.sampling.fanout = {3, 3};
  c.deterministic = true;
  return c;
}

std::string weight_bytes(const Parameters& parameters) {
  return {reinterpret_cast<const char*>(parameters.data()), static_cast<size_t>(parameters.bytes())};
}

}  // namespace nacre::test
