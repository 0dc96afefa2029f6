// Plans a model without training it, on the whole graph or in mini-batches, for nacre plan and
// nacre explain.
#pragma once

#include <memory>
#include <vector>

#include "nacre/train/batch_session.h"
#include "nacre/train/ranked_batches.h"
#include "nacre/train/ranked_session.h"
#include "nacre/train/session.h"

namespace nacre::cli {

class Planned {
 public:
  // Opens a session, which plans the model. With `evaluation`, the memory of scoring counts, too.
  Planned(Dataset dataset, const RunConfig& config, bool evaluation);

  VertexModel& model() const { return *model_; }
  // Returns the session of a run on the whole graph and one device; null for other runs.
  Session* whole() const { return whole_; }
  // Returns the session of mini-batches; null if the run is on the whole graph. With several
  // devices, it is the session of rank 0.
  BatchSession* batches() const { return batches_; }
  // Returns the session of a run on the whole graph and several devices; null for other runs.
  RankedSession* several() const { return several_; }
  // Returns the plan. If there are several devices, it is the plan of the rank with the most edges.
  const Plan& plan() const;
  // Returns the device that plan() was made for.
  const RunDevice& device() const;
  // Returns what plan() was made on: the whole graph, the first batch, or the part of the rank with
  // the most edges.
  const Blocks& blocks() const { return *blocks_; }
  const std::shared_ptr<GraphViews>& views() const { return views_; }
  // Returns the model with its gradient, before any planning.
  Dfg written() const;
  // Binds the leaves of an executor of any plan of this model.
  void bind(Executor& executor);
  // Returns the seconds of every kernel in a step: the median over `steps` steps or, with several
  // devices, the mean on the rank with the most edges. Negative if the kernel did not run.
  std::vector<double> measure_kernels(int steps);
  // Returns the plan as it was bound by the executor that measure_kernels() has timed.
  const Plan& bound_plan() const { return bound_plan_; }
  // Returns the candidates that were compared with the plan: those of the search that found it or,
  // if there was none, of a search that is run now.
  std::vector<Candidate> candidates(const CostModel& model, int64_t cache_bytes, double budget);

 private:
  std::shared_ptr<Backend> timing_backend() const;
  // Returns the session of the rank with the most edges.
  const RankSession& largest() const { return several_->rank(several_->largest()); }
  // Runs `steps` steps on all ranks and returns the mean seconds of each kernel of the rank with
  // the most edges.
  std::vector<double> measure_rank(int steps);

  std::unique_ptr<VertexModel> model_;
  Session* whole_ = nullptr;
  BatchSession* batches_ = nullptr;
  RankedSession* several_ = nullptr;
  std::vector<Sample> trial_;  // the batch that kernels are timed on
  std::vector<LeafValue> leaves_;
  std::unique_ptr<Blocks> blocks_;
  std::shared_ptr<GraphViews> views_;
  Plan bound_plan_;
};

}  // namespace nacre::cli
