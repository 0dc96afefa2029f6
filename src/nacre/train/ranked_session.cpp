#include "nacre/train/ranked_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

using Kind = RankOrder::Kind;

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Gives the process as many threads as its ranks have together.
void take_threads(const std::vector<RankDevice>& devices) {
  int threads = 0;
  for (const RankDevice& rank : devices) threads += std::max(1, rank.threads);
  set_num_threads(std::max(threads, num_threads()));
}

}  // namespace

RankedSession::RankedSession(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : start_(now_seconds()), run_(std::move(dataset), std::move(config), needs) {
  if (needs.mpi != nullptr && !this->config().ranks.processes.empty()) {
    auto team = std::make_unique<ProcessTeam>(*needs.mpi, this->config().ranks.processes, this->config().ranks.timeout);
    grouped_ = team.get();
    team_ = std::move(team);
    join(nullptr);
  } else if (needs.mpi != nullptr) {
    auto team = std::make_unique<MpiTeam>(*needs.mpi, this->config().ranks.timeout);
    processes_ = team.get();
    team_ = std::move(team);
    join(nullptr);
  } else {
    take_threads(devices());
    team_ = start_threads(nullptr);
  }
  make_own();
  choose_first_shares();
  describe();
  plan_seconds_ = now_seconds() - start_;
}

void RankedSession::join(const NewShares* wanted) {
  try {
    if (grouped_ == nullptr) return run_.join(*processes_, wanted);
    run_.join(*grouped_, wanted);
    run_.start_others(*grouped_);
  } catch (...) {
    team_->fail();
  }
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
  give({Kind::weights}, [&] { own_->share_state(); });
}

void RankedSession::use_average(bool use) {
  if (!own_->trains() || config().optimizer.ema <= 0 || use == average_) return;
  average_ = use;
  if (!started_) return own_->learner().use_average(use);
  give({Kind::average, use}, [&] { own_->learner().use_average(use); });
}

// Optimisers of different kinds of devices may round differently. If the ranks have devices of
// several kinds, all ranks take the weights of rank 0 after each step, so that they stay equal.
void RankedSession::queue_step(int64_t step, double lr) {
  const bool mixed = run_.mixed();
  // In runs that are long enough, the kernels of the second step and of the two steps after it are
  // timed. The first step would be no measure, because it also loads kernels.
  const bool timed = times_kernels() && steps_ >= 1 && steps_ <= kTimedSteps;
  give({Kind::step, mixed, timed, step, lr}, [&] {
    own_->step(step, lr, timed);
    if (mixed) own_->share_weights();
  });
  // One more step shows how long rows travel when kernels are not timed.
  if (++steps_ == kTimedSteps + 2 && times_kernels()) balance(step);
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
  if (own_->predictor().plan().dfg.find_output("embedding") < 0) refuse_embeddings(config());
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

std::string RankedSession::take_rank_times() {
  std::vector<RankTimes> all;
  give({Kind::times}, [&] { all = own_->all_times(); });
  nlohmann::json list = nlohmann::json::array();
  for (size_t r = 0; r < all.size(); ++r) {
    // Ranks that were made anew count from 0 again, so there is nothing to subtract.
    const RankTimes before = told_.empty() || told_[r].count > all[r].count ? RankTimes() : told_[r];
    list.push_back({{"steps", all[r].count - before.count},
                    {"computing_s", all[r].computing() - before.computing()},
                    {"communication_s", all[r].communication - before.communication},
                    {"reduction_s", all[r].reduction - before.reduction},
                    {"waiting_s", all[r].waiting - before.waiting}});
  }
  told_ = std::move(all);
  return list.dump();
}

int RankedSession::largest() const {
  const auto fewer = [](const RankFigures& a, const RankFigures& b) { return a.edges < b.edges; };
  return static_cast<int>(std::max_element(planned_.begin(), planned_.end(), fewer) - planned_.begin());
}

void RankedSession::time_steps(int steps) {
  for (int step = 0; step <= steps; ++step) {
    const bool timed = step > 0;
    give({Kind::step, false, timed, step, 0}, [&] { own_->step(step, 0, timed); });
  }
  figures();  // waits until all ranks have ended their last step
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
  for (const std::string& line : own_->placement_notes()) run_.notes().push_back(line);
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
    if (run_.device(r) == nullptr) continue;  // another process drives this rank
    const bool on_host = run_.device(r)->on_host();
    host.training.push_back({fmt::format("rank {} ({})", r, devices()[r].text),
                             on_host ? planned_[r].device_bytes : planned_[r].host_bytes});
  }
  host.held = own_->data_bytes();
  host.evaluating = {{"scores being ranked", ranking_bytes(metric(), d)},
                     {"predictions of all ranks", own_->adds_up() ? 0 : d.num_nodes() * d.num_classes * 4}};
  return host;
}

// Ranks of one process may share a memory: virtual devices of one GPU share that of the GPU, and
// ranks on cores share that of the host. If MPI has started the processes, each rank is compared
// with the limit of its own process.
void RankedSession::require_memory() const {
  if (processes_ != nullptr || grouped_ != nullptr) {
    for (int r = 0; r < ranks(); ++r) {
      if (planned_[r].device_bytes <= planned_[r].memory_limit) continue;
      throw UserError(
          "memory",
          fmt::format("rank {} ({}) needs {}, but only {} may be used{}", r, devices()[r].text,
                      size_of(planned_[r].device_bytes), size_of(std::max<int64_t>(0, planned_[r].memory_limit)),
                      devices()[r].device == "cpu" ? " beside the data of the whole graph" : ""),
          "use more processes, other --shares, a smaller --hidden, fewer --layers, or raise --memory-limit");
    }
    return;
  }
  std::map<int, int64_t> needed;  // bytes by the number of the GPU; -1 stands for the host
  const auto memory_of = [&](int r) {
    return run_.device(r)->on_host() ? -1 : choose_device(devices()[r].device, devices()[r].precision).index;
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
