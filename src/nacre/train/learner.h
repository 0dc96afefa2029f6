// Learner: what a run learns with: parameters, optimiser and the losses of the steps, in the memory of a back end. On a
// device the host has copies, which are brought up to date when somebody asks for them.
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
  // To be called by runs that train; others only predict.
  void optimize_with(const OptimizerOptions& options);

  bool trains() const { return state_ != nullptr; }
  const std::vector<Parameter>& list() const { return parameters_.list(); }
  int64_t parameter_bytes() const { return parameters_.bytes(); }
  int64_t optimizer_bytes() const;

  // Return where executors find a parameter, or a leaf that no step writes. A device's copy of a leaf is made by the
  // first call for its name.
  float* place(const Parameter& p) { return weights_.data() + p.offset; }
  void* leaf(const std::string& name, const void* host, int64_t bytes);
  void* leaf(const std::string& name, const Tensor& values) { return leaf(name, values.raw(), values.bytes()); }

  // Makes the optimiser. `gradients` lie in the back end's memory, one for each of list() (null: none).
  void start(const std::vector<const float*>& gradients);
  // Applies the gradients at the end of a step. Waits until a device has done all but the last few steps.
  void update(double lr);
  // Returns the seconds for which update() has waited so far.
  double awaited() const { return awaited_; }
  // Keeps the loss of a step that was just queued. Must be called before anything else writes where the loss lies;
  // waits for no device.
  void keep_loss(Executor& executor);
  // Adds the losses kept since the last call to `sum`, in their order.
  void take_losses(double& sum);

  // Return weights and optimiser as they are now, on the host. Each brings only its own values there: the weights alone
  // are wanted more often.
  Parameters& parameters();
  OptimizerState& optimizer();
  // To be called after the host's weights were changed, or what optimizer() returned.
  void weights_changed();
  // Whether steps and predictions read the moving average of the weights instead of the weights themselves;
  // parameters() then returns the average. Without an average nothing happens. No step may be queued while it is in
  // use.
  void use_average(bool use);

 private:
  void fetch_losses();
  MirroredArray mirror(Tensor& values);

  std::shared_ptr<Backend> backend_;
  Parameters parameters_;
  MirroredArray weights_;
  std::unique_ptr<OptimizerState> state_;  // null: the run does not train
  MirroredArray first_, second_, average_;
  std::unique_ptr<Optimizer> optimizer_;                 // made by start()
  bool weights_are_old_ = false, state_is_old_ = false;  // those on the host
  bool average_in_use_ = false;
  std::map<std::string, std::shared_ptr<void>> leaves_;  // copies on a device
  std::deque<DeviceEvent> queued_;                       // ends of steps that nobody waited for
  double awaited_ = 0;
  std::shared_ptr<void> loss_memory_;  // of the back end
  int64_t num_losses_ = 0;             // that lie there
  std::vector<float> losses_;          // those fetched before them
};

}  // namespace nacre
