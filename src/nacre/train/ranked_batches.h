// RankedBatchSession: mini-batch training over several devices, as the training loop and the
// commands see it. This object is rank 0. The batches of an epoch are those of one device, and each
// step joins several of them: every rank computes its own, and all apply the sum of the gradients.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/train/batch_rank.h"
#include "nacre/train/ranked_model.h"

namespace nacre {

class RankedBatchSession : public RankedModel {
 public:
  // Completes `config`. Throws UserError if data, model and devices do not fit together.
  RankedBatchSession(Dataset dataset, RunConfig config, const SessionNeeds& needs);
  ~RankedBatchSession() override;
  RankedBatchSession(const RankedBatchSession&) = delete;
  RankedBatchSession& operator=(const RankedBatchSession&) = delete;

  const RunDevice& device() const override { return own().device(); }
  double plan_seconds() const override { return plan_seconds_; }
  const PlanAnswer& planning() const override { return own().planning(); }
  const Plan& plan() const override { return own().plan(); }

  HostMemory host() const override;
  void start() override;

  Parameters& parameters() override { return own().parameters(); }
  OptimizerState& optimizer() override { return own().optimizer(); }
  void weights_changed() override;
  // Only rank 0 evaluates, so only its weights change places with their average.
  void use_average(bool use) override { own().use_average(use); }
  int64_t steps_per_epoch() const override { return own().steps_per_epoch(); }
  int64_t batches_per_epoch() const override { return own().batches_per_epoch(); }
  int64_t batches_in_step(int64_t first) const override { return own().batches_in_step(first); }
  void expect_epochs(int64_t epochs) override { epochs_ = epochs; }
  // Keeps the epoch; the order to begin the next epoch sends it to the other ranks.
  void shuffle_from(int64_t epoch) override { shuffled_from_ = epoch; }
  void begin_epoch(int64_t epoch, int64_t first) override;
  void queue_step(int64_t step, double lr) override;
  void take_losses(double& sum) override;
  double train_step(int64_t step, double lr) override;
  std::string take_feature_rows() override { return own().take_feature_rows(); }
  std::string take_disk_reads() override { return own().take_disk_reads(); }
  Scores evaluate(bool with_loss) override;
  const float* predict() override;
  const float* embeddings() override { return own().embeddings(); }
  int64_t embedding_width() const override { return own().embedding_width(); }

  // Returns the session of rank 0.
  BatchSession& own() const { return own_->session(); }
  // Returns how many batches each rank computes in a step.
  const std::vector<int64_t>& counts() const { return run_.counts(); }
  std::vector<RankFigures> figures() override;

 private:
  std::vector<RankTimes> all_times() override;
  // Calls work() on rank 0, and tells the other ranks meanwhile to keep waiting, because work() may
  // take longer than they wait for an order.
  void work_alone(FunctionRef<void()> work);
  // If --shares auto is given and devices differ, times batches and shares them out by these times.
  void balance();

  std::unique_ptr<BatchRank> own_;
  bool started_ = false;  // start() has been called
  int64_t epochs_ = 0;
  int64_t shuffled_from_ = 0;  // the first epoch that is shuffled
  int64_t next_ = 0;           // first batch of the next step
  double plan_seconds_ = 0;
};

}  // namespace nacre
