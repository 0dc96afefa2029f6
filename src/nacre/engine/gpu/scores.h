// Scores of lists of vertices, computed where the predictions lie: only a few numbers come to the host.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nacre/engine/gpu/context.h"
#include "nacre/kernel/cuda/scores.h"

namespace nacre {

// Labels in device memory: int32, below zero for none, or one byte for each class of a vertex.
struct GpuLabels {
  cuda::ScoreLabels kind = cuda::ScoreLabels::single;
  const void* values = nullptr;
  bool by_vertex = true;  // of all vertices; false: of the lists' vertices, one list after the other
};

// Of single labels: `hits` vertices are right of `first` labelled ones. Of several labels at once: `hits` classes are
// predicted rightly of `first` predicted and `second` true ones.
struct ScoreCounts {
  double hits = 0, first = 0, second = 0;
};
// Summed over `counted` labelled vertices.
struct ScoreLoss {
  double sum = 0, counted = 0;
};

class GpuScores {
 public:
  // `lists` of vertices; the loss is that of list `loss_list`.
  GpuScores(std::shared_ptr<GpuContext> context, std::vector<std::span<const NodeId>> lists, size_t loss_list,
            int64_t classes);
  // Of the device's memory, once started, without the labels.
  int64_t bytes() const;
  void start(const GpuLabels& labels);
  // The vertices of all lists, one list after the other, in device memory.
  const NodeId* vertices() const { return static_cast<const NodeId*>(vertices_.get()); }
  int64_t num_vertices() const { return num_vertices_; }

  // `logits`: [vertices, classes] in device memory. Waits for what is queued.
  std::vector<ScoreCounts> run(const float* logits, ScoreLoss* loss);

 private:
  std::shared_ptr<GpuContext> context_;
  std::vector<std::span<const NodeId>> lists_;
  int64_t classes_;
  int64_t num_vertices_ = 0;
  std::vector<cuda::ScorePiece> pieces_;  // of each list, and of the loss's list again
  std::vector<int64_t> first_;            // piece of each of them, and the end
  GpuLabels labels_;
  std::shared_ptr<void> vertices_, device_pieces_, device_first_, slots_, totals_;
  GpuFunction rows_, loss_, sum_;
};

}  // namespace nacre
