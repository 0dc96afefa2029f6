// Scorer: computes the scores of the splits of a data set from predictions, in the memory where the
// predictions are.
#pragma once

#include <memory>

#include "nacre/engine/executor.h"
#include "nacre/train/run_data.h"
#include "nacre/train/trainee.h"

namespace nacre {

class Scorer {
 public:
  virtual ~Scorer() = default;

  // Return what start() and score() will take of the device's memory and of the host's. With
  // `own_labels`, the labels are not in the device's memory yet.
  virtual int64_t device_bytes(bool own_labels) const = 0;
  virtual int64_t host_bytes() const = 0;
  // Must be called before score(). `labels` are those of all vertices in the back end's memory
  // (int32, or bytes of several classes); null if they are not there.
  void start(const void* labels) {
    prepare(labels);
    started_ = true;
  }
  bool started() const { return started_; }
  // Returns the scores of the "logits" of all vertices, which `executor` has just computed.
  virtual Scores score(Executor& executor, bool with_loss) = 0;

 private:
  virtual void prepare(const void* labels) = 0;

  bool started_ = false;
};

// Makes a scorer of predictions that are in host memory. `run` must outlive the scorer.
std::unique_ptr<Scorer> make_host_scorer(const RunData& run);

}  // namespace nacre
