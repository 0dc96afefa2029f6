// PlacedBatches: computes some batches of a run on its device and the others on the host beside it,
// as the schedule of the run says (BatchPlaces). The weights and the optimiser lie on the device.
// The host reads the weights of a batch from there before it computes, and sends back its gradient,
// its loss and its state, so that every update is applied in the order of the batches.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "nacre/plan/batch_places.h"
#include "nacre/train/batch_computer.h"

namespace nacre {

// HostShare: what the host needs to compute batches beside a device: a plan, weights, gradients and
// arenas of its own.
class HostShare {
 public:
  // `plan` is a plan of the same DFG for the host, and `parameters` are like those of `main`, which
  // must outlive this object.
  HostShare(Parameters parameters, Plan plan, std::shared_ptr<Backend> backend, Learner& main);

  // Makes the learner's tracks and binds weights and gradients. Must be called after
  // Learner::start() of the device.
  void start();
  BlockRunner& runner() { return runner_; }
  Learner& learner() { return learner_; }
  GradientMemory gradients() const;

  // Brings the weights that batch `number` of an epoch reads from the device; waits for the steps
  // that were queued before.
  void fetch_weights(Backend& device, int64_t number);
  // Sends the state that the batch has written (running statistics) to the weights that the batch
  // reads on the device, and its gradient to `gradient` in the device's memory.
  void send_results(Backend& device, int64_t number, void* gradient);

  // Returns the bytes of the weights and gradients that the constructor and start() allocate.
  int64_t bytes() const;

 private:
  int64_t copies() const { return std::max<int64_t>(1, main_.tracks()); }
  float* weights_of(Learner& learner, int64_t number) const;

  std::shared_ptr<Backend> backend_;
  Learner& main_;
  Learner learner_;
  BlockRunner runner_;
  std::shared_ptr<void> gradients_;
  // Describes a gradient that the plan does not write at its own place, because it is the same
  // value as another gradient. send_results() copies it. All numbers are in elements; `from` and
  // `to` count from the beginning of the gradients.
  struct Shared {
    int64_t from, to, size;
  };
  std::vector<Shared> shared_;
};

class PlacedBatches : public BatchComputer {
 public:
  // `parts` is what the device's batches are computed with, and `own` computes them. `share` and
  // all that `parts` refers to must outlive this object.
  PlacedBatches(const BatchParts& parts, std::unique_ptr<BatchComputer> own, HostShare& share,
                std::shared_ptr<Backend> device, BatchPlaces places);

  std::unique_ptr<FeatureSink> make_sink() override { return own_->make_sink(); }
  std::shared_ptr<PreparedBatch> prepare(const Sample& sample, const SampleKey& key) override;
  void ask_for_kernels(const std::vector<Sample>& like) override { own_->ask_for_kernels(like); }
  double device_seconds() override { return own_->device_seconds(); }
  RowReads rows_read() override;
  double loading_seconds() override { return own_->loading_seconds(); }

  // With tracks, PreparedBatch::run() of a batch on the host only computes, and any thread may call
  // it. The thread that queues the steps of the device must call fetch_weights() before and
  // send_results() after it.
  bool on_host(int64_t number) const { return places_.computes_on_host(number); }
  void fetch_weights(int64_t number) { share_.fetch_weights(*device_, number); }
  // Copies the loss that a batch has on the device to where it stays until the next batch of the
  // same track, and returns that place.
  const void* keep_loss(int64_t number, const void* loss);
  // Sends what the host has computed of a batch to the device: its gradient to where the optimiser
  // reads it, its state, and its loss. Returns where the loss is on the device.
  const void* send_results(int64_t number, const void* loss);

  // Return how many batches the host has computed so far, and the seconds that this took.
  int64_t host_batches() const { return host_batches_; }
  double host_seconds() const { return host_seconds_; }

 private:
  struct HostBatch;
  void run(const HostBatch& own, const Batch& batch, int64_t step, PreparedBatch::Finish finish);
  char* loss_place(int64_t number) const;

  BatchParts parts_;
  std::unique_ptr<BatchComputer> own_, host_;
  HostShare& share_;
  std::shared_ptr<Backend> device_;
  BatchPlaces places_;
  std::shared_ptr<void> losses_;  // losses on the device, one for each track
  std::atomic<int64_t> host_batches_{0};
  std::atomic<double> host_seconds_{0};
};

}  // namespace nacre
