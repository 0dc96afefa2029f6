// Session: a data set and a model made ready to train: the graph is prepared, DFGs are built and
// differentiated, plans are made, memory is planned. Building a session allocates no training
// memory; memory() is the exact bill; start() allocates it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"
#include "nacre/train/device.h"
#include "nacre/train/learner.h"
#include "nacre/train/parameters.h"
#include "nacre/train/run_data.h"
#include "nacre/train/scorer.h"
#include "nacre/train/vertex_model.h"
#include "nacre/train/vertex_order.h"

namespace nacre {

class Session : public VertexModel {
 public:
  // Completes `config` (sizes, defaults). Throws UserError if data and model do not fit together.
  Session(Dataset dataset, RunConfig config, const SessionNeeds& needs = {});

  const RunConfig& config() const override { return run_.config; }
  const Dataset& dataset() const override { return run_.dataset; }
  const std::vector<std::string>& notes() const override { return run_.notes; }
  const std::string& metric() const override { return run_.metric; }
  const Blocks& blocks() const { return *blocks_; }
  const std::shared_ptr<GraphViews>& views() const { return views_; }
  const RunDevice& device() const override { return *device_; }
  const std::shared_ptr<Backend>& backend() const { return device_->backend(); }
  double plan_seconds() const override { return plan_seconds_; }
  const PlanAnswer& planning() const override { return planning_; }

  std::vector<MemoryItem> memory() const override;
  HostMemory host() const override;
  void start() override;

  Parameters& parameters() override { return learner_->parameters(); }
  OptimizerState& optimizer() override { return learner_->optimizer(); }
  void weights_changed() override { learner_->weights_changed(); }
  void use_average(bool use) override { learner_->use_average(use); }
  void queue_step(int64_t step, double lr) override;
  void take_losses(double& sum) override { learner_->take_losses(sum); }
  Scores evaluate(bool with_loss) override;
  const float* predict() override;
  const float* embeddings() override;
  int64_t embedding_width() const override;

  Executor& trainer() { return *train_; }
  Executor& predictor() { return *eval_; }
  const Plan& plan() const override { return (train_ ? train_ : eval_)->plan(); }
  Plan plan_as_bound() const override { return (train_ ? train_ : eval_)->plan_as_bound(); }
  // Binds the leaves of an executor of any plan of this model.
  void bind(Executor& executor);
  std::string fingerprint() const override { return run_.fingerprint(); }

 private:
  void order_vertices(const Dfg& dfg, const std::string& resumed_plan);
  const float* in_given_order(const float* rows, int64_t width, Tensor& given) const;
  int64_t given_bytes() const;  // bytes of the results in the given order; 0 if no order was chosen
  Plan training_plan(const Dfg& dfg, const std::string& resumed_plan);
  void fit(const Dfg& dfg);
  int64_t memory_limit() const;  // bytes that the run may take, including what it already holds
  void make_targets();
  void start_scores();

  double start_;
  RunData run_;
  std::unique_ptr<Blocks> blocks_;
  std::shared_ptr<GraphViews> views_;
  std::shared_ptr<const RunDevice> device_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<Executor> train_;
  std::unique_ptr<Executor> eval_;
  std::unique_ptr<Scorer> scorer_;  // scores the results of eval_
  Tensor loss_weight_;
  Tensor labels_;
  VertexOrder order_;      // the numbers of the vertices in run_, blocks_ and all executors
  bool predicts_ = false;  // whether somebody asks for results in the given order
  // Results in the order of the data set; undefined if vertices keep their numbers.
  Tensor given_scores_, given_embeddings_;
  ConstantPool constants_;
  // Says how the training plan was found. The plan itself was moved to the executor.
  PlanAnswer planning_;
  double plan_seconds_ = 0;
};

}  // namespace nacre
