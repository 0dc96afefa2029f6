#include "planned.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/engine/measure.h"
#include "nacre/train/rank_planning.h"
#include "nacre/train/recommend_batches.h"
#include "options.h"
#include "statistics.h"

namespace nacre::cli {

Planned::Planned(Dataset dataset, const RunConfig& config, bool evaluation) {
  if (is_recommendation(dataset)) {
    throw UserError(config.data,
                    "holds users and items, but nacre plan and nacre explain show only models that classify nodes",
                    "train a recommender with nacre train --model lightgcn; its memory is printed first");
  }
  const SessionNeeds needs{.evaluation = evaluation};
  if (config.mode == "minibatch") {
    if (config.ranks.several()) {
      auto session = std::make_unique<RankedBatchSession>(std::move(dataset), config, needs);
      batches_ = &session->own();
      model_ = std::move(session);
    } else {
      auto session = std::make_unique<BatchSession>(std::move(dataset), config, needs);
      batches_ = session.get();
      model_ = std::move(session);
    }
    trial_ = batches_->trial_batches(1);
    NACRE_CHECK(!trial_.empty(), "there is no batch to plan on");
    leaves_ = batches_->leaves(batches_->dfg(), trial_[0]);
    blocks_ = std::make_unique<Blocks>(batches_->blocks(trial_[0]));
    views_ = std::make_shared<GraphViews>();
  } else if (config.ranks.several()) {
    auto session = std::make_unique<RankedSession>(std::move(dataset), config, needs);
    several_ = session.get();
    blocks_ = std::make_unique<Blocks>(largest().part().blocks);
    views_ = largest().setup().views;
    model_ = std::move(session);
  } else {
    auto session = std::make_unique<Session>(std::move(dataset), config, needs);
    whole_ = session.get();
    blocks_ = std::make_unique<Blocks>(session->blocks());
    views_ = session->views();
    model_ = std::move(session);
  }
}

const Plan& Planned::plan() const { return several_ != nullptr ? largest().trainer().plan() : model_->plan(); }

const RunDevice& Planned::device() const { return several_ != nullptr ? largest().device() : model_->device(); }

Dfg Planned::written() const {
  if (several_ != nullptr) return rank_model(largest().setup().run, true, false);
  return whole_ != nullptr ? written_dfg(*whole_) : batches_->dfg();
}

void Planned::bind(Executor& executor) {
  if (whole_ != nullptr) {
    whole_->bind(executor);
  } else {
    batches_->bind(executor, leaves_);
  }
}

std::vector<double> Planned::measure_kernels(int steps) {
  std::vector<double> medians(plan().kernels.size(), -1);
  if (steps == 0) return medians;
  model_->start();
  if (several_ != nullptr) return measure_rank(steps);
  std::unique_ptr<Executor> batch;
  ConstantPool constants;
  if (batches_ != nullptr) {
    batch = batches_->runner().prepare(*blocks_);
    batches_->bind(*batch, leaves_);
    batch->allocate(batch->backend().allocate(batch->arena_bytes()), constants);
  }
  Executor& executor = batch ? *batch : whole_->trainer();
  std::vector<std::vector<double>> times(medians.size());
  for (int step = 0; step <= steps; ++step) {  // the first step warms up
    executor.reset_times();
    executor.run_timed({model_->config().seed, static_cast<uint64_t>(step)});
    for (size_t k = 0; step > 0 && k < times.size(); ++k) {
      if (executor.times()[k].runs > 0) times[k].push_back(executor.times()[k].seconds);
    }
  }
  for (size_t k = 0; k < times.size(); ++k) {
    if (!times[k].empty()) medians[k] = median(times[k]);
  }
  bound_plan_ = executor.plan_as_bound();
  return medians;
}

std::vector<double> Planned::measure_rank(int steps) {
  several_->time_steps(steps);
  const Executor& executor = largest().trainer();
  std::vector<double> means;
  for (const KernelTime& time : executor.times())
    means.push_back(time.runs > 0 ? time.seconds / static_cast<double>(time.runs) : -1);
  bound_plan_ = executor.plan_as_bound();
  return means;
}

// Returns a back end for timing other plans; null if batches are timed on a GPU, because the only
// back end there belongs to the session.
std::shared_ptr<Backend> Planned::timing_backend() const {
  if (whole_ != nullptr) return whole_->backend();
  return model_->device().on_host() ? make_cpu_backend(std::make_shared<GraphViews>()) : nullptr;
}

std::vector<Candidate> Planned::candidates(const CostModel& model, int64_t cache_bytes, double budget) {
  if (model_->planning().source == "searched") return model_->planning().search.candidates;
  // The kernels of other plans are not timed on several devices: a rank cannot run its kernels
  // without the other ranks.
  if (several_ != nullptr) return {};
  const std::shared_ptr<Backend> backend = timing_backend();
  if (!backend) return {};
  KernelTimer timer(*blocks_, backend, [this](Executor& executor) { bind(executor); });
  SearchOptions how;
  how.model = &model;
  how.cache_bytes = cache_bytes;
  how.epochs = static_cast<double>(std::max<int64_t>(1, model_->config().epochs * model_->steps_per_epoch()));
  how.budget_seconds = budget;
  how.measure = [&](const Plan& plan, size_t kernel) { return timer(plan, kernel); };
  const DeviceTraits device = backend->traits();
  how.device = &device;
  PlanOptions base;
  base.hoist = batches_ == nullptr;
  return search_plan(written(), *blocks_, base, how).candidates;
}

}  // namespace nacre::cli
