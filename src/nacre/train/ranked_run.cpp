#include "nacre/train/ranked_run.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/base/thread_team.h"
#include "nacre/base/trace.h"

namespace nacre {
namespace {

std::vector<double> asked_shares(const RunConfig& config) {
  return config.ranks.shares.empty() ? std::vector<double>(config.ranks.devices.size(), 1) : config.ranks.shares;
}

// Carries out an order. Returns false after the last one.
bool carry_out(RankSession& rank, const RankOrder& order) {
  switch (order.kind) {
    case RankOrder::Kind::start:
      rank.start();
      break;
    case RankOrder::Kind::step:
      rank.step(order.step, order.lr);
      if (order.flag) rank.share_weights();
      break;
    case RankOrder::Kind::weights:
      rank.share_weights();
      break;
    case RankOrder::Kind::average:
      rank.learner().use_average(order.flag);
      break;
    case RankOrder::Kind::evaluate:
      rank.evaluate(order.flag);
      break;
    case RankOrder::Kind::predict:
      rank.predict("logits", nullptr);
      break;
    case RankOrder::Kind::embeddings:
      rank.predict("embedding", nullptr);
      break;
    case RankOrder::Kind::figures:
      rank.figures();
      break;
    case RankOrder::Kind::end:
      return false;
  }
  return true;
}

}  // namespace

RankedRun::RankedRun(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : run_(std::move(dataset), std::move(config), needs.training), needs_(needs) {
  check_ranks(run_.config);
  if (!run_.config.model.kinds.empty()) {
    throw UserError("--devices", "several devices cannot train on several kinds of nodes, or on learned features, yet",
                    "use one device");
  }
  devices_ = rank_devices(run_.config);
  views_.resize(devices_.size());
  opened_.resize(devices_.size());
  const TraceSpan span("prepare", "partition");
  partition_ = partition_graph(run_.dataset.graph, asked_shares(run_.config), run_.config.ranks.partition);
}

std::vector<double> RankedRun::shares() const {
  std::vector<double> shares = asked_shares(run_.config);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

bool RankedRun::mixed() const {
  const auto on_host = [](const RankDevice& rank) { return rank.device == "cpu"; };
  return std::any_of(devices_.begin(), devices_.end(), on_host) &&
         !std::all_of(devices_.begin(), devices_.end(), on_host);
}

RunConfig RankedRun::config_of(int rank) const {
  RunConfig config = run_.config;
  config.device = devices_[rank].device;
  if (config.device == "cpu") config.precision = "f32";
  return config;
}

void RankedRun::open(int rank) {
  views_[rank] = std::make_shared<GraphViews>();
  opened_[rank] = open_device(config_of(rank), views_[rank]);
}

RankSetup RankedRun::setup(const RankCalls& calls) const {
  const int rank = calls.control.rank();
  return {run_, partition_, config_of(rank), opened_[rank], views_[rank], calls.data, calls.control, needs_};
}

void RankedRun::follow(const RankCalls& calls) const {
  const int threads = devices_[calls.control.rank()].threads;
  const std::unique_ptr<ThreadTeam> team = threads > 0 ? std::make_unique<ThreadTeam>(threads) : nullptr;
  RankSession rank(setup(calls));
  RankOrder order;
  do {
    const std::string text = calls.control.broadcast(0, "");
    NACRE_CHECK(text.size() == sizeof order, "an order of rank 0 has another size than expected");
    std::memcpy(&order, text.data(), sizeof order);
  } while (carry_out(rank, order));
}

void RankedRun::send(const RankOrder& order, Communicator& control) {
  control.broadcast(0, {reinterpret_cast<const char*>(&order), sizeof order});
}

}  // namespace nacre
