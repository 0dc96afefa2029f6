// Learner: the parameters, the optimiser and the losses of the steps of a run, in the memory of a
// back end. For a device, the host has copies, which are brought up to date when somebody asks for
// them.
//
// With bounded staleness s there are s + 1 tracks, each with a copy of the weights. Batch i of an
// epoch reads track i modulo s + 1, which gets the current weights after the batch's update. So the
// next batch on the track, i + s + 1, lacks the s updates between the two.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"
#include "nacre/train/mirrored_array.h"
#include "nacre/train/optimizer.h"
#include "nacre/train/parameters.h"

namespace nacre {

class Learner {
 public:
  Learner(Parameters parameters, std::shared_ptr<Backend> backend);
  // Makes the state of the optimiser. Runs that train must call this function; other runs only
  // predict. `tracks` is 0 if every batch reads the current weights.
  void optimize_with(const OptimizerOptions& options, int tracks = 0);

  bool trains() const { return state_ != nullptr; }
  const std::vector<Parameter>& list() const { return parameters_.list(); }
  int64_t parameter_bytes() const { return parameters_.bytes(); }
  int64_t optimizer_bytes() const;
  int64_t tracks() const { return state_ && state_->tracks().defined() ? state_->tracks().rows() : 0; }
  int64_t track_bytes() const { return tracks() * parameter_bytes(); }

  // Return where executors find a parameter, or a leaf that no step writes. The first call for the
  // name of a leaf makes the device's copy.
  float* place(const Parameter& p) { return weights_.data() + p.offset; }
  void* leaf(const std::string& name, const void* host, int64_t bytes);
  void* leaf(const std::string& name, const Tensor& values) { return leaf(name, values.raw(), values.bytes()); }
  // Returns where batch `batch` of an epoch finds the value that lies at `place`: if the value is a
  // weight and there are tracks, on the track of the batch; otherwise at `place`.
  void* on_track(void* place, int64_t batch) const;
  const void* on_track(const void* place, int64_t batch) const { return on_track(const_cast<void*>(place), batch); }

  // Makes the optimiser. `gradients` are in the back end's memory, one for each element of list();
  // null: the parameter has no gradient.
  void start(const std::vector<const float*>& gradients);
  // Applies the gradients at the end of a step. Waits until a device has finished all but the last
  // few steps.
  void update(double lr);
  // Applies the gradients of batch `batch` of an epoch, as update(lr) does, and gives the batch's
  // track the new weights.
  void update(double lr, int64_t batch);
  // Gives all tracks the current weights. Must be called at the beginning of an epoch.
  void begin_tracks();
  // Returns the seconds for which update() has waited so far.
  double awaited() const { return awaited_; }
  // Keep the loss of a step that was just queued, either the loss of `executor` or the one at
  // `loss` in the memory of the back end. Must be called before anything else is queued that writes
  // there. Neither function waits for a device, unless the learner's memory of losses is full. The
  // loss counts once for each of the step's `batches`.
  void keep_loss(Executor& executor);
  void keep_loss(const void* loss, int64_t batches = 1);
  // Adds the losses kept since the last call to `sum`, in their order, each times its batches.
  void take_losses(double& sum);

  // Return the current weights and the current optimiser state, on the host. Each call brings only
  // its own values there, because the weights alone are needed more often.
  Parameters& parameters();
  OptimizerState& optimizer();
  // Sends the weights on the host to the back end's memory, and also the optimiser state, unless
  // the back end has a newer one. Must be called after these values were changed on the host.
  void weights_changed();
  // Sets whether steps and predictions read the moving average of the weights instead of the
  // weights themselves; parameters() then returns the average. Does nothing if there is no average.
  // No step may be queued while the average is in use.
  void use_average(bool use);

 private:
  void fetch_losses();
  MirroredArray mirror(Tensor& values);

  std::shared_ptr<Backend> backend_;
  Parameters parameters_;
  MirroredArray weights_;
  std::unique_ptr<OptimizerState> state_;  // null: the run does not train
  MirroredArray first_, second_, average_, tracks_;
  std::unique_ptr<Optimizer> optimizer_;  // made by start()
  // These say whether the weights, and the optimiser's state, are older on the host than in the
  // back end's memory.
  bool weights_are_old_ = false, state_is_old_ = false;
  bool average_in_use_ = false;
  std::map<std::string, std::shared_ptr<void>> leaves_;  // copies on a device
  std::deque<DeviceEvent> queued_;                       // ends of steps that nobody has waited for
  double awaited_ = 0;
  std::shared_ptr<void> loss_memory_;  // the losses, in the memory of the back end
  int64_t num_losses_ = 0;             // number of losses in loss_memory_
  std::vector<float> losses_;          // losses that were fetched before those in loss_memory_
  // The number of batches that belong to each loss in losses_, then to each loss in loss_memory_.
  std::vector<int64_t> loss_batches_;
};

}  // namespace nacre
