// Measures loss curves of locality-aware sampling (nacre bench placement --scales). Rows in device
// memory are simulated: the model trains on the host, and its samples prefer the rows that a device
// would hold.
#include <fmt/format.h>

#include "bench_placement.h"
#include "commands.h"
#include "nacre/base/error.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/metrics.h"
#include "nacre/train/near_sampling.h"
#include "nacre/train/trainer.h"
#include "options.h"

namespace nacre::cli {
namespace {

// Counts the rows that the batches of an epoch read: all of them, and those that a device would
// read from the host.
struct EpochRows {
  int64_t all = 0, host = 0;
};

EpochRows count_rows(const PlacementBench& c, const Dataset& data, std::span<const NodeId> train,
                     std::span<const NodeId> near, double scale) {
  Sampler sampler(data.graph, c.config.sampling);
  const NearSampling prefers(sampler, near, std::max(1.0, scale));
  std::vector<uint8_t> held(static_cast<size_t>(data.num_nodes()), 0);
  for (const NodeId v : near) held[v] = 1;
  const std::vector<NodeId> seeds(train.begin(), train.end());
  BatchOrder order(seeds, c.config.batch_size, c.config.seed, true);
  order.begin_epoch(0);
  const auto drawer = sampler.make_batch_sampler();
  EpochRows rows;
  for (int64_t batch = 0; batch < order.num_batches(); ++batch) {
    drawer->begin(order.batch(batch), {0, static_cast<uint64_t>(batch)});
    for (int hop = 0; hop < drawer->hops(); ++hop) {
      drawer->pick(hop);
      drawer->insert(hop);
    }
    for (const NodeId v : drawer->vertices()) {
      rows.all += 1;
      rows.host += held[v] == 0 ? 1 : 0;
    }
  }
  return rows;
}

struct Curve {
  // Each of these lists has a loss for every epoch. `batches` is the mean over the batches of the
  // epoch. `train` and `validation` are computed after the epoch on all neighbours of the training
  // and validation vertices. Locality-aware samples are uneven and estimate less exactly, which
  // makes the loss on batches larger.
  std::vector<double> batches, train, validation;
  double test = 0;
};

Curve train_once(const PlacementBench& c, const Dataset& data, std::span<const NodeId> near, double scale) {
  RunConfig config = c.config;
  config.mode = "minibatch";
  config.model.layers = static_cast<int>(config.sampling.fanout.size());
  config.epochs = c.train_epochs;
  config.select = "last";
  SessionNeeds needs;
  needs.near_scale = scale;
  if (scale > 0) needs.near.assign(near.begin(), near.end());
  BatchSession session(data, config, needs);
  session.start();
  Curve curve;
  TrainerOptions options;
  options.after_epoch = [&](const EpochReport& epoch) {
    const float* scores = session.predict();
    curve.batches.push_back(epoch.loss);
    curve.train.push_back(mean_loss(session.dataset(), scores, session.dataset().splits.train.span()));
    curve.validation.push_back(mean_loss(session.dataset(), scores, session.dataset().splits.val.span()));
    return true;
  };
  const TrainResult result = train(session, options);
  if (result.interrupted) throw Interrupted{result.signal};
  curve.test = result.last_test_score;
  return curve;
}

std::string name_of(double scale) { return scale > 0 ? fmt::format("{:g}", scale) : "off"; }

}  // namespace

std::vector<double> parse_scales(const PlacementBench& c) {
  std::vector<double> scales;
  for (const std::string& word : split_list(c.scales)) {
    double scale = 0;
    if (!parse_double(word, scale) || !(scale >= 1 && scale <= 1000))
      throw UserError("--scales", "'" + word + "' is not a number from 1 to 1000", "write for example 2,4,8");
    scales.push_back(scale);
  }
  if (scales.empty() && !c.curves.empty())
    throw UserError("--curves", "has no runs to write", "add --scales, for example --scales 2,4,8");
  const SampleOptions& s = c.config.sampling;
  if (!scales.empty() && (s.sampler != "neighbor" || s.fanout.empty()))
    throw UserError("--scales", "needs the sampler neighbor and one --fanout for each layer",
                    "give for example --fanout 15,10,5");
  return scales;
}

LocalityTables train_with_locality(const PlacementBench& c, const Dataset& data, std::span<const NodeId> train,
                                   std::span<const NodeId> near) {
  LocalityTables tables{Report({"scale", "rows", "host_percent", "host_ms", "batch_loss", "train_loss",
                                "train_over_off", "val_loss", "val_over_off", "test_percent"}),
                        Report({"scale", "epoch", "batch_loss", "train_loss", "val_loss"})};
  const double row_bytes = static_cast<double>(data.num_features()) * 4;
  std::vector<double> scales = parse_scales(c);
  scales.insert(scales.begin(), 0);
  Curve off;
  for (const double scale : scales) {
    const EpochRows rows = count_rows(c, data, train, near, scale);
    const Curve curve = train_once(c, data, near, scale);
    if (scale == 0) off = curve;
    const auto over = [](double value, double base) { return fmt::format("{:.4f}", value / base); };
    tables.runs.add({name_of(scale), std::to_string(rows.all),
                     fmt::format("{:.2f}", 100.0 * static_cast<double>(rows.host) / static_cast<double>(rows.all)),
                     fmt::format("{:.4g}", static_cast<double>(rows.host) * row_bytes / (c.host_rate * 1e6)),
                     fmt::format("{:.5g}", curve.batches.back()), fmt::format("{:.5g}", curve.train.back()),
                     over(curve.train.back(), off.train.back()), fmt::format("{:.5g}", curve.validation.back()),
                     over(curve.validation.back(), off.validation.back()), fmt::format("{:.2f}", 100 * curve.test)});
    for (size_t e = 0; e < curve.batches.size(); ++e) {
      tables.curves.add({name_of(scale), std::to_string(e + 1), fmt::format("{:.6g}", curve.batches[e]),
                         fmt::format("{:.6g}", curve.train[e]), fmt::format("{:.6g}", curve.validation[e])});
    }
  }
  return tables;
}

}  // namespace nacre::cli
