// Scorer: scores of a data set's splits, from predictions wherever they lie. On a GPU they are counted there; a metric
// that has no kernel brings the rows of the splits to the host, and no others.
#pragma once

#include <memory>

#include "nacre/engine/executor.h"
#include "nacre/engine/gpu/scores.h"
#include "nacre/train/run_data.h"
#include "nacre/train/trainee.h"

namespace nacre {

class Scorer {
 public:
  // `gpu`: null where predictions lie in the host's memory. `run` must outlive the scorer.
  Scorer(const RunData& run, std::shared_ptr<GpuContext> gpu);

  // What start() and score() will take of the device's and of the host's memory. `own_labels`: the labels are not on
  // the device yet.
  int64_t device_bytes(bool own_labels) const;
  int64_t host_bytes() const;
  // `labels`: those of all vertices in device memory (int32, or bytes of several classes), null where they are not.
  void start(const void* labels);
  bool started() const { return started_; }
  // `executor` has just computed "logits" of all vertices.
  Scores score(Executor& executor, bool with_loss);

 private:
  bool counts_on_device() const;
  int64_t row_bytes() const;
  int64_t chunk_rows() const;
  void pack_labels();
  Scores from_counts(Executor& executor, bool with_loss);
  Scores from_rows(Executor& executor, bool with_loss);

  const RunData& run_;
  std::shared_ptr<GpuContext> gpu_;
  std::unique_ptr<GpuScores> scores_;  // null on the host, and where nothing is labelled
  Dataset packed_;                     // labels of the splits' vertices alone, and splits that count them
  std::shared_ptr<void> labels_;
  std::shared_ptr<void> chunk_;  // rows on their way to the host
  Tensor rows_;                  // the splits' rows there
  bool started_ = false;
};

}  // namespace nacre
