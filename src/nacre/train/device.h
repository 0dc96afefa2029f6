// The device that a run computes on (--device, --precision).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nacre/engine/backend.h"
#include "nacre/sample/sample.h"
#include "nacre/train/config.h"

namespace nacre {

class BatchComputer;
class GpuCompiler;
class Scorer;
struct BatchParts;
struct RunData;

// What --device asks for: auto (the first GPU, or the CPU if there is no GPU), cpu, cuda (the first
// GPU), cuda:1 (the second GPU), or cuda:0@32 (32 multiprocessors of the first GPU).
struct DeviceChoice {
  bool gpu = false;
  int index = 0;
  int multiprocessors = 0;  // 0 = all
};
// Returns the device of that name. Throws a UserError, which names `option`, if the device or the
// precision does not exist here.
DeviceChoice choose_device(const std::string& device, const std::string& precision,
                           const std::string& option = "--device");
// Throws a UserError if --features-on, --sample-on or another option that says where features lie
// has an unknown value, or if an option names a device as the place but the run computes on the
// host.
void check_places(const RunConfig& config);

// The batches that a device is asked to draw.
struct DrawRequest {
  const SampleOptions& asked;                // options of the user
  const Sampler& sampler;                    // must outlive the samplers of the device
  const std::function<BatchOrder()>& order;  // returns the order of the batch loader
  int ahead = 1;                             // number of batches that are drawn at once
  bool scaled = false;                       // whether steps read the scales of edges
  int64_t bytes = 0;                         // memory of the graph and the tables
  bool required = false;                     // may take all free memory (--sample-on device)
  // Returns whether the host draws the batch of this number in its epoch. If empty, the host draws
  // no batch.
  std::function<bool(int64_t)> skips = {};
};
struct DrawAnswer {
  MakeBatchSampler make;  // argument of Sampler::draw_with(); null if the device does not draw
  std::string why_not;
  // Makes the device draw the batches of another order from now on, and drops those that were drawn
  // ahead. No thread may draw meanwhile.
  std::function<void(const BatchOrder& order)> reorder = {};
};

// RunDevice: an opened device on which executors compute. Most of what differs between devices is a
// virtual function of this class or of its back end. Other code only asks whether the values lie in
// the memory of the host (on_host()), or takes the GPU (gpu_of()).
class RunDevice {
 public:
  RunDevice(std::string name, std::shared_ptr<Backend> backend)
      : name_(std::move(name)), backend_(std::move(backend)) {}
  virtual ~RunDevice() = default;
  RunDevice(const RunDevice&) = delete;
  RunDevice& operator=(const RunDevice&) = delete;

  const std::string& name() const { return name_; }  // "cpu", or the name of the GPU
  const std::shared_ptr<Backend>& backend() const { return backend_; }
  // Returns whether kernels of this device compute in the memory of the host.
  bool on_host() const { return backend_->on_host(); }

  // Returns how many bytes a run may take of the memory in which kernels compute, including what
  // the run holds already. A device with memory of its own may use --memory-limit bytes, or `left`
  // bytes if that option is not given. The host ignores `left`.
  virtual int64_t memory_limit(const RunConfig& config, int64_t left) const = 0;
  // Returns the bytes that were free when the device was opened.
  virtual int64_t free_at_start() const = 0;
  // Returns the most bytes of the device's own memory that were taken; -1 if it has none.
  virtual int64_t peak_bytes() const = 0;

  // Return what ranks need to move rows between devices: the compiler of a GPU and the GPU itself.
  // Both are null if the rank's values lie in host memory.
  virtual std::shared_ptr<GpuCompiler> gpu_compiler() const { return nullptr; }
  virtual std::shared_ptr<Device> gpu() const { return nullptr; }

  // Returns how many mini-batches are prepared ahead if --prefetch is not given.
  virtual int batches_ahead() const = 0;
  virtual DrawAnswer draw_batches(const DrawRequest& request) const = 0;
  // Returns a computer of the batches of a session. The device and all that `parts` refers to must
  // outlive it.
  virtual std::unique_ptr<BatchComputer> make_batch_computer(const BatchParts& parts) const = 0;
  // Returns a scorer for the data of `run`, which must outlive it.
  virtual std::unique_ptr<Scorer> make_scorer(const RunData& run) const = 0;

 private:
  std::string name_;
  std::shared_ptr<Backend> backend_;
};

// Opens the device that the run asks for.
std::shared_ptr<const RunDevice> open_device(const RunConfig& config, std::shared_ptr<GraphViews> views);

}  // namespace nacre
