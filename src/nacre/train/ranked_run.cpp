#include "nacre/train/ranked_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/thread_team.h"
#include "nacre/base/trace.h"

namespace nacre {
namespace {

// A multiprocessor of a GPU counts as this many threads of the host. Only first shares use this.
constexpr double kThreadsOfMultiprocessor = 4;

// Carries out an order. Returns false if the session of the rank must end.
bool carry_out(RankSession& rank, const RankOrder& order) {
  switch (order.kind) {
    case RankOrder::Kind::start:
      rank.start();
      break;
    case RankOrder::Kind::step:
      rank.step(order.step, order.lr, order.timed);
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
    case RankOrder::Kind::rebuild:  // follow() does this
    case RankOrder::Kind::end:
      return false;
  }
  return true;
}

std::vector<double> unpacked(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
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
}

std::vector<double> RankedRun::scores() const {
  std::vector<double> scores;
  for (size_t r = 0; r < devices_.size(); ++r) {
    const bool gpu = opened_[r] != nullptr && !opened_[r]->on_host();
    scores.push_back(gpu ? kThreadsOfMultiprocessor * opened_[r]->backend()->traits().multiprocessors
                         : std::max(1, devices_[r].threads));
  }
  return scores;
}

void RankedRun::leave_out_weak() {
  if (!run_.config.ranks.shares.empty()) return;
  std::vector<int> weak = weak_ranks(scores());
  std::reverse(weak.begin(), weak.end());  // so that the numbers of those to come stay the same
  for (const int r : weak) {
    run_.notes.push_back(fmt::format(
        "{} is left out: it is much slower than the other devices, which would wait for it longer than its work would "
        "save (with --shares, it is used all the same)",
        devices_[r].text));
    devices_.erase(devices_.begin() + r);
    views_.erase(views_.begin() + r);
    opened_.erase(opened_.begin() + r);
  }
}

void RankedRun::deal_out() {
  const std::vector<double>& asked = run_.config.ranks.shares;
  deal_out(asked.empty() ? scores() : asked);
}

void RankedRun::deal_out(std::vector<double> shares) {
  const TraceSpan span("prepare", "partition");
  const double start = now_seconds();
  partition_ = partition_graph(run_.dataset.graph, shares, run_.config.ranks.partition);
  partition_seconds_ = now_seconds() - start;
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  shares_ = std::move(shares);
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
  return {run_, partition_, config_of(rank), opened_[rank], views_[rank], calls.data, calls.control, needs_, memory_};
}

void RankedRun::follow(const RankCalls& calls) {
  const int threads = devices_[calls.control.rank()].threads;
  const std::unique_ptr<ThreadTeam> team = threads > 0 ? std::make_unique<ThreadTeam>(threads) : nullptr;
  RankOrder order;
  do {
    RankSession rank(setup(calls));
    do {
      const std::string text = calls.control.broadcast(0, "");
      NACRE_CHECK(text.size() == sizeof order, "an order of rank 0 has another size than expected");
      std::memcpy(&order, text.data(), sizeof order);
    } while (carry_out(rank, order));
    if (order.kind == RankOrder::Kind::rebuild) deal_out(unpacked(calls.control.broadcast(0, "")));
  } while (order.kind == RankOrder::Kind::rebuild);
}

void RankedRun::send(const RankOrder& order, Communicator& control) {
  control.broadcast(0, {reinterpret_cast<const char*>(&order), sizeof order});
}

}  // namespace nacre
