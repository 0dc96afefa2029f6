// DeviceTraits: what planning knows of the device that a plan is made for. The values are copied
// from the device once, so that planning touches no device and a plan can be made for a device that
// is not there.
#pragma once

#include <cstdint>

namespace nacre {

// GemmType says how matrix products treat f32 operands: as they are, rounded to tf32, or stored as
// bf16. Sums are always computed in f32.
enum class GemmType : uint8_t { f32, tf32, bf16 };

// Holds the rates by which variants of one kernel are compared (plan/variants.h).
struct VariantRates {
  double launch_seconds = 0;    // seconds of one launch
  double bytes_per_second = 0;  // bytes read or written in order
  double flops_per_second = 0;  // rate of the library's matrix products
  // Products that read their rows by cell take this many times as long as the library's products of
  // rows that lie side by side.
  double cell_slower = 1;

  double seconds(double launches, double floats, double flops) const {
    return launches * launch_seconds + floats * 4 / bytes_per_second + flops / flops_per_second;
  }
};

// GpuPart describes which part of a GPU a device is (cuda:0@32). The parts that compute at the same
// time share the GPU's memory and its second-level cache.
struct GpuPart {
  double own = 1;   // share of the GPU's multiprocessors that the device has
  double busy = 1;  // share that this device and all devices that compute beside it have together

  // Returns the share of the second-level cache that is left to the device.
  double cache() const { return own < busy ? own / busy : 1; }
  bool shares_cache() const { return own < busy; }
};

struct DeviceTraits {
  bool gpu = false;
  int arch = 0;  // compute capability of a GPU: 90 for 9.0
  int multiprocessors = 0;
  GpuPart part;
  int64_t shared_bytes = 0;  // the most shared memory that one block of threads can have
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;           // bytes of memory that were free when the device was opened
  GemmType products = GemmType::f32;  // how matrix products treat their operands
  VariantRates rates;                 // nominal (cost/nominal.h), or measured by `nacre profile`
  bool tune = false;                  // whether variants may be timed on the device
  bool batches = false;               // whether kernels run on the blocks of mini-batches
  // The rows that one pass of a kernel reads again should fit into this many bytes; 0 stands for
  // the second-level cache.
  int64_t cache_bytes = 0;
  // A product and its tail may be one kernel if they have at least this many rows; -1: as many rows
  // as fill the device; 0: they are never one kernel.
  int64_t joined_rows = -1;

  // Returns the device as the kernels of mini-batches see it. Blocks of the same sizes do not come
  // again, so nothing is timed on this device.
  DeviceTraits of_batches() const {
    DeviceTraits device = *this;
    device.tune = false;
    device.batches = true;
    return device;
  }
  // Returns how many bytes of rows one part of a kernel may leave in memory for its next part.
  int64_t rows_budget() const { return memory_bytes / 8; }
  // Returns how many bytes of copies of rows a kernel may hold at a time. More bytes would not make
  // it faster, because copies of large graphs are made chunk by chunk.
  int64_t copies_budget() const {
    constexpr int64_t most = int64_t{2} << 30;  // enough for the products of a chunk to be long
    return rows_budget() < most ? rows_budget() : most;
  }
  // Returns the size of the cache that serves rows which are gathered more than once.
  int64_t gathered_cache() const {
    const int64_t whole = cache_bytes > 0 ? cache_bytes : l2_bytes;
    return part.shares_cache() ? static_cast<int64_t>(static_cast<double>(whole) * part.cache()) : whole;
  }
};

}  // namespace nacre
