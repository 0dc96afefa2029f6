// BatchComputer: prepares and computes the batches of a session, on the host or on a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/engine/block_runner.h"
#include "nacre/schedule/batch_loader.h"
#include "nacre/train/batch_inputs.h"
#include "nacre/train/learner.h"
#include "nacre/train/row_reads.h"
#include "nacre/train/run_data.h"

namespace nacre {

class CachedBatches;
class FeatureStore;
class GpuDevice;
class StepWeights;

// Memory of gradients: those that the optimiser reads, and behind them those of each track.
struct GradientMemory {
  char* begin = nullptr;
  int64_t bytes = 0;  // bytes of the gradients of one track

  // Returns where the gradient that the optimiser reads at `place` lies on a track. A place outside
  // of the gradients is returned unchanged.
  void* on_track(void* place, int64_t track) const {
    auto* at = static_cast<char*>(place);
    return at < begin || at >= begin + bytes ? place : at + (track + 1) * bytes;
  }
};

// The objects and memory with which a BatchComputer computes the batches of a session. The session
// owns them and keeps them longer than the computer.
struct BatchParts {
  const RunData& run;
  const BatchInputs& inputs;
  const Dfg& dfg;  // the model with its gradient, before planning
  BlockRunner& runner;
  Learner& learner;
  // The parameter with the rows of all vertices if features are learned; otherwise null.
  const Parameter* learned = nullptr;
  float* learned_gradient = nullptr;  // gradient of these rows, in the back end's memory
  // The memory of all gradients. If `gradient_tracks` is set, each batch writes to the gradients of
  // its track.
  GradientMemory gradients;
  bool gradient_tracks = false;
  // The f32 features of all vertices in the memory of a device; null if they are not all there.
  const void* resident_features = nullptr;
  // The features in tiers of a device and the host; null if there are no tiers.
  const FeatureStore* store = nullptr;
  // The batches whose rows the store caches; null if it caches none.
  CachedBatches* cache = nullptr;
  // Gives what the losses of the batches of a step are divided by; null if every batch is a step of
  // its own.
  StepWeights* weights = nullptr;

  // Returns the values of the leaves of a batch, without its features.
  std::vector<LeafValue> gather(const Sample& sample, const SampleKey& key) const;
  // Returns the name of the leaf that holds the features of a batch's vertices.
  std::string features_leaf() const { return learned != nullptr ? learned->name : "x"; }
  int64_t feature_width() const { return run.config.model.in_dim; }
};

class BatchComputer {
 public:
  virtual ~BatchComputer() = default;

  // Returns where the loader sends features.
  virtual std::unique_ptr<FeatureSink> make_sink() = 0;
  // Does the part of a batch's step that needs neither features nor weights. Any thread may call
  // this.
  virtual std::shared_ptr<PreparedBatch> prepare(const Sample& sample, const SampleKey& key) = 0;
  // Starts to compile the kernels that batches like these need, while the caller prepares other
  // things.
  virtual void ask_for_kernels(const std::vector<Sample>& /*like*/) {}
  // Returns the seconds that a device took for the steps so far, each from its beginning to its
  // end; 0 on the host. Waits until these steps are over.
  virtual double device_seconds() { return 0; }
  // Returns how many rows the batches so far have read from each tier.
  virtual RowReads rows_read() = 0;
  // Returns the seconds in which a device loaded rows of the store, in steps or beside them; 0 on
  // the host. Waits until these loads are over.
  virtual double loading_seconds() { return 0; }
};

// Return a computer of batches on the host, and one of batches on `device`, which must outlive it.
std::unique_ptr<BatchComputer> make_host_batches(const BatchParts& parts);
std::unique_ptr<BatchComputer> make_device_batches(const BatchParts& parts, const GpuDevice& device);

}  // namespace nacre
