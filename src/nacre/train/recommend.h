// RecommendSession: users and items of a data set with held-out pairs, made ready to train
// embeddings of both. A step runs the model on the whole graph and the BPR loss
// (model/recommender.h) on one batch of triples, so an epoch has as many steps as there are
// batches. One plan serves all of them; it is bound to the block of each batch before its turn.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/base/prefetcher.h"
#include "nacre/data/dataset.h"
#include "nacre/engine/block_runner.h"
#include "nacre/train/bill.h"
#include "nacre/train/device.h"
#include "nacre/train/inputs.h"
#include "nacre/train/learner.h"
#include "nacre/train/planner.h"
#include "nacre/train/ranking.h"
#include "nacre/train/trainee.h"

namespace nacre {

struct RecommendOptions {
  int64_t batch_size = 2048;  // number of triples of a step
  // The weight of the L2 penalty, which is half the squares of the first embeddings of a batch's
  // triples.
  double embedding_decay = 1e-4;
  double init_std = 0.1;  // deviation of the normal distribution that learned rows are drawn from
  Positives positives = Positives::users;
};
void check_recommend(const RecommendOptions& options);  // throws UserError for bad settings

struct RecommendNeeds {
  bool training = true;      // false: only embeddings and their scores
  std::string resumed_plan;  // plan file of the run that is continued
};

class RecommendSession : public Trainee {
 public:
  // Completes `config` (sizes, defaults). Throws UserError if data and model do not fit together.
  RecommendSession(Dataset dataset, RunConfig config, const RecommendOptions& options,
                   const RecommendNeeds& needs = {});

  const RunConfig& config() const override { return config_; }
  std::string settings_json() const override;
  const std::string& metric() const override { return metric_name_; }
  const Plan& plan() const override { return runner_ ? runner_->plan() : eval_->plan(); }
  std::string fingerprint() const override;
  const Dataset& dataset() const { return dataset_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const PlanAnswer& planning() const { return planning_; }
  const RunDevice& device() const { return *device_; }
  double plan_seconds() const { return plan_seconds_; }

  std::vector<MemoryItem> memory() const;
  HostMemory host() const;
  // Returns the bytes that finding the k best items of all users takes.
  int64_t ranking_bytes(int64_t k) const;
  // Throws UserError if memory() does not fit; otherwise allocates it and computes the constants.
  void start();

  Parameters& parameters() override { return learner_->parameters(); }
  OptimizerState& optimizer() override { return learner_->optimizer(); }
  void weights_changed() override { learner_->weights_changed(); }
  void use_average(bool use) override { learner_->use_average(use); }
  int64_t steps_per_epoch() const override { return batches_->num_batches(); }
  void begin_epoch(int64_t epoch, int64_t first) override;
  // Queues the next batch of the epoch.
  void queue_step(int64_t step, double lr) override;
  void take_losses(double& sum) override { learner_->take_losses(sum); }
  // Trains a whole epoch and returns the mean loss of its triples.
  double train_epoch(int64_t epoch, double lr);
  // Returns the metric of the test and of the validation pairs; test_ranking() and val_ranking()
  // have the details.
  Scores evaluate(bool with_loss) override;
  const RankingScores& test_ranking() const { return test_ranking_; }
  const RankingScores& val_ranking() const { return val_ranking_; }

  // Returns the embeddings of all vertices with the current weights: [num_nodes,
  // embedding_width()], valid until the next step.
  const float* embeddings();
  int64_t embedding_width() const;
  const UserItemSides& sides() const { return sides_; }
  const UserItems& taken() const { return taken_; }

 private:
  void complete_model();
  void make_training(const std::string& resumed_plan);
  void make_evaluation();
  void draw_embeddings();
  Plan training_plan(const Dfg& dfg, const std::string& resumed_plan);
  Blocks batch_blocks(int64_t batch) const;
  template <class Binder>  // Binder is Executor or BlockRunner
  void bind(Binder& binder);
  template <class Binder>
  void bind_training(Binder& binder);
  std::vector<LeafValue> batch_leaves(int64_t batch) const;
  void start_training();

  RunConfig config_;
  RecommendOptions options_;
  Dataset dataset_;
  uint64_t data_fingerprint_ = 0;
  std::vector<std::string> notes_;
  RankingMetric metric_;
  std::string metric_name_;
  int model_blocks_ = 0;
  UserItemSides sides_;
  UserItems taken_;
  UserItems test_items_;
  UserItems val_items_;
  std::vector<FeatureLeaf> leaves_;
  std::unique_ptr<TripleBatches> batches_;

  std::shared_ptr<GraphViews> views_;
  std::shared_ptr<const RunDevice> device_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<BlockRunner> runner_;
  int64_t step_arena_ = 0, step_constants_ = 0;  // bytes for a batch
  std::unique_ptr<Executor> eval_;
  // Leaves of the block of triples; the last batch has weights of its own.
  Tensor user_share_, item_share_, target_, weight_, last_weight_;
  std::shared_ptr<void> gradient_memory_;  // memory of the gradients of all batches
  RankingScores test_ranking_;
  RankingScores val_ranking_;
  PlanAnswer planning_;
  double plan_seconds_ = 0;
  // The prefetcher uses all the members above, so it is destroyed first.
  std::unique_ptr<Prefetcher<BlockRunner::Ready>> prefetcher_;
};

}  // namespace nacre
