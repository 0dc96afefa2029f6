// RankedSession: a run over several devices, as the training loop and the commands see it. This
// object is rank 0. The other ranks follow: they wait for orders of rank 0 and carry them out at the
// same time as rank 0 does. In one process they are threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/base/thread_team.h"
#include "nacre/cluster/rank_threads.h"
#include "nacre/train/rank_devices.h"
#include "nacre/train/rank_session.h"
#include "nacre/train/run_data.h"
#include "nacre/train/vertex_model.h"

namespace nacre {

class RankedSession : public VertexModel {
 public:
  // Completes `config`. Throws UserError if data, model and devices do not fit together.
  RankedSession(Dataset dataset, RunConfig config, const SessionNeeds& needs);
  ~RankedSession() override;
  RankedSession(const RankedSession&) = delete;
  RankedSession& operator=(const RankedSession&) = delete;

  const RunConfig& config() const override { return run_.config; }
  const Dataset& dataset() const override { return run_.dataset; }
  const std::vector<std::string>& notes() const override { return run_.notes; }
  const std::string& metric() const override { return run_.metric; }
  const RunDevice& device() const override { return own_->device(); }
  double plan_seconds() const override { return plan_seconds_; }
  const PlanAnswer& planning() const override { return own_->planning(); }
  const Plan& plan() const override { return executor().plan(); }
  Plan plan_as_bound() const override { return executor().plan_as_bound(); }
  std::string fingerprint() const override { return run_.fingerprint(); }

  std::vector<MemoryItem> memory() const override;
  HostMemory host() const override;
  void start() override;

  Parameters& parameters() override { return own_->learner().parameters(); }
  OptimizerState& optimizer() override { return own_->learner().optimizer(); }
  void weights_changed() override;
  void use_average(bool use) override;
  void queue_step(int64_t step, double lr) override;
  void take_losses(double& sum) override;
  Scores evaluate(bool with_loss) override;
  const float* predict() override;
  const float* embeddings() override;
  int64_t embedding_width() const override;

  const std::vector<RankDevice>& devices() const { return devices_; }
  // Returns the share of the work that each rank was given; they add up to 1.
  std::vector<double> shares() const;
  // Returns the figures of all ranks so far. Waits for the other ranks.
  std::vector<RankFigures> figures();

 private:
  struct Order;

  const Executor& executor() const { return own_->trains() ? own_->trainer() : own_->predictor(); }
  RankSetup setup_of(int rank, const RankThreads::Calls& calls) const;
  // What a rank other than 0 does: it is made, and then carries out orders until the last one.
  void follow(const RankThreads::Calls& calls);
  // Carries out an order. Returns false after the last one.
  static bool carry_out(RankSession& rank, const Order& order);
  // Gives the order to all ranks and carries out the part of rank 0 by calling `own`.
  void give(const Order& order, FunctionRef<void()> own);
  // Throws UserError if ranks that share a memory do not fit into it together.
  void require_memory() const;
  void describe();

  double start_;
  RunData run_;
  SessionNeeds needs_;
  std::vector<RankDevice> devices_;
  std::vector<std::shared_ptr<GraphViews>> views_;
  std::vector<std::shared_ptr<const RunDevice>> opened_;
  Partition partition_;
  std::unique_ptr<ThreadTeam> team_;  // of rank 0
  std::unique_ptr<RankThreads> threads_;
  std::unique_ptr<RankSession> own_;
  std::vector<RankFigures> planned_;  // figures of all ranks before the first step
  bool mixed_ = false;    // ranks compute on different kinds of devices
  bool started_ = false;  // start() has been called
  bool average_ = false;  // the average of the weights is in use
  std::vector<float> rows_;
  double plan_seconds_ = 0;
};

}  // namespace nacre
