// Neighbour sampling on the device: the host's samples (sample/sample.h), bit for bit. Several batches are sampled at
// once, since one alone does not fill a GPU. The graph lies in device memory, or in page-locked memory of the host that
// the kernels read over the bus.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nacre/engine/gpu/context.h"
#include "nacre/sample/sample.h"

namespace nacre {

// Arrays in device memory, as those of Graph and Sample.
struct DeviceBlock {
  int64_t num_dst = 0;
  int64_t num_src = 0;
  int64_t num_edges = 0;
  const int64_t* row_ptr = nullptr;
  const NodeId* col_idx = nullptr;
  const float* edge_weight = nullptr;   // null: none
  const uint16_t* edge_type = nullptr;  // null: none
  const int64_t* edges = nullptr;
  const float* scale = nullptr;  // null: every edge stands for itself
};

struct DeviceSample {
  std::vector<DeviceBlock> blocks;  // in the order of computation
  const NodeId* vertices = nullptr;
  int64_t num_vertices = 0;
  int64_t num_seeds = 0;
  std::shared_ptr<const void> memory;  // of the arrays, shared by the samples of one call
  int64_t num_edges() const;
};

class GpuSampler {
 public:
  enum class Place : uint8_t { device, host };

  // What a device cannot draw as `options` ask, for people; empty: nothing.
  static std::string why_not(const SampleOptions& options);

  // Of the sampler's graph and options, which must be possible (why_not) and must not change while this lives.
  GpuSampler(std::shared_ptr<GpuLoader> loader, const Sampler& sampler, Place place);
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  struct Batch {
    std::span<const NodeId> seeds;  // distinct
    SampleKey key;
  };
  // As many samples as batches. Takes 4 bytes for every batch and vertex of the graph besides the results.
  std::vector<DeviceSample> sample(std::span<const Batch> batches);
  // Parts of a sample that its user may not want.
  struct Parts {
    bool edges = true, scale = true;
  };
  Sample to_host(const DeviceSample& sample, const Parts& parts) const;
  Sample to_host(const DeviceSample& sample) const { return to_host(sample, {}); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nacre
