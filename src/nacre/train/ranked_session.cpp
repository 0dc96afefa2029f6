#include "nacre/train/ranked_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/cluster/rank_threads.h"
#include "nacre/engine/rank_memory.h"

namespace nacre {
namespace {

using Kind = RankOrder::Kind;

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Steps whose kernels are timed to find out how fast the ranks are.
constexpr int64_t kTimedSteps = 3;
// Shorter runs keep their first shares.
constexpr int kWorthBalancing = 10;
// How much slower than an even split the slowest rank may be.
constexpr double kTolerated = 0.03;

// Gives the process as many threads as its ranks have together.
void take_threads(const std::vector<RankDevice>& devices) {
  int threads = 0;
  for (const RankDevice& rank : devices) threads += std::max(1, rank.threads);
  set_num_threads(std::max(threads, num_threads()));
}

// Opens the devices of all ranks, deals out the nodes, and connects the ranks as threads of this
// process. If `shares` is empty, the run chooses the shares.
std::unique_ptr<RankTeam> start_threads(RankedRun& run, const std::vector<double>& shares) {
  GroupOptions group;
  group.timeout = run.data().config.ranks.timeout;
  for (size_t r = 0; r < run.devices().size(); ++r) run.open(static_cast<int>(r));
  run.leave_out_weak();
  const auto ranks = static_cast<int>(run.devices().size());
  std::vector<std::shared_ptr<GpuCompiler>> compilers;
  compilers.reserve(ranks);
  for (int r = 0; r < ranks; ++r) compilers.push_back(run.device(r)->gpu_compiler());
  if (shares.empty()) {
    run.deal_out();
  } else {
    run.deal_out(shares);
  }
  if (std::any_of(compilers.begin(), compilers.end(), [](const auto& c) { return c != nullptr; }))
    group.memory = make_rank_memory(std::move(compilers));
  run.move_with(group.memory);
  return std::make_unique<RankThreads>(ranks, group, [&run](const RankCalls& calls) { run.follow(calls); });
}

}  // namespace

RankedSession::RankedSession(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : start_(now_seconds()), run_(std::move(dataset), std::move(config), needs) {
  if (needs.mpi != nullptr) {
    run_.open(0);
    run_.deal_out();
    team_ = std::make_unique<MpiTeam>(*needs.mpi, this->config().ranks.timeout);
  } else {
    take_threads(devices());
    team_ = start_threads(run_, {});
  }
  make_own();
  describe();
  plan_seconds_ = now_seconds() - start_;
}

void RankedSession::make_own() {
  const int threads = devices()[0].threads;
  threads_ = threads > 0 ? std::make_unique<ThreadTeam>(threads) : nullptr;
  try {
    own_ = std::make_unique<RankSession>(run_.setup(team_->calls()));
  } catch (...) {
    team_->fail();
  }
  planned_ = figures();
}

RankedSession::~RankedSession() {
  if (!own_) return;
  try {
    give({Kind::end}, [] {});
  } catch (const std::exception& error) {
    // The run has failed before, and its error has been thrown. The ranks end all the same.
    log_verbose(std::string("a failure ended the ranks: ") + error.what());
  }
}

void RankedSession::give(const RankOrder& order, FunctionRef<void()> own) {
  try {
    RankedRun::send(order, team_->calls().control);
    own();
  } catch (...) {
    team_->fail();
  }
}

void RankedSession::start() {
  require_memory();
  give({Kind::start}, [&] { own_->start(); });
  started_ = true;
}

void RankedSession::weights_changed() {
  // Before start(), weights are only changed on rank 0; start() shares them.
  if (!started_) return own_->learner().weights_changed();
  give({Kind::weights}, [&] { own_->share_weights(); });
}

void RankedSession::use_average(bool use) {
  if (!own_->trains() || config().optimizer.ema <= 0 || use == average_) return;
  average_ = use;
  if (!started_) return own_->learner().use_average(use);
  give({Kind::average, use}, [&] { own_->learner().use_average(use); });
}

// Optimisers of different kinds of devices may round differently. Then all ranks take the weights
// of rank 0 after each step, lest they drift apart.
void RankedSession::queue_step(int64_t step, double lr) {
  const bool mixed = run_.mixed();
  // The first step loads kernels; those after it are timed if the shares may change.
  const bool timed = balances() && steps_ >= 1 && steps_ <= kTimedSteps;
  give({Kind::step, mixed, timed, step, lr}, [&] {
    own_->step(step, lr, timed);
    if (mixed) own_->share_weights();
  });
  if (++steps_ == kTimedSteps + 1 && balances()) balance();
}

void RankedSession::take_losses(double& sum) {
  try {
    sum += early_losses_;
    early_losses_ = 0;
    own_->learner().take_losses(sum);
  } catch (...) {
    team_->fail();
  }
}

// ---- Balance.

bool RankedSession::balances() const {
  return config().ranks.shares.empty() && ranks() > 1 && config().epochs >= kWorthBalancing;
}

void RankedSession::balance() {
  const std::vector<RankFigures> all = figures();
  double slowest = 0, work = 0, speed = 0;
  std::vector<double> shares;
  for (int r = 0; r < ranks(); ++r) {
    const double seconds = std::max(all[r].kernel_seconds, 1e-9), own = run_.shares()[r];
    slowest = std::max(slowest, seconds);
    work += own;
    speed += own / seconds;
    shares.push_back(own / seconds);
  }
  const double even = work / speed;  // seconds of a step whose kernels take as long on all ranks
  const auto left = static_cast<double>(config().epochs - steps_);
  const std::string now = fmt::format("the slowest rank computes {} per step; in an even split, each would compute {}",
                                      human_seconds(slowest), human_seconds(even));
  // Cutting the graph again and planning take about as long as they did at the start.
  const double cost = run_.partition_seconds() + plan_seconds_;
  if (slowest < even * (1 + kTolerated) || (slowest - even) * left < cost) {
    log_info("shares stay as they are: " + now);
    return;
  }
  log_info("work is moved between ranks: " + now);
  move_work(shares);
}

void RankedSession::move_work(const std::vector<double>& shares) {
  own_->learner().take_losses(early_losses_);
  Parameters& parameters = own_->learner().parameters();
  const std::vector<float> weights(parameters.data(), parameters.data() + parameters.size());
  const OptimizerState state = own_->learner().optimizer();
  make_again(shares);
  std::copy(weights.begin(), weights.end(), own_->learner().parameters().data());
  own_->learner().optimizer() = state;
  start();
}

void RankedSession::make_again(const std::vector<double>& shares) {
  if (run_.needs().mpi == nullptr) {
    // A back end of a GPU keeps copies of the graph by their addresses, so devices are opened anew.
    give({Kind::end}, [] {});
    own_.reset();
    team_.reset();
    threads_.reset();  // all threads of the process deal out the nodes
    team_ = start_threads(run_, shares);
  } else {
    give({Kind::rebuild}, [&] {
      team_->calls().control.broadcast(0,
                                       {reinterpret_cast<const char*>(shares.data()), shares.size() * sizeof(double)});
      own_.reset();
    });
    run_.deal_out(shares);
  }
  make_own();
}

Scores RankedSession::evaluate(bool with_loss) {
  Scores scores;
  give({Kind::evaluate, with_loss}, [&] { scores = own_->evaluate(with_loss); });
  return scores;
}

const float* RankedSession::predict() {
  rows_.resize(static_cast<size_t>(dataset().num_nodes() * dataset().num_classes));
  give({Kind::predict}, [&] { own_->predict("logits", rows_.data()); });
  return rows_.data();
}

const float* RankedSession::embeddings() {
  if (own_->predictor().plan().dfg.find_output("embedding") < 0) {
    throw UserError("--model " + config().model.model, "has no hidden layer whose values could be written",
                    "use --layers 2 or more");
  }
  rows_.resize(static_cast<size_t>(dataset().num_nodes() * embedding_width()));
  give({Kind::embeddings}, [&] { own_->predict("embedding", rows_.data()); });
  return rows_.data();
}

int64_t RankedSession::embedding_width() const {
  const Dfg& dfg = own_->predictor().plan().dfg;
  return dfg[dfg.output("embedding")].type.row_size();
}

// ---- Figures.

std::vector<RankFigures> RankedSession::figures() {
  std::vector<RankFigures> all;
  give({Kind::figures}, [&] { all = own_->figures(); });
  return all;
}

void RankedSession::describe() {
  const int64_t nodes = dataset().num_nodes(), edges = dataset().graph.num_edges();
  for (int r = 0; r < ranks(); ++r) {
    const RankFigures& rank = planned_[r];
    run_.notes().push_back(fmt::format(
        "rank {} ({}): {} nodes ({:.1f} %), {} edges ({:.1f} %), reads {} nodes of other ranks, {} of memory", r,
        devices()[r].text, human_count(rank.vertices), percent(rank.vertices, nodes), human_count(rank.edges),
        percent(rank.edges, edges), human_count(rank.halo), size_of(rank.device_bytes)));
  }
  if (!own_->travels().empty()) run_.notes().push_back(own_->travels());
  if (config().plan == "auto") {
    run_.notes().emplace_back(
        "plans for several devices are made by rules, because a rank's kernels cannot be timed without other ranks");
  }
}

std::vector<MemoryItem> RankedSession::memory() const {
  std::vector<MemoryItem> items;
  for (int r = 0; r < ranks(); ++r) {
    if (run_.device(r) != nullptr && run_.device(r)->on_host() == own_->device().on_host())
      items.push_back({fmt::format("rank {} ({})", r, devices()[r].text), planned_[r].device_bytes});
  }
  return items;
}

HostMemory RankedSession::host() const {
  HostMemory host;
  const Dataset& d = dataset();
  int64_t features = 0;
  for (const FeatureLeaf& leaf : run_.data().leaves) features += leaf.values.bytes();
  host.gpu = !own_->device().on_host();
  host.trains = run_.needs().training;
  host.training = {{"graph", d.graph.bytes()},
                   {"features", features},
                   {"labels and splits", run_.data().label_bytes()},
                   {"rank of each node", run_.partition().part.size() * 4},
                   {"best weights", own_->learner().parameter_bytes()}};
  for (int r = 0; r < ranks(); ++r) {
    if (run_.device(r) == nullptr) continue;  // another process
    const bool on_host = run_.device(r)->on_host();
    host.training.push_back({fmt::format("rank {} ({})", r, devices()[r].text),
                             on_host ? planned_[r].device_bytes : planned_[r].host_bytes});
  }
  host.held = d.graph.bytes() + features + run_.data().label_bytes() + run_.partition().part.size() * 4;
  host.evaluating = {{"scores being ranked", ranking_bytes(metric(), d)},
                     {"predictions of all ranks", own_->adds_up() ? 0 : d.num_nodes() * d.num_classes * 4}};
  return host;
}

// Virtual devices of one GPU share its memory, and ranks on cores share that of the host.
void RankedSession::require_memory() const {
  if (run_.needs().mpi != nullptr) return;  // every process counts its own memory
  std::map<int, int64_t> needed;            // by the number of the GPU; -1 is the host
  const auto memory_of = [&](int r) {
    return run_.device(r)->on_host() ? -1 : choose_device(devices()[r].device, config().precision).index;
  };
  for (int r = 0; r < ranks(); ++r) needed[memory_of(r)] += planned_[r].device_bytes;
  for (int r = 0; r < ranks(); ++r) {
    const RunDevice& device = *run_.device(r);
    const int64_t free = device.memory_limit(config(), device.free_at_start());
    const int64_t need = needed[memory_of(r)];
    if (need <= free) continue;
    throw UserError(
        "memory",
        fmt::format("the ranks on {} need {} together, but only {} may be used",
                    memory_of(r) < 0 ? "the host" : fmt::format("cuda:{}", memory_of(r)), size_of(need), size_of(free)),
        "use more devices, or a smaller --hidden or --layers");
  }
}

}  // namespace nacre
