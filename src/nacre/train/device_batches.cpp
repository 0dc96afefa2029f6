#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/trace.h"
#include "nacre/engine/gpu/feature_store.h"
#include "nacre/engine/gpu/sink.h"
#include "nacre/kernel/cuda/sample.h"
#include "nacre/tier/cached_batches.h"
#include "nacre/train/batch_computer.h"
#include "nacre/train/gpu_device.h"

namespace nacre {
namespace {

constexpr size_t kSpansKept = 64;  // far more spans than a device has unfinished steps

// Remembers where pieces of work of a device begin and end, and adds up how long they took.
class SpanClock {
 public:
  void add(Device& device, const DeviceEvent& from, const DeviceEvent& to) {
    spans_.push_back({&device, from, to});
    // With many spans, the oldest one is counted now. count() waits for the end of that span, which
    // the device has most likely passed.
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
  std::deque<Span> spans_;  // spans whose seconds are not in seconds_ yet
  double seconds_ = 0;
};

// Holds memory that a device may use until the program ends.
void keep_for_ever(const std::vector<std::shared_ptr<void>>& memory) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<void>>();
  const std::lock_guard lock(mutex);
  kept->insert(kept->end(), memory.begin(), memory.end());
}

class DeviceBatches : public BatchComputer {
 public:
  DeviceBatches(const BatchParts& parts, const GpuDevice& device) : parts_(parts), device_(device) {
    // Rows are loaded in a second stream, beside the steps of earlier batches, unless the run has
    // only a part of the GPU, which has a single stream.
    if (parts_.store != nullptr && !parts_.store->gathers()) beside_ = device_.open_beside();
  }

  // Returns a sink that sends rows to the device if the store lets the host gather rows. Otherwise
  // the loader looks up no rows (BatchSession::loaded_features()), so a sink in host memory will
  // do.
  std::unique_ptr<FeatureSink> make_sink() override {
    if (parts_.store == nullptr || !parts_.store->gathers()) return make_host_sink();
    const std::shared_ptr<GpuCompiler> again = device_.open_beside();
    const std::shared_ptr<Device> device = device_.context()->shared_device();
    return make_device_sink(device, again ? again->device() : device);
  }

  std::shared_ptr<PreparedBatch> prepare(const Sample& sample, const SampleKey& key) override {
    return prepare(sample, key, true);
  }

  // Starts to compile the kernels that batches like these need. A kernel's text does not depend on
  // the sizes of a batch, but blocks of few rows may use other kernels than blocks of many rows.
  void ask_for_kernels(const std::vector<Sample>& like) override {
    const TraceSpan span("prepare", "ask for kernels");
    GpuCompiler& compiler = device_.context()->compiler();
    if (parts_.resident_features != nullptr) compiler.code(cuda::gather_rows(parts_.feature_width()));
    if (parts_.store != nullptr) parts_.store->ask_for_kernels(beside_ ? *beside_ : compiler);
    if (parts_.learned != nullptr) compiler.code(cuda::scatter_rows(parts_.feature_width()));
    if (const KindTables* kinds = parts_.inputs.kinds(); kinds != nullptr) {
      for (const KindTable& table : kinds->list()) {
        if (table.resident != nullptr) compiler.code(cuda::gather_rows(table.width));
        if (table.learned != nullptr) compiler.code(cuda::scatter_rows(table.width));
      }
    }
    for (const Sample& sample : like) prepare(sample, {}, false);
  }

  double device_seconds() override { return steps_.seconds(); }
  double loading_seconds() override { return loads_.seconds(); }
  RowReads rows_read() override { return reads_; }

 private:
  // The rows of one kind that a batch reads in the memory of the device.
  struct KindLookup {
    const KindTable* table;
    int64_t count;
    std::shared_ptr<void> ids;  // ids of these rows
  };

  struct DeviceBatch : PreparedBatch {
    explicit DeviceBatch(DeviceBatches& a) : all(a) {}
    DeviceBatch(const DeviceBatch&) = delete;
    DeviceBatch& operator=(const DeviceBatch&) = delete;
    // If the batch did not run, the device may still write rows to its memory, so the main stream
    // waits for that. If the device has failed, nobody knows when it stops writing, so the memory
    // is never given back.
    ~DeviceBatch() override {
      if (!loading) return;
      try {
        NACRE_CHECK(loaded, "the loading of a batch was not queued as a whole");
        all.main().wait_for(loaded);
      } catch (const std::exception& error) {
        log_verbose(std::string("the device did not load a batch: ") + error.what());
        keep_for_ever({std::make_shared<BlockRunner::Ready>(std::move(ready)), ids, positions, keeps});
      }
    }
    void run(const Batch& batch, int64_t step, Finish finish) override { all.run(batch, *this, step, finish); }

    DeviceBatches& all;
    BlockRunner::Ready ready;
    std::shared_ptr<void> ids;        // ids of the batch's vertices, in device memory
    std::shared_ptr<void> positions;  // for each row of the host, its position among the rows that
                                      // are sent
    std::vector<KindLookup> lookups;  // what the device looks up, if there are several kinds
    // If rows are cached: the positions in the batch of the rows that stay, and their seats behind
    // them.
    std::shared_ptr<void> keeps;
    int64_t kept = 0;  // number of rows that stay
    SampleKey key;
    RowReads reads;
    bool loading = false;        // whether work beside the steps may use the memory of the batch
    DeviceEvent before, loaded;  // events before and after the work that loads rows beside the
                                 // steps
  };

  Device& main() { return device_.context()->device(); }

  // Returns a function that gives the place of weights and gradients on the track of the batch; an
  // empty function if there are no tracks.
  BlockRunner::Places places_of(const SampleKey& key) const {
    if (parts_.learner.tracks() == 0) return {};
    return [this, key](void* place) {
      const auto number = static_cast<int64_t>(key.batch);
      void* const at = parts_.learner.on_track(place, number);
      return parts_.gradient_tracks ? parts_.gradients.on_track(at, number % parts_.learner.tracks()) : at;
    };
  }

  // Prepares a batch. If `of_the_run` is false, the batch will not be computed, and has no turn
  // among the batches whose rows are cached.
  std::shared_ptr<PreparedBatch> prepare(const Sample& sample, const SampleKey& key, bool of_the_run) {
    if (parts_.inputs.kinds() != nullptr) return prepare_kinds(sample, key);
    const int64_t rows = sample.vertices.size();
    auto batch = std::make_shared<DeviceBatch>(*this);
    batch->key = key;
    batch->ready =
        parts_.runner.make_ready(Blocks(sample.blocks), parts_.gather(sample, key),
                                 {{parts_.features_leaf(), rows * parts_.feature_width() * 4}}, places_of(key));
    Backend& backend = batch->ready.executor->backend();
    batch->ids = backend.place(sample.vertices.data(), rows * 4);
    if (parts_.cache == nullptr) {
      count_rows(sample, *batch);
    } else if (of_the_run) {
      find_cached(*batch);
    }
    backend.flush();
    if (!beside_) return batch;
    if (parts_.cache == nullptr) {
      load_beside(*batch, rows);
    } else if (of_the_run) {
      // The rows of batches must be loaded in the order of the batches. If an earlier batch has not
      // come yet, the call for that batch queues this load as well.
      parts_.cache->queue_in_turn(key, [this, rows, waiting = std::weak_ptr<DeviceBatch>(batch)](const CachePlan&) {
        const std::shared_ptr<DeviceBatch> its_turn = waiting.lock();
        NACRE_CHECK(its_turn != nullptr, "a batch was dropped before its turn");
        load_beside(*its_turn, rows);
      });
    }
    return batch;
  }

  // Notes where the device finds the rows of a batch, and which of them stay, as its plan says.
  void find_cached(DeviceBatch& batch) const {
    const std::shared_ptr<const CachePlan> plan = parts_.cache->plan(batch.key);
    batch.reads.batches = 1;
    batch.reads.local = plan->hits;
    batch.reads.host = plan->misses();
    const bool gathers = parts_.store->gathers();
    std::vector<uint32_t> places(plan->seats.size()), keeps;
    uint32_t sent = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      const int32_t seat = plan->seats[i];
      places[i] = seat != kNoSeat ? static_cast<uint32_t>(seat) : cuda::kNotCached | (gathers ? sent++ : 0);
    }
    for (const RowKeep& keep : plan->keeps) keeps.push_back(keep.place);
    for (const RowKeep& keep : plan->keeps) keeps.push_back(static_cast<uint32_t>(keep.seat));
    batch.kept = static_cast<int64_t>(plan->keeps.size());
    Backend& backend = batch.ready.executor->backend();
    batch.positions = backend.place(places.data(), static_cast<int64_t>(places.size()) * 4);
    if (batch.kept > 0) batch.keeps = backend.place(keeps.data(), batch.kept * 8);
  }

  // Queues the loading of a batch's rows and, if rows are cached, the writing of those that stay.
  void load_rows(GpuCompiler& compiler, const DeviceBatch& batch, int64_t rows, const void* gathered) const {
    const FeatureStore::Rows all = rows_of(batch, rows, gathered);
    parts_.store->load(compiler, all);
    const auto* keeps = static_cast<const uint32_t*>(batch.keeps.get());
    if (batch.kept > 0) parts_.store->keep(compiler, {all.out, keeps, keeps + batch.kept, batch.kept});
  }

  // Prepares a batch whose vertices read the tables of several kinds. Rows of tables that are not
  // in the memory of the device are gathered here and sent with the other leaves.
  std::shared_ptr<PreparedBatch> prepare_kinds(const Sample& sample, const SampleKey& key) {
    const KindTables& kinds = *parts_.inputs.kinds();
    const KindBatch by_kind = kinds.split(sample.vertices.span());
    auto batch = std::make_shared<DeviceBatch>(*this);
    std::map<std::string, int64_t> room;
    for (size_t k = 0; k < kinds.list().size(); ++k) {
      const KindTable& table = kinds.list()[k];
      if (table.resident == nullptr) continue;
      batch->lookups.push_back({&table, by_kind.rows[k].size(), nullptr});
      room[table.leaf] = by_kind.rows[k].size() * table.width * 4;
      batch->reads.local += by_kind.rows[k].size();
    }
    batch->reads.batches = 1;
    batch->reads.host = sample.vertices.size() - batch->reads.local;
    std::vector<LeafValue> leaves = parts_.gather(sample, key);
    for (LeafValue& features : kinds.features(by_kind, false)) leaves.push_back(std::move(features));
    batch->ready = parts_.runner.make_ready(Blocks(sample.blocks, by_kind.places), leaves, room, places_of(key));
    Backend& backend = batch->ready.executor->backend();
    for (KindLookup& lookup : batch->lookups) {
      const Array<NodeId>& rows = by_kind.rows[static_cast<size_t>(lookup.table - kinds.list().data())];
      lookup.ids = backend.place(rows.data(), lookup.count * 4);
    }
    backend.flush();
    return batch;
  }

  // Counts where the rows of a batch lie. If the rows of the host are sent, also notes the position
  // of each of them among the rows that are sent.
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
    batch.loading = true;
    load_rows(*beside_, batch, rows, nullptr);
    batch.loaded = side.record();
  }

  void load_kinds(const Batch& batch, DeviceBatch& own) {
    for (const KindLookup& lookup : own.lookups) {
      const void* const rows = parts_.learner.on_track(lookup.table->resident, batch.index);
      device_.context()->gather_rows(rows, static_cast<const NodeId*>(lookup.ids.get()),
                                     own.ready.leaves.at(lookup.table->leaf).get(),
                                     {lookup.count, lookup.table->width});
    }
  }

  // Makes sure that work which is queued next finds the rows of the batch's vertices in their
  // place.
  void load(const Batch& batch, DeviceBatch& own) {
    const int64_t rows = batch.sample.vertices.size();
    if (parts_.inputs.kinds() != nullptr) return load_kinds(batch, own);
    if (parts_.store == nullptr) {
      const void* const table = parts_.learner.on_track(parts_.resident_features, batch.index);
      device_.context()->gather_rows(table, static_cast<const NodeId*>(own.ids.get()),
                                     own.ready.leaves.at(parts_.features_leaf()).get(), {rows, parts_.feature_width()});
      return;
    }
    if (own.loaded) {
      main().wait_for(own.loaded);
      own.loading = false;
      loads_.add(*beside_->device(), own.before, own.loaded);
      own.loaded.reset();
      return;
    }
    const DeviceEvent before = main().record();
    const auto queue = [&] { load_rows(device_.context()->compiler(), own, rows, batch.features); };
    if (parts_.cache == nullptr) {
      queue();
    } else {
      bool queued = false;
      parts_.cache->queue_in_turn(own.key, [&](const CachePlan&) {
        queue();
        queued = true;
      });
      NACRE_CHECK(queued, "batches are not computed in their order");
    }
    loads_.add(main(), before, main().record());
  }

  // Sets the gradient of learned rows: that of the rows which the batch has read, and 0 elsewhere.
  void spread_gradients(const Batch& batch, const DeviceBatch& own) {
    const Executor& executor = *own.ready.executor;
    const auto spread = [&](const Parameter& p, float* gradient, const void* ids, int64_t count) {
      device_.backend()->clear(gradient, p.size * 4);
      device_.context()->scatter_rows(executor.pointer(executor.plan().dfg.output("grad:" + p.name)),
                                      static_cast<const NodeId*>(ids), gradient, {count, parts_.feature_width()});
    };
    if (parts_.learned != nullptr)
      spread(*parts_.learned, parts_.learned_gradient, own.ids.get(), batch.sample.vertices.size());
    for (const KindLookup& lookup : own.lookups) {
      if (lookup.table->learned != nullptr)
        spread(*lookup.table->learned, lookup.table->gradient, lookup.ids.get(), lookup.count);
    }
  }

  void run(const Batch& batch, DeviceBatch& own, int64_t step, PreparedBatch::Finish finish) {
    Executor& executor = *own.ready.executor;
    const StepContext context{parts_.run.config.seed, static_cast<uint64_t>(step)};
    const TraceSpan span("train", "launch");
    const DeviceEvent before = device_.backend()->mark();
    executor.backend().begin_step(context);
    load(batch, own);
    executor.run_once(context);
    spread_gradients(batch, own);
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
