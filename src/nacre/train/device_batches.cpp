#include <deque>
#include <utility>

#include "nacre/base/trace.h"
#include "nacre/engine/gpu/sink.h"
#include "nacre/kernel/cuda/sample.h"
#include "nacre/train/batch_computer.h"
#include "nacre/train/gpu_device.h"

namespace nacre {
namespace {

constexpr size_t kSpansKept = 64;  // far more steps than a device has waiting

class DeviceBatches : public BatchComputer {
 public:
  DeviceBatches(const BatchParts& parts, const GpuDevice& device) : parts_(parts), device_(device) {}

  // Features that lie in device memory are looked up there, and the loader sends nothing.
  std::unique_ptr<FeatureSink> make_sink() override {
    if (parts_.resident_features != nullptr) return make_host_sink();
    // Copies have a second stream, unless the run has only a part of the GPU, which has a single
    // stream.
    const std::shared_ptr<GpuCompiler> again = device_.open_beside();
    const std::shared_ptr<Device> device = device_.context()->shared_device();
    return make_device_sink(device, again ? again->device() : device);
  }

  std::shared_ptr<PreparedBatch> prepare(const Sample& sample) override {
    const int64_t rows = sample.vertices.size();
    auto batch = std::make_shared<DeviceBatch>(*this);
    batch->ready = parts_.runner.make_ready(Blocks(sample.blocks), parts_.inputs.gather(parts_.dfg, sample),
                                            {{parts_.features_leaf(), rows * parts_.feature_width() * 4}});
    if (parts_.resident_features != nullptr) {
      Backend& backend = batch->ready.executor->backend();
      batch->ids = backend.place(sample.vertices.data(), rows * 4);
      backend.flush();
    }
    return batch;
  }

  // The sizes of a batch are no part of its kernels' text, but blocks of few rows may have other
  // kernels than those of many.
  void ask_for_kernels(const std::vector<Sample>& like) override {
    const TraceSpan span("prepare", "ask for kernels");
    GpuCompiler& compiler = device_.context()->compiler();
    if (parts_.resident_features != nullptr) compiler.code(cuda::gather_rows(parts_.feature_width()));
    if (parts_.learned != nullptr) compiler.code(cuda::scatter_rows(parts_.feature_width()));
    for (const Sample& sample : like) prepare(sample);
  }

  double device_seconds() override {
    while (!spans_.empty()) count_span();
    return seconds_;
  }

 private:
  struct DeviceBatch : PreparedBatch {
    explicit DeviceBatch(DeviceBatches& a) : all(a) {}
    void run(const Batch& batch, int64_t step, double lr) override { all.run(batch, *this, step, lr); }

    DeviceBatches& all;
    BlockRunner::Ready ready;
    std::shared_ptr<void> ids;  // ids of the vertices, if features lie in device memory
  };

  void run(const Batch& batch, const DeviceBatch& own, int64_t step, double lr) {
    Executor& executor = *own.ready.executor;
    const StepContext context{parts_.run.config.seed, static_cast<uint64_t>(step)};
    const TraceSpan span("train", "launch");
    const DeviceEvent before = device_.backend()->mark();
    executor.backend().begin_step(context);
    const int64_t rows = batch.sample.vertices.size();
    const int64_t width = parts_.feature_width();
    const auto* ids = static_cast<const NodeId*>(own.ids.get());
    void* x = own.ready.leaves.at(parts_.features_leaf()).get();
    if (parts_.resident_features != nullptr) {
      device_.context()->gather_rows(parts_.resident_features, ids, x, {rows, width});
    } else {
      device_.backend()->copy(x, batch.features, rows * width * 4);
    }
    executor.run_once(context);
    if (const Parameter* learned = parts_.learned; learned != nullptr) {
      device_.backend()->clear(parts_.learned_gradient, learned->size * 4);
      device_.context()->scatter_rows(executor.pointer(executor.plan().dfg.output("grad:" + learned->name)), ids,
                                      parts_.learned_gradient, {rows, width});
    }
    parts_.learner.keep_loss(executor);
    parts_.learner.update(lr);
    spans_.emplace_back(before, device_.backend()->mark());
    // The device is most likely long past the oldest step, so nobody waits.
    if (spans_.size() > kSpansKept) count_span();
  }

  void count_span() {
    seconds_ += device_.backend()->elapsed(spans_.front().first, spans_.front().second);
    spans_.pop_front();
  }

  BatchParts parts_;
  const GpuDevice& device_;
  // The beginning and the end of each step, in the order of steps: those that are not counted in
  // seconds_ yet.
  std::deque<std::pair<DeviceEvent, DeviceEvent>> spans_;
  double seconds_ = 0;
};

}  // namespace

std::unique_ptr<BatchComputer> make_device_batches(const BatchParts& parts, const GpuDevice& device) {
  return std::make_unique<DeviceBatches>(parts, device);
}

}  // namespace nacre
