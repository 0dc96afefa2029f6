#include "nacre/train/ranked_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/log.h"

namespace nacre {
namespace {

using Kind = RankOrder::Kind;

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

RankedSession::RankedSession(Dataset dataset, RunConfig config, const SessionNeeds& needs)
    : RankedModel(std::move(dataset), std::move(config), needs) {
  connect();
  make_session();
  choose_first_shares();
  describe();
  plan_seconds_ = now_seconds() - start_;
}

void RankedSession::make_session() {
  make_own([this] { own_ = std::make_unique<RankSession>(run_.setup(team_->calls())); });
}

RankedSession::~RankedSession() {
  if (own_) end_ranks();
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
  // timed. The first step is not timed, because it also loads kernels.
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
    fail();
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

std::vector<RankTimes> RankedSession::all_times() {
  std::vector<RankTimes> all;
  give({Kind::times}, [&] { all = own_->all_times(); });
  return all;
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
  for (MemoryItem& item : host_of_ranks()) host.training.push_back(std::move(item));
  host.held = own_->data_bytes();
  host.evaluating = {{"scores being ranked", ranking_bytes(metric(), d)},
                     {"predictions of all ranks", own_->adds_up() ? 0 : d.num_nodes() * d.num_classes * 4}};
  return host;
}

void RankedSession::require_memory() const {
  RankedModel::require_memory(in_processes() ? "more processes, other --shares, a smaller --hidden, fewer --layers"
                                             : "more devices, or a smaller --hidden or --layers");
}

}  // namespace nacre
