// BatchRank: what one rank holds and does if several devices train on mini-batches. In each step a
// rank computes the gradients of its batches, all ranks add them up, and each applies the sum to
// its own copy of the weights.
#pragma once

#include <memory>
#include <vector>

#include "nacre/train/batch_session.h"
#include "nacre/train/rank_session.h"

namespace nacre {

class BatchRank {
 public:
  // `counts` has the number of batches that each rank computes in a step. Only rank 0 evaluates.
  BatchRank(const RankSetup& setup, const std::vector<int64_t>& counts);

  BatchSession& session() { return *session_; }
  const BatchSession& session() const { return *session_; }

  // All ranks must call the following functions in the same order, because most of them wait for
  // the other ranks.
  void start();
  // Begins an epoch at batch `first`. The run has `epochs` epochs.
  void begin_epoch(int64_t epoch, int64_t first, int64_t epochs);
  // Runs the next step of the epoch.
  void step(double lr);
  // share_weights() replaces this rank's weights by those of rank 0. share_state() also replaces
  // its optimiser state.
  void share_weights();
  void share_state();
  // Returns the seconds that each rank took for a batch: the fastest of a few that all ranks
  // compute at the same time. The weights stay as they are. begin_epoch() must be called before the
  // next step.
  std::vector<double> time_batches();
  // Sets how many batches each rank computes in a step, from the next epoch on.
  void take_counts(const std::vector<int64_t>& counts);
  std::vector<RankFigures> figures() const;
  std::vector<RankTimes> all_times() const;

 private:
  // Computes the batches of this rank up to batch `end` of the epoch, and adds up their gradients.
  void compute_up_to(int64_t end);
  void run_step(double lr);
  int rank() const { return control_.rank(); }
  int64_t own_bytes(const std::vector<MemoryItem>& items) const;

  Communicator& data_;
  Communicator& control_;
  std::unique_ptr<BatchSession> session_;
  std::shared_ptr<void> sum_;  // gradients of earlier batches of a step
  int64_t epoch_ = 0;
  int64_t next_ = 0;   // first batch of the next step
  int64_t steps_ = 0;  // number of steps so far
  RankTimes times_;
};

}  // namespace nacre
