// A model that is planned and not trained, on the whole graph or in mini-batches: what nacre plan
// and explain look at.
#pragma once

#include <memory>
#include <vector>

#include "nacre/train/batch_session.h"
#include "nacre/train/session.h"

namespace nacre::cli {

class Planned {
 public:
  // `evaluation`: the memory of scoring counts, too.
  Planned(Dataset dataset, const RunConfig& config, bool evaluation);

  VertexModel& model() const { return *model_; }
  Session* whole() const { return whole_; }           // null for mini-batches
  BatchSession* batches() const { return batches_; }  // null for the whole graph
  // the whole graph, or the first batch that was planned on
  const Blocks& blocks() const { return *blocks_; }
  const std::shared_ptr<GraphViews>& views() const { return views_; }
  // The model with its gradient, before any planning.
  Dfg written() const;
  // Gives an executor of any plan of this model its leaves.
  void bind(Executor& executor);
  // Medians over some steps of every kernel's seconds; negative where it did not run.
  std::vector<double> measure_kernels(int steps);
  // What else was compared: the search's own candidates, or those of a search that is run for them
  // alone.
  std::vector<Candidate> candidates(const CostModel& model, int64_t cache_bytes, double budget);

 private:
  std::shared_ptr<Backend> timing_backend() const;

  std::unique_ptr<VertexModel> model_;
  Session* whole_ = nullptr;
  BatchSession* batches_ = nullptr;
  std::vector<Sample> trial_;  // one batch
  std::vector<LeafValue> leaves_;
  std::unique_ptr<Blocks> blocks_;
  std::shared_ptr<GraphViews> views_;
};

}  // namespace nacre::cli
