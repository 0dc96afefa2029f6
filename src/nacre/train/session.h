// Session: a data set and a model made ready to train: graph prepared, DFGs built and differentiated, plans made,
// memory planned. Building one allocates no training memory; memory() is the exact bill; start() pays it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/engine/executor.h"
#include "nacre/train/config.h"
#include "nacre/train/device.h"
#include "nacre/train/inputs.h"
#include "nacre/train/parameters.h"
#include "nacre/train/planner.h"

namespace nacre {

struct SessionNeeds {
  bool training = true;      // false: forward pass only (eval, predict)
  bool evaluation = true;    // false: training step only (benchmarks)
  bool embeddings = false;   // embeddings() will be asked for
  std::string resumed_plan;  // plan file of the run that is continued
};

class Session {
 public:
  // Completes `config` (sizes, defaults). Throws UserError when data and model do not fit together.
  Session(Dataset dataset, RunConfig config, const SessionNeeds& needs = {});

  const RunConfig& config() const { return config_; }
  const Dataset& dataset() const { return dataset_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::string& metric() const { return metric_; }
  const Blocks& blocks() const { return *blocks_; }
  const std::shared_ptr<GraphViews>& views() const { return views_; }
  const std::string& device_name() const { return device_.name; }
  const std::shared_ptr<Backend>& backend() const { return device_.backend; }
  GpuContext* gpu() const { return device_.gpu.get(); }
  double plan_seconds() const { return plan_seconds_; }
  // How the training plan was found; without one (evaluation only) empty.
  const PlanAnswer& planning() const { return planning_; }

  std::vector<MemoryItem> memory() const;
  // Refuses (UserError) when memory() does not fit; otherwise allocates and computes the constants.
  void start();

  // As they are now, on the host. After changing them from outside (a checkpoint), call weights_changed().
  Parameters& parameters();
  Optimizer& optimizer();
  void weights_changed();
  // One forward and backward pass and the optimiser's update; returns the loss before the update.
  double train_step(int64_t step, double lr);
  // The same without the loss: nothing waits for the device.
  void queue_step(int64_t step, double lr);
  // Scores of all vertices with the current weights: [num_nodes, num_classes], valid until the next call.
  const float* predict();
  // What the last layer was given in the last predict(), vertex by vertex. Throws UserError when the model has no
  // hidden layer.
  const float* embeddings();
  int64_t embedding_width() const;

  Executor& trainer() { return *train_; }
  Executor& predictor() { return *eval_; }
  const Plan& plan() const { return (train_ ? train_ : eval_)->plan(); }
  // Gives an executor of any plan of this model its leaves.
  void bind(Executor& executor);
  // Identifies data and settings that determine the result.
  std::string fingerprint() const;

 private:
  void prepare_graph();
  void complete_model(bool training);
  Plan training_plan(const Dfg& dfg, const std::string& resumed_plan);
  void make_targets();

  RunConfig config_;
  Dataset dataset_;                  // graph and features as the model sees them
  std::vector<FeatureLeaf> leaves_;  // its features
  uint64_t data_fingerprint_ = 0;
  std::vector<std::string> notes_;
  std::string metric_;
  std::unique_ptr<Blocks> blocks_;
  std::shared_ptr<GraphViews> views_;
  RunDevice device_;
  std::unique_ptr<DeviceState> state_;  // on a GPU
  bool host_is_old_ = false;            // the device has newer weights than the host
  std::unique_ptr<Executor> train_;
  std::unique_ptr<Executor> eval_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  Tensor loss_weight_;
  Tensor labels_;
  ConstantPool constants_;
  std::vector<const float*> gradients_;
  PlanAnswer planning_;  // its plan has moved to the executor
  double plan_seconds_ = 0;
};

}  // namespace nacre
