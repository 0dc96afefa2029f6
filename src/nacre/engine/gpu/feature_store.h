// FeatureStore: holds feature rows in tiers. Some rows lie in the memory of a device, the others in
// that of peer devices or of the host. One kernel loads the rows of a batch from wherever they lie
// (contract row DP4). The rows in the memory of the device stay, or they change after each batch
// (caches()).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nacre/engine/gpu/compiler.h"
#include "nacre/graph/graph.h"
#include "nacre/kernel/cuda/load_rows.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

// HostRows: holds feature rows in page-locked memory of the host, which kernels of all devices of
// the process read over the link.
class HostRows {
 public:
  // Copies the rows of `vertices`, in this order; if `vertices` is empty, copies the rows of all
  // vertices.
  HostRows(const std::shared_ptr<Device>& device, const cuda::RowFormat& format, const Tensor& features,
           std::span<const NodeId> vertices);

  const void* data() const { return memory_.get(); }
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> memory_;
  int64_t bytes_ = 0;
};

// Says where a row lies, as the device that reads it sees it. LoaderFeatures::wanted uses the value
// of `host`, too.
enum class RowTier : uint8_t { local = 0, host = 1, peer = 2 };

class FeatureStore {
 public:
  // Says where one device reads the row of every vertex.
  struct Tables {
    int reader = 0;                    // number of this device
    std::span<const int8_t> dev_num;   // for each vertex: number of the device that holds the row;
                                       // -1: the host holds it
    std::span<const NodeId> buf_pos;   // for each vertex: position of the row in the memory of its
                                       // holder
    std::span<const NodeId> own_rows;  // for each position: the vertex whose row this device holds
                                       // there
  };

  // Makes a store without tables: one buffer has the rows of all vertices in their order. The
  // buffer lies in the memory of the device if `on_device`; otherwise it lies in that of the host.
  FeatureStore(std::shared_ptr<Device> device, const cuda::RowFormat& format, const Tensor& features, bool on_device);
  // Makes a store by `tables`, and copies the device's own rows into it.
  FeatureStore(std::shared_ptr<Device> device, const cuda::RowFormat& format, const Tensor& features,
               const Tables& tables);

  // Makes a store that caches rows: at first its seats hold the rows of `contents`, one for each
  // seat, and keep() changes them. The host holds the rows of all vertices.
  FeatureStore(std::shared_ptr<Device> device, const cuda::RowFormat& format, const Tensor& features,
               std::span<const NodeId> contents);

  // Lets kernels read rows of the host where they lie. If this is not called, the rows of the host
  // come with each batch.
  void read_host(std::shared_ptr<const HostRows> rows) { host_ = std::move(rows); }
  // Lets kernels read rows of peers. `peers` has the store of every device by its number; the entry
  // of this device may be null. Throws a UserError if this device cannot read the memory of a
  // device that holds rows for it.
  void read_peers(const std::vector<const FeatureStore*>& peers);

  const cuda::RowFormat& format() const { return format_; }
  // Returns whether kernels read rows of the host over the link.
  bool by_link() const { return host_ != nullptr; }
  // Returns whether some rows come with each batch.
  bool gathers() const { return !by_link() && rows_on_host_ > 0; }
  // Returns whether the rows in device memory change from batch to batch.
  bool caches() const { return caches_; }
  // Returns where the row of each vertex lies; empty if all rows lie in the same tier.
  const std::shared_ptr<const std::vector<uint8_t>>& tiers() const { return tiers_; }
  RowTier only_tier() const { return only_tier_; }  // valid if tiers() is empty
  int64_t rows_on_device() const { return rows_on_device_; }
  // Returns the number of rows that this device reads from the host.
  int64_t rows_on_host() const { return rows_on_host_; }
  int64_t device_bytes() const { return rows_on_device_ * format_.stride(); }
  int64_t table_bytes() const { return table_bytes_; }

  // Describes the rows of one batch. All pointers are addresses in device memory.
  struct Rows {
    const NodeId* ids = nullptr;
    int64_t count = 0;
    // If gathers() is true: for each row of the host, its position in `gathered`. If caches() is
    // true: for each row, its seat or, with the bit cuda::kNotCached, that position.
    const uint32_t* positions = nullptr;
    const void* gathered = nullptr;  // rows of the host that came with the batch
    float* out = nullptr;
  };
  // Starts to compile the kernels that load() and keep() launch.
  void ask_for_kernels(GpuCompiler& compiler) const;
  // Queues the kernel that gathers `rows` from all tiers and writes them as f32. `compiler` belongs
  // to the store's device, or to the same GPU opened a second time.
  void load(GpuCompiler& compiler, const Rows& rows) const;

  // Names the rows of a batch that get a seat. All pointers are addresses in device memory.
  struct Keeps {
    const float* rows = nullptr;     // where load() has written the rows of the batch
    const uint32_t* from = nullptr;  // positions in the batch
    const uint32_t* to = nullptr;    // their seats
    int64_t count = 0;
  };
  // Queues the kernel that writes rows to seats, behind the load() of their batch.
  void keep(GpuCompiler& compiler, const Keeps& keeps) const;

 private:
  cuda::RowPlaces places() const;
  const GpuFunction& function(GpuCompiler& compiler) const;
  const GpuFunction& keep_function(GpuCompiler& compiler) const;
  void place_tables(const Tables& tables);

  std::shared_ptr<Device> device_;
  cuda::RowFormat format_;
  int64_t rows_on_device_ = 0, rows_on_host_ = 0, table_bytes_ = 0;
  std::shared_ptr<void> own_;                          // rows in the memory of the device
  std::shared_ptr<void> holder_, position_, buffers_;  // tables in device memory; null if they are
                                                       // not needed
  int reader_ = 0;
  bool caches_ = false;
  std::vector<uint64_t> addresses_;  // addresses of the buffers of all devices
  std::vector<char> holds_for_us_;   // for each device: whether this device reads rows of it
  std::shared_ptr<const HostRows> host_;
  std::shared_ptr<const std::vector<uint8_t>> tiers_;
  RowTier only_tier_ = RowTier::local;
};

}  // namespace nacre
