// RankedSession: a run over several devices, as the training loop and the commands see it. This
// object is rank 0. The other ranks follow: they wait for orders of rank 0 and carry them out at
// the same time as rank 0 does. They are threads of this process or processes that MPI started.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/base/function_ref.h"
#include "nacre/base/thread_team.h"
#include "nacre/train/ranked_run.h"
#include "nacre/train/vertex_model.h"

namespace nacre {

class RankedSession : public VertexModel {
 public:
  // Completes `config`. Throws UserError if data, model and devices do not fit together.
  RankedSession(Dataset dataset, RunConfig config, const SessionNeeds& needs);
  ~RankedSession() override;
  RankedSession(const RankedSession&) = delete;
  RankedSession& operator=(const RankedSession&) = delete;

  const RunConfig& config() const override { return run_.data().config; }
  const Dataset& dataset() const override { return run_.data().dataset; }
  const std::vector<std::string>& notes() const override { return run_.data().notes; }
  const std::string& metric() const override { return run_.data().metric; }
  const RunDevice& device() const override { return own_->device(); }
  double plan_seconds() const override { return plan_seconds_; }
  const PlanAnswer& planning() const override { return own_->planning(); }
  const Plan& plan() const override { return executor().plan(); }
  Plan plan_as_bound() const override { return executor().plan_as_bound(); }
  std::string fingerprint() const override { return run_.data().fingerprint(); }

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

  const std::vector<RankDevice>& devices() const { return run_.devices(); }
  int ranks() const { return static_cast<int>(devices().size()); }
  // Returns the share of the work that each rank was given; they add up to 1.
  const std::vector<double>& shares() const { return run_.shares(); }
  // Deals out the nodes again by these shares, and goes on with the weights and the optimiser as
  // they are. Must be called between two steps.
  void move_work(const std::vector<double>& shares);
  // Returns the figures of all ranks so far. Waits for the other ranks.
  std::vector<RankFigures> figures();

 private:
  const Executor& executor() const { return own_->trains() ? own_->trainer() : own_->predictor(); }
  // Gives the order to all ranks, and carries out the part of rank 0 by calling `own`.
  void give(const RankOrder& order, FunctionRef<void()> own);
  // Throws UserError if ranks that share a memory do not fit into it together.
  void require_memory() const;
  void describe();
  // Makes the session of rank 0, while the other ranks make theirs.
  void make_own();
  // Ends the sessions of all ranks, and makes them anew for other shares.
  void make_again(const std::vector<double>& shares);
  bool balances() const;  // whether shares may change while the run trains
  // Moves work between ranks, once, if the timed steps were out of balance (NU6, NU7).
  void balance();

  double start_;
  RankedRun run_;
  std::unique_ptr<RankTeam> team_;
  std::unique_ptr<ThreadTeam> threads_;  // of rank 0
  std::unique_ptr<RankSession> own_;
  std::vector<RankFigures> planned_;  // figures of all ranks before the first step
  bool started_ = false;              // start() has been called
  bool average_ = false;              // the average of the weights is in use
  int64_t steps_ = 0;                 // steps since start()
  double early_losses_ = 0;           // losses of steps before the ranks were made anew
  std::vector<float> rows_;
  double plan_seconds_ = 0;
};

}  // namespace nacre
