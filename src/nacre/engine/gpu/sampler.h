// GpuSampler: samples neighbours on the device. The samples are equal to those of the host
// (sample/sample.h), bit for bit. Several batches are sampled at once, because one alone does not
// fill a GPU. The graph lies in device memory, or in page-locked memory of the host, which the
// kernels read over the bus.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nacre/engine/gpu/context.h"
#include "nacre/sample/sample.h"

namespace nacre {

// Describes a block of a sample. Its arrays are those of Graph and Sample, in device memory.
struct DeviceBlock {
  int64_t num_dst = 0;
  int64_t num_src = 0;
  int64_t num_edges = 0;
  const int64_t* row_ptr = nullptr;
  const NodeId* col_idx = nullptr;
  const float* edge_weight = nullptr;   // null if the graph has no weights
  const uint16_t* edge_type = nullptr;  // null if the graph has no types
  const int64_t* edges = nullptr;
  const float* scale = nullptr;  // null if every edge was taken
};

struct DeviceSample {
  std::vector<DeviceBlock> blocks;  // in the order of computation
  const NodeId* vertices = nullptr;
  int64_t num_vertices = 0;
  int64_t num_seeds = 0;
  std::shared_ptr<const void> memory;  // owner of the arrays, shared by the samples of one call
  int64_t num_edges() const;
};

class GpuSampler {
 public:
  enum class GraphMemory : uint8_t { device, host };

  // Returns which of the options a device cannot follow, as text for people; empty if it can follow
  // all.
  static std::string why_not(const SampleOptions& options);

  // Uses the graph and the options of `sampler`, which must be possible on a device (why_not()) and
  // must not change while this object lives.
  GpuSampler(std::shared_ptr<GpuCompiler> compiler, const Sampler& sampler, GraphMemory memory);
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  struct Batch {
    std::span<const NodeId> seeds;  // no seed occurs twice
    SampleKey key;
  };
  // Returns one sample for each batch. Besides the results, takes 4 bytes of device memory for
  // every batch and vertex of the graph.
  std::vector<DeviceSample> sample(std::span<const Batch> batches);
  // Says which of the parts of a sample that are not always needed are copied to the host.
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
