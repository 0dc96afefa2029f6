// DeviceScorer: scores of predictions in the memory of a GPU. Accuracy and micro F1 are counted
// there; for the other metrics the rows of the splits, and no others, are brought to the host.
#pragma once

#include <memory>

#include "nacre/engine/gpu/scores.h"
#include "nacre/train/scorer.h"

namespace nacre {

class DeviceScorer : public Scorer {
 public:
  DeviceScorer(const RunData& run, std::shared_ptr<GpuContext> gpu);

  int64_t device_bytes(bool own_labels) const override;
  int64_t host_bytes() const override;
  Scores score(Executor& executor, bool with_loss) override;

 private:
  void prepare(const void* labels) override;
  // Returns whether a kernel computes the metric on the device.
  bool counts_on_device() const;
  int64_t row_bytes() const;
  int64_t chunk_rows() const;
  void pack_labels();
  Scores from_counts(Executor& executor, bool with_loss);
  Scores from_rows(Executor& executor, bool with_loss);

  const RunData& run_;
  std::shared_ptr<GpuContext> gpu_;
  std::unique_ptr<GpuScores> scores_;  // null if no vertex has a label
  // The labels of the vertices in the splits, without those of other vertices, and splits whose
  // numbers are positions among these labels.
  Dataset packed_;
  std::shared_ptr<void> labels_;
  std::shared_ptr<void> chunk_;  // rows on their way to the host
  Tensor rows_;                  // the splits' rows on the host
};

}  // namespace nacre
