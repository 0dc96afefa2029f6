// RankedSession: a run over several devices on the whole graph, as the training loop and the
// commands see it. This object is rank 0.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/train/ranked_model.h"
#include "nacre/train/share_balance.h"

namespace nacre {

class RankedSession : public RankedModel {
 public:
  // Completes `config`. Throws UserError if data, model and devices do not fit together.
  RankedSession(Dataset dataset, RunConfig config, const SessionNeeds& needs);
  ~RankedSession() override;
  RankedSession(const RankedSession&) = delete;
  RankedSession& operator=(const RankedSession&) = delete;

  const RunDevice& device() const override { return own_->device(); }
  double plan_seconds() const override { return plan_seconds_; }
  const PlanAnswer& planning() const override { return own_->planning(); }
  const Plan& plan() const override { return executor().plan(); }
  Plan plan_as_bound() const override { return executor().plan_as_bound(); }

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

  // Returns which rows travel between ranks, and what other choices would cost.
  const PlacementChoice& placement() const { return own_->placement(); }
  // Returns the predicted times of a step of each rank with the shares in use; empty if none were
  // predicted.
  const std::vector<PartTime>& predicted() const { return predicted_; }
  // Deals out the nodes again by these shares, and goes on with the weights and the optimiser as
  // they are. If the new parts do not fit the devices, the run goes on with the shares in use. May
  // only be called between two steps.
  void move_work(const NewShares& wanted);
  std::vector<RankFigures> figures() override;
  // Returns the session of a rank of this process. The caller may read it until the next call that
  // waits for other ranks.
  const RankSession& rank(int number) const { return number == 0 ? *own_ : *run_.session(number); }
  // Returns the rank with the most edges; if several have as many, the first of them. Its plan is
  // the plan of all ranks.
  int largest() const;
  // Runs steps whose kernels are timed on all ranks, after one that loads the kernels. The weights
  // stay as they are. start() must have been called.
  void time_steps(int steps);

 private:
  const Executor& executor() const { return own_->trains() ? own_->trainer() : own_->predictor(); }
  std::vector<RankTimes> all_times() override;
  void require_memory() const;
  void describe();
  // Makes the session of rank 0, while the other ranks make theirs.
  void make_session();
  // Ends the sessions of all ranks, and makes them anew for other shares.
  void make_again(const NewShares& wanted);
  bool times_kernels() const;  // whether the run is long enough for timed steps
  // Chooses shares by stored performance models, if there is one for the device of every rank (NU2,
  // NU3).
  void choose_first_shares();
  // Moves work between ranks, once, if other shares are predicted to be faster (NU6). `step` is the
  // last step of the run so far.
  void balance(int64_t step);

  std::unique_ptr<RankSession> own_;
  bool started_ = false;  // start() has been called
  bool average_ = false;  // the average of the weights is in use
  int64_t steps_ = 0;     // number of steps since the ranks were made
  bool moved_ = false;    // whether balance() has moved work
  std::vector<PartTime> predicted_;
  double early_losses_ = 0;  // sum of the losses of steps before the ranks were made anew
  std::vector<float> rows_;
  double plan_seconds_ = 0;
};

}  // namespace nacre
