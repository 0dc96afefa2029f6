// GpuScores: scores lists of vertices on the device, where the predictions are. Only a few numbers
// are copied to the host.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nacre/engine/gpu/context.h"
#include "nacre/kernel/cuda/scores.h"

namespace nacre {

// Describes labels in device memory. A single label is an int32, negative if the vertex has none;
// multiple labels are one byte for each class.
struct GpuLabels {
  cuda::ScoreLabels kind = cuda::ScoreLabels::single;
  const void* values = nullptr;
  // True if there is a label for each vertex of the graph; false if there is one for each vertex of
  // the lists, one list after the other.
  bool by_vertex = true;
};

// Counts right predictions in a list of vertices. With single labels, `hits` of `first` labelled
// vertices are right. With multiple labels, `hits` classes are predicted and true, `first` are
// predicted and `second` are true.
struct ScoreCounts {
  double hits = 0, first = 0, second = 0;
};
// Holds the sum of the losses of `counted` labelled vertices.
struct ScoreLoss {
  double sum = 0, counted = 0;
};

class GpuScores {
 public:
  // `lists` are lists of vertices. The loss is computed over list number `loss_list`.
  GpuScores(std::shared_ptr<GpuContext> context, std::vector<std::span<const NodeId>> lists, size_t loss_list,
            int64_t classes);
  // Returns the device memory that this object uses once started, without the labels.
  int64_t bytes() const;
  void start(const GpuLabels& labels);
  // Returns the vertices of all lists, one list after the other, in device memory.
  const NodeId* vertices() const { return static_cast<const NodeId*>(vertices_.get()); }
  int64_t num_vertices() const { return num_vertices_; }

  // Returns the scores of each list and, if `loss` is not null, writes the loss there. `logits` is
  // [vertices, classes] in device memory. Waits for the device.
  std::vector<ScoreCounts> run(const float* logits, ScoreLoss* loss);

 private:
  std::shared_ptr<GpuContext> context_;
  std::vector<std::span<const NodeId>> lists_;
  int64_t classes_;
  int64_t num_vertices_ = 0;
  // The pieces of every list, then once more those of the list that the loss is computed over.
  std::vector<cuda::ScorePiece> pieces_;
  // Where each list's pieces begin in pieces_, then those of the loss, then the end.
  std::vector<int64_t> first_;
  GpuLabels labels_;
  std::shared_ptr<void> vertices_, device_pieces_, device_first_, sums_, totals_;
  GpuFunction rows_, loss_, sum_;
};

}  // namespace nacre
