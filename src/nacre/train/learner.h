// Learner: what a run learns with. Parameters, optimiser and the losses of its steps, on the host or in a GPU's memory,
// where the host's copies are brought up to date when somebody asks for them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/executor.h"
#include "nacre/engine/gpu/optimizer.h"
#include "nacre/train/optimizer.h"
#include "nacre/train/parameters.h"

namespace nacre {

class Learner {
 public:
  // `gpu`: null on the host.
  Learner(Parameters parameters, std::shared_ptr<GpuContext> gpu);
  // It trains, and not only predicts.
  void optimize_with(const OptimizerOptions& options);

  bool on_gpu() const { return gpu_ != nullptr; }
  bool trains() const { return optimizer_ != nullptr; }
  const std::vector<Parameter>& list() const { return parameters_.list(); }
  int64_t parameter_bytes() const { return parameters_.bytes(); }
  int64_t optimizer_bytes() const;

  // Where executors find a parameter, and a leaf that no step writes: on a GPU its copy, made at the first call.
  float* place(const Parameter& p);
  void* leaf(const std::string& name, const void* host, int64_t bytes);
  void* leaf(const std::string& name, const Tensor& values) { return leaf(name, values.raw(), values.bytes()); }

  // Gradients in the back end's memory, one for each of list() (null: none).
  void start(std::vector<const float*> gradients);
  // Applies the gradients: the end of a step. Of a device's steps, all but the last few are waited for.
  void update(double lr);
  // Seconds for which update() waited so far.
  double awaited() const { return awaited_; }
  // The loss of a step that was just queued, before anything else writes where it lies. Waits for no device.
  void keep_loss(Executor& executor);
  // Adds the losses kept since the last call, in their order.
  void take_losses(double& sum);

  // As they are now, on the host. Each brings only its own values there: the weights alone are wanted more often.
  Parameters& parameters();
  Optimizer& optimizer();
  // What was asked for was changed there.
  void weights_changed();
  // Whether steps and predictions read the moving average of the weights instead of the weights themselves;
  // parameters() then gives it. Without an average nothing happens. No step may be queued while it is in use.
  void use_average(bool use);

 private:
  void fetch_losses();

  Parameters parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<const float*> gradients_;
  std::vector<float> losses_;

  std::shared_ptr<GpuContext> gpu_;
  std::shared_ptr<void> values_;  // of the parameters
  std::map<std::string, std::shared_ptr<void>> leaves_;
  std::unique_ptr<GpuOptimizer> gpu_optimizer_;
  bool values_are_old_ = false, moments_are_old_ = false;  // the host's
  bool average_in_use_ = false;
  std::deque<DeviceEvent> queued_;  // ends of steps that nobody waited for
  double awaited_ = 0;
  std::shared_ptr<void> gpu_losses_;
  int64_t num_gpu_losses_ = 0;
};

}  // namespace nacre
