#include <deque>
#include <mutex>
#include <utility>

#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/engine/gpu/feature_store.h"
#include "nacre/engine/gpu/sink.h"
#include "nacre/kernel/cuda/sample.h"
#include "nacre/train/batch_computer.h"
#include "nacre/train/gpu_device.h"

namespace nacre {
namespace {

constexpr size_t kSpansKept = 64;  // far more steps than a device has waiting

// The beginnings and the ends of pieces of work of a device, and how long the work took.
class SpanClock {
 public:
  void add(Device& device, const DeviceEvent& from, const DeviceEvent& to) {
    spans_.push_back({&device, from, to});
    // The device is most likely long past the oldest span, so nobody waits.
    if (spans_.size() > kSpansKept) count();
  }
  double seconds() {
    while (!spans_.empty()) count();
    return seconds_;
  }

 private:
  struct Span {
    Device* device;
    DeviceEvent from, to;
  };
  void count() {
    seconds_ += spans_.front().device->elapsed(spans_.front().from, spans_.front().to);
    spans_.pop_front();
  }
  std::deque<Span> spans_;  // those that are not counted in seconds_ yet
  double seconds_ = 0;
};

class DeviceBatches : public BatchComputer {
 public:
  DeviceBatches(const BatchParts& parts, const GpuDevice& device) : parts_(parts), device_(device) {
    // Rows are loaded in a second stream, beside the steps of earlier batches, unless the run has
    // only a part of the GPU, which has a single stream.
    if (parts_.store != nullptr && !parts_.store->gathers()) beside_ = device_.open_beside();
  }

  // The loader sends only rows that the device does not look up where they lie.
  std::unique_ptr<FeatureSink> make_sink() override {
    if (parts_.store == nullptr || !parts_.store->gathers()) return make_host_sink();
    const std::shared_ptr<GpuCompiler> again = device_.open_beside();
    const std::shared_ptr<Device> device = device_.context()->shared_device();
    return make_device_sink(device, again ? again->device() : device);
  }

  std::shared_ptr<PreparedBatch> prepare(const Sample& sample, const SampleKey& key) override {
    const int64_t rows = sample.vertices.size();
    auto batch = std::make_shared<DeviceBatch>(*this);
    batch->ready = parts_.runner.make_ready(Blocks(sample.blocks), parts_.gather(sample, key),
                                            {{parts_.features_leaf(), rows * parts_.feature_width() * 4}});
    Backend& backend = batch->ready.executor->backend();
    batch->ids = backend.place(sample.vertices.data(), rows * 4);
    count_rows(sample, *batch);
    backend.flush();
    if (beside_) load_beside(*batch, rows);
    return batch;
  }

  // The sizes of a batch are no part of its kernels' text, but blocks of few rows may have other
  // kernels than those of many.
  void ask_for_kernels(const std::vector<Sample>& like) override {
    const TraceSpan span("prepare", "ask for kernels");
    GpuCompiler& compiler = device_.context()->compiler();
    if (parts_.resident_features != nullptr) compiler.code(cuda::gather_rows(parts_.feature_width()));
    if (parts_.store != nullptr) parts_.store->ask_for_kernel(beside_ ? *beside_ : compiler);
    if (parts_.learned != nullptr) compiler.code(cuda::scatter_rows(parts_.feature_width()));
    for (const Sample& sample : like) prepare(sample, {});
  }

  double device_seconds() override { return steps_.seconds(); }
  double loading_seconds() override { return loads_.seconds(); }
  RowReads rows_read() override { return reads_; }

 private:
  struct DeviceBatch : PreparedBatch {
    explicit DeviceBatch(DeviceBatches& a) : all(a) {}
    DeviceBatch(const DeviceBatch&) = delete;
    DeviceBatch& operator=(const DeviceBatch&) = delete;
    // If the batch did not run, rows may still be written to its memory.
    ~DeviceBatch() override {
      if (!loaded) return;
      try {
        all.main().wait_for(loaded);
      } catch (const std::exception& error) {
        log_verbose(std::string("the device did not load a batch: ") + error.what());
      }
    }
    void run(const Batch& batch, int64_t step, Finish finish) override { all.run(batch, *this, step, finish); }

    DeviceBatches& all;
    BlockRunner::Ready ready;
    std::shared_ptr<void> ids;        // ids of the vertices
    std::shared_ptr<void> positions;  // where rows of the host are among those that are sent
    RowReads reads;
    DeviceEvent before, loaded;  // around the work that loads rows beside the steps
  };

  Device& main() { return device_.context()->device(); }

  // Counts where the rows of a batch lie. If the rows of the host are sent, says where each of them
  // is among these.
  void count_rows(const Sample& sample, DeviceBatch& batch) const {
    const auto ids = sample.vertices.span();
    RowReads& reads = batch.reads;
    reads.batches = 1;
    if (parts_.store == nullptr || !parts_.store->tiers()) {
      const bool host = parts_.store != nullptr && parts_.store->only_tier() == RowTier::host;
      (host ? reads.host : reads.local) = sample.vertices.size();
      return;
    }
    const std::vector<uint8_t>& tiers = *parts_.store->tiers();
    int64_t counts[3] = {};
    std::vector<uint32_t> positions(parts_.store->gathers() ? ids.size() : 0);
    for (size_t i = 0; i < ids.size(); ++i) {
      const uint8_t tier = tiers[ids[i]];
      if (!positions.empty()) positions[i] = static_cast<uint32_t>(counts[static_cast<int>(RowTier::host)]);
      ++counts[tier];
    }
    reads.local = counts[static_cast<int>(RowTier::local)];
    reads.host = counts[static_cast<int>(RowTier::host)];
    reads.peer = counts[static_cast<int>(RowTier::peer)];
    if (!positions.empty())
      batch.positions =
          batch.ready.executor->backend().place(positions.data(), static_cast<int64_t>(positions.size()) * 4);
  }

  FeatureStore::Rows rows_of(const DeviceBatch& batch, int64_t rows, const void* gathered) const {
    return {static_cast<const NodeId*>(batch.ids.get()), rows, static_cast<const uint32_t*>(batch.positions.get()),
            gathered, static_cast<float*>(batch.ready.leaves.at(parts_.features_leaf()).get())};
  }

  // Queues the loading of a batch's rows in the second stream, behind the copy of its ids and all
  // work that may still use the memory to which the rows go.
  void load_beside(DeviceBatch& batch, int64_t rows) {
    const std::lock_guard lock(mutex_);
    Device& side = *beside_->device();
    side.wait_for(main().copied());
    side.wait_for(main().record());
    batch.before = side.record();
    parts_.store->load(*beside_, rows_of(batch, rows, nullptr));
    batch.loaded = side.record();
  }

  // Lets the rows of a batch's vertices be in their place for the work that is queued next.
  void load(const Batch& batch, DeviceBatch& own) {
    const int64_t rows = batch.sample.vertices.size();
    if (parts_.store == nullptr) {
      device_.context()->gather_rows(parts_.resident_features, static_cast<const NodeId*>(own.ids.get()),
                                     own.ready.leaves.at(parts_.features_leaf()).get(), {rows, parts_.feature_width()});
      return;
    }
    if (own.loaded) {
      main().wait_for(own.loaded);
      loads_.add(*beside_->device(), own.before, own.loaded);
      own.loaded.reset();
      return;
    }
    const DeviceEvent before = main().record();
    parts_.store->load(device_.context()->compiler(), rows_of(own, rows, batch.features));
    loads_.add(main(), before, main().record());
  }

  void run(const Batch& batch, DeviceBatch& own, int64_t step, PreparedBatch::Finish finish) {
    Executor& executor = *own.ready.executor;
    const StepContext context{parts_.run.config.seed, static_cast<uint64_t>(step)};
    const TraceSpan span("train", "launch");
    const DeviceEvent before = device_.backend()->mark();
    executor.backend().begin_step(context);
    load(batch, own);
    executor.run_once(context);
    if (const Parameter* learned = parts_.learned; learned != nullptr) {
      device_.backend()->clear(parts_.learned_gradient, learned->size * 4);
      device_.context()->scatter_rows(executor.pointer(executor.plan().dfg.output("grad:" + learned->name)),
                                      static_cast<const NodeId*>(own.ids.get()), parts_.learned_gradient,
                                      {batch.sample.vertices.size(), parts_.feature_width()});
    }
    finish(executor.pointer(executor.plan().dfg.output("loss")));
    steps_.add(main(), before, device_.backend()->mark());
    reads_ += own.reads;
    trace_numbers(
        "feature rows",
        {{"local", own.reads.local}, {"peer", own.reads.peer}, {"host", own.reads.host}, {"disk", own.reads.disk}});
  }

  BatchParts parts_;
  const GpuDevice& device_;
  std::shared_ptr<GpuCompiler> beside_;  // loads rows beside the steps; null: steps load their rows
  std::mutex mutex_;                     // held while work is queued in the second stream
  SpanClock steps_, loads_;
  RowReads reads_;
};

}  // namespace

std::unique_ptr<BatchComputer> make_device_batches(const BatchParts& parts, const GpuDevice& device) {
  return std::make_unique<DeviceBatches>(parts, device);
}

}  // namespace nacre
