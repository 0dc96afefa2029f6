// The functions of RankedSession that choose shares and move work between ranks.
#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/train/precision_choice.h"
#include "nacre/train/ranked_session.h"
#include "nacre/train/share_report.h"

namespace nacre {
namespace {

using Kind = RankOrder::Kind;

// A run of fewer epochs than this keeps its first shares and times no steps.
constexpr int kWorthBalancing = 10;

// Returns the times that the stored models predict for the parts as they are; an empty list if a
// model is missing.
std::vector<PartTime> modelled(const std::vector<PartReport>& parts) {
  std::vector<PartTime> times;
  for (const PartReport& part : parts) {
    if (!part.model) return {};
    times.push_back({part.model->predict(part.features), part.exchange_seconds});
  }
  return times;
}

}  // namespace

bool RankedSession::times_kernels() const {
  return (ranks() > 1 || run_.chooses_precisions()) && config().epochs >= kWorthBalancing;
}

void RankedSession::choose_first_shares() {
  if (!run_.chooses_shares() || ranks() < 2 || !own_->trains()) return;
  std::vector<std::string> parts;
  give({Kind::describe, true}, [&] { parts = own_->describe_parts(true); });
  if (parts.empty()) return;
  const std::vector<PartReport> reports = part_reports(devices(), planned_, planned_, parts);
  const ShareChoice found = balance_shares(reports, {.row_work = config().ranks.partition.row_work,
                                                     .steps_left = static_cast<double>(config().epochs),
                                                     .cost_seconds = now_seconds() - start_});
  run_.notes().push_back("stored performance models: " + found.reason);
  predicted_ = found.moves ? found.then : found.now;
  if (found.moves) make_again({found.shares, found.row_work, {}});
}

void RankedSession::balance(int64_t step) {
  if (moved_ || (!run_.chooses_shares() && !run_.chooses_precisions())) return;
  const std::vector<RankFigures> now = figures();
  std::vector<std::string> parts;
  give({Kind::describe, false}, [&] { parts = own_->describe_parts(false); });
  const std::vector<PartReport> reports = part_reports(devices(), planned_, now, parts);
  // Moving work cuts the graph and plans again, which takes about as long as it did at the start.
  const BalanceSettings settings{.row_work = config().ranks.partition.row_work,
                                 .steps_left = static_cast<double>(config().epochs - (step + 1)),
                                 .cost_seconds = run_.partition_seconds() + plan_seconds_,
                                 .moves_shares = run_.chooses_shares()};
  const PrecisionChoice precision = choose_precisions(reports, settings);
  if (run_.chooses_precisions()) log_info(precision.reason);
  const ShareChoice& found = precision.shares;
  for (const std::string& device : found.left_out) log_info(device);
  predicted_ = found.moves ? found.then : precision.switches() ? found.now : modelled(reports);
  if (run_.chooses_shares())
    log_info((found.moves ? "work is moved between ranks: " : "shares stay as they are: ") + found.reason);
  if (!found.moves && !precision.switches()) return;
  moved_ = true;
  // If the shares stay, the graph is cut as before, and only the precisions change.
  move_work(found.moves ? NewShares{found.shares, found.row_work, precision.bf16}
                        : NewShares{run_.shares(), config().ranks.partition.row_work, precision.bf16});
}

void RankedSession::move_work(const NewShares& wanted) {
  own_->learner().take_losses(early_losses_);
  Parameters& parameters = own_->learner().parameters();
  const std::vector<float> weights(parameters.data(), parameters.data() + parameters.size());
  const OptimizerState state = own_->learner().optimizer();
  // If the new parts do not fit, the shares in use are restored. The graph is then cut as at the
  // start, so the first partition comes from the cache or is made again.
  const NewShares before{run_.shares(), config().ranks.partition.row_work, run_.switched(), true};
  make_again(wanted);
  try {
    require_memory();
  } catch (const UserError& error) {
    log_info(std::string("shares and precisions stay as they were: ") + error.what());
    predicted_.clear();
    make_again(before);
  }
  std::copy(weights.begin(), weights.end(), own_->learner().parameters().data());
  own_->learner().optimizer() = state;
  start();
}

void RankedSession::make_again(const NewShares& wanted) {
  if (!in_processes()) {
    // The back end of a GPU finds its copies of the graph by the addresses of arrays, and new parts
    // have new addresses. So devices are opened anew.
    give({Kind::end}, [] {});
    own_.reset();
    team_.reset();
    // Frees the threads of the ranks, so that all threads of the process deal out the nodes.
    threads_.reset();
    team_ = start_threads(&wanted);
  } else {
    try {
      RankedRun::rebuild(wanted, team_->calls().control);
      own_.reset();
      if (grouped_ != nullptr) grouped_->wait();
    } catch (...) {
      fail();
    }
    join(&wanted);
  }
  steps_ = 0;
  make_session();
}

}  // namespace nacre
