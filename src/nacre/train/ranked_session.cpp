#include "nacre/train/ranked_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/trace.h"

namespace nacre {
namespace {

enum class OrderKind : uint8_t { start, step, weights, average, evaluate, predict, embeddings, report, end };

std::vector<double> shares_of(const RunConfig& config) {
  return config.ranks.shares.empty() ? std::vector<double>(config.ranks.devices.size(), 1) : config.ranks.shares;
}

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

// What rank 0 tells the others to do. It is sent as bytes.
struct RankedSession::Order {
  OrderKind kind = OrderKind::end;
  bool flag = false;
  int64_t step = 0;
  double lr = 0;
};

RankedSession::RankedSession(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : start_(now_seconds()), run_(std::move(dataset), std::move(config), needs.training), needs_(needs) {
  check_ranks(run_.config);
  if (!run_.config.model.kinds.empty()) {
    throw UserError("--devices", "several devices cannot train on several kinds of nodes, or on learned features, yet",
                    "use one device");
  }
  devices_ = rank_devices(run_.config);
  const auto ranks = static_cast<int>(devices_.size());
  int threads = 0;
  for (const RankDevice& rank : devices_) threads += std::max(1, rank.threads);
  set_num_threads(std::max(threads, num_threads()));
  {
    const TraceSpan span("prepare", "partition");
    partition_ = partition_graph(run_.dataset.graph, shares_of(run_.config), run_.config.ranks.partition);
  }
  for (const RankDevice& rank : devices_) {
    RunConfig own = run_.config;
    own.device = rank.device;
    if (rank.device == "cpu") own.precision = "f32";
    views_.push_back(std::make_shared<GraphViews>());
    opened_.push_back(open_device(own, views_.back()));
    mixed_ = mixed_ || opened_.back()->on_host() != opened_[0]->on_host();
  }
  GroupOptions group;
  group.timeout = run_.config.ranks.timeout;
  threads_ = std::make_unique<RankThreads>(ranks, group, [this](const RankThreads::Calls& calls) { follow(calls); });
  if (devices_[0].threads > 0) team_ = std::make_unique<ThreadTeam>(devices_[0].threads);
  try {
    own_ = std::make_unique<RankSession>(setup_of(0, threads_->calls()));
  } catch (...) {
    threads_->fail();
  }
  planned_ = figures();
  describe();
  plan_seconds_ = now_seconds() - start_;
}

RankedSession::~RankedSession() {
  if (!own_) return;
  try {
    give({OrderKind::end}, [] {});
  } catch (const std::exception& error) {
    // The run has failed before, and its error has been thrown. The threads end all the same.
    log_verbose(std::string("the ranks ended by a failure: ") + error.what());
  }
}

RankSetup RankedSession::setup_of(int rank, const RankThreads::Calls& calls) const {
  RunConfig config = run_.config;
  config.device = devices_[rank].device;
  if (config.device == "cpu") config.precision = "f32";
  return {run_, partition_, config, opened_[rank], views_[rank], calls.data, calls.control, needs_};
}

// ---- Orders.

bool RankedSession::carry_out(RankSession& rank, const Order& order) {
  switch (order.kind) {
    case OrderKind::start:
      rank.start();
      break;
    case OrderKind::step:
      rank.step(order.step, order.lr);
      if (order.flag) rank.share_weights();
      break;
    case OrderKind::weights:
      rank.share_weights();
      break;
    case OrderKind::average:
      rank.learner().use_average(order.flag);
      break;
    case OrderKind::evaluate:
      rank.evaluate(order.flag);
      break;
    case OrderKind::predict:
      rank.predict("logits", nullptr);
      break;
    case OrderKind::embeddings:
      rank.predict("embedding", nullptr);
      break;
    case OrderKind::report:
      rank.figures();
      break;
    case OrderKind::end:
      return false;
  }
  return true;
}

void RankedSession::follow(const RankThreads::Calls& calls) {
  const int number = calls.control.rank();
  std::unique_ptr<ThreadTeam> team;
  if (devices_[number].threads > 0) team = std::make_unique<ThreadTeam>(devices_[number].threads);
  RankSession rank(setup_of(number, calls));
  Order order;
  do {
    const std::string text = calls.control.broadcast(0, "");
    NACRE_CHECK(text.size() == sizeof order, "an order of rank 0 has another size than expected");
    std::memcpy(&order, text.data(), sizeof order);
  } while (carry_out(rank, order));
}

void RankedSession::give(const Order& order, FunctionRef<void()> own) {
  try {
    threads_->calls().control.broadcast(0, {reinterpret_cast<const char*>(&order), sizeof order});
    own();
  } catch (...) {
    threads_->fail();
  }
}

void RankedSession::start() {
  require_memory();
  give({OrderKind::start}, [&] { own_->start(); });
  started_ = true;
}

void RankedSession::weights_changed() {
  // Before start(), weights are only changed on rank 0; start() shares them.
  if (!started_) return own_->learner().weights_changed();
  give({OrderKind::weights}, [&] { own_->share_weights(); });
}

void RankedSession::use_average(bool use) {
  if (!own_->trains() || run_.config.optimizer.ema <= 0 || use == average_) return;
  average_ = use;
  if (!started_) return own_->learner().use_average(use);
  give({OrderKind::average, use}, [&] { own_->learner().use_average(use); });
}

// Optimisers of different kinds of devices may round differently. Then all ranks take the weights of
// rank 0 after each step, lest they drift apart.
void RankedSession::queue_step(int64_t step, double lr) {
  give({OrderKind::step, mixed_, step, lr}, [&] {
    own_->step(step, lr);
    if (mixed_) own_->share_weights();
  });
}

void RankedSession::take_losses(double& sum) {
  try {
    own_->learner().take_losses(sum);
  } catch (...) {
    threads_->fail();
  }
}

Scores RankedSession::evaluate(bool with_loss) {
  Scores scores;
  give({OrderKind::evaluate, with_loss}, [&] { scores = own_->evaluate(with_loss); });
  return scores;
}

const float* RankedSession::predict() {
  rows_.resize(static_cast<size_t>(run_.dataset.num_nodes() * run_.dataset.num_classes));
  give({OrderKind::predict}, [&] { own_->predict("logits", rows_.data()); });
  return rows_.data();
}

const float* RankedSession::embeddings() {
  if (own_->predictor().plan().dfg.find_output("embedding") < 0) {
    throw UserError("--model " + run_.config.model.model, "has no hidden layer whose values could be written",
                    "use --layers 2 or more");
  }
  rows_.resize(static_cast<size_t>(run_.dataset.num_nodes() * embedding_width()));
  give({OrderKind::embeddings}, [&] { own_->predict("embedding", rows_.data()); });
  return rows_.data();
}

int64_t RankedSession::embedding_width() const {
  const Dfg& dfg = own_->predictor().plan().dfg;
  return dfg[dfg.output("embedding")].type.row_size();
}

// ---- Figures.

std::vector<RankFigures> RankedSession::figures() {
  std::vector<RankFigures> all;
  give({OrderKind::report}, [&] { all = own_->figures(); });
  return all;
}

std::vector<double> RankedSession::shares() const {
  std::vector<double> shares = shares_of(run_.config);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

void RankedSession::describe() {
  const int64_t nodes = run_.dataset.num_nodes(), edges = run_.dataset.graph.num_edges();
  for (size_t r = 0; r < planned_.size(); ++r) {
    const RankFigures& rank = planned_[r];
    run_.notes.push_back(fmt::format(
        "rank {} ({}): {} nodes ({:.1f} %), {} edges ({:.1f} %), reads {} nodes of other ranks, {} of memory", r,
        devices_[r].text, human_count(rank.vertices), percent(rank.vertices, nodes), human_count(rank.edges),
        percent(rank.edges, edges), human_count(rank.halo), size_of(rank.device_bytes)));
  }
  if (run_.config.plan == "auto") {
    run_.notes.emplace_back(
        "several devices are planned by rules, because the kernels of a rank cannot be timed without the other ranks");
  }
}

std::vector<MemoryItem> RankedSession::memory() const {
  std::vector<MemoryItem> items;
  for (size_t r = 0; r < planned_.size(); ++r) {
    if (opened_[r]->on_host() == own_->device().on_host())
      items.push_back({fmt::format("rank {} ({})", r, devices_[r].text), planned_[r].device_bytes});
  }
  return items;
}

HostMemory RankedSession::host() const {
  HostMemory host;
  const Dataset& d = run_.dataset;
  int64_t features = 0;
  for (const FeatureLeaf& leaf : run_.leaves) features += leaf.values.bytes();
  host.gpu = !own_->device().on_host();
  host.trains = needs_.training;
  host.training = {{"graph", d.graph.bytes()},
                   {"features", features},
                   {"labels and splits", run_.label_bytes()},
                   {"rank of each node", partition_.part.size() * 4},
                   {"best weights", own_->learner().parameter_bytes()}};
  for (size_t r = 0; r < planned_.size(); ++r) {
    const bool on_host = opened_[r]->on_host();
    host.training.push_back({fmt::format("rank {} ({})", r, devices_[r].text),
                             on_host ? planned_[r].device_bytes : planned_[r].host_bytes});
  }
  host.held = d.graph.bytes() + features + run_.label_bytes() + partition_.part.size() * 4;
  host.evaluating = {{"scores being ranked", ranking_bytes(run_.metric, d)},
                     {"predictions of all ranks", own_->adds_up() ? 0 : d.num_nodes() * d.num_classes * 4}};
  return host;
}

// Virtual devices of one GPU share its memory, and ranks on cores share that of the host.
void RankedSession::require_memory() const {
  std::map<int, int64_t> needed;  // by the number of the GPU; -1 is the host
  const auto memory_of = [&](size_t r) {
    return opened_[r]->on_host() ? -1 : choose_device(devices_[r].device, run_.config.precision).index;
  };
  for (size_t r = 0; r < planned_.size(); ++r) needed[memory_of(r)] += planned_[r].device_bytes;
  for (size_t r = 0; r < planned_.size(); ++r) {
    const RunDevice& device = *opened_[r];
    const int64_t free = device.memory_limit(run_.config, device.free_at_start());
    const int64_t need = needed[memory_of(r)];
    if (need <= free) continue;
    throw UserError("memory",
                    fmt::format("the ranks on {} need {} together, but only {} may be used",
                                memory_of(r) < 0 ? "the host" : fmt::format("cuda:{}", memory_of(r)), size_of(need),
                                size_of(free)),
                    "use more devices, or a smaller --hidden or --layers");
  }
}

}  // namespace nacre
