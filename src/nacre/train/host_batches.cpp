#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "nacre/base/trace.h"
#include "nacre/train/batch_computer.h"

namespace nacre {
namespace {

// Computes batches on the host. Without tracks, only one batch may be computed at a time. With
// tracks, batches of different tracks may be computed at the same time, on any threads.
class HostBatches : public BatchComputer {
 public:
  explicit HostBatches(const BatchParts& parts)
      : parts_(parts), tracks_(static_cast<size_t>(std::max<int64_t>(1, parts.learner.tracks()))) {}

  std::unique_ptr<FeatureSink> make_sink() override { return make_host_sink(); }
  RowReads rows_read() override {
    const std::lock_guard lock(mutex_);
    return reads_;
  }
  std::shared_ptr<PreparedBatch> prepare(const Sample& sample, const SampleKey& key) override {
    auto batch = std::make_shared<HostBatch>(*this, key);
    if (const KindTables* kinds = parts_.inputs.kinds(); kinds != nullptr) {
      batch->kinds = kinds->split(sample.vertices.span());
      batch->rows = kinds->features(batch->kinds, true);
    }
    batch->executor = parts_.runner.prepare(Blocks(sample.blocks, batch->kinds.places));
    return batch;
  }

 private:
  struct HostBatch : PreparedBatch {
    HostBatch(HostBatches& a, const SampleKey& k) : all(a), key(k) {}
    void run(const Batch& batch, int64_t step, Finish finish) override {
      all.run(batch, *this, step);
      finish(executor->pointer(executor->plan().dfg.output("loss")));
    }

    HostBatches& all;
    SampleKey key;
    std::unique_ptr<Executor> executor;
    KindBatch kinds;              // empty if all vertices read one table
    std::vector<LeafValue> rows;  // features of several kinds
  };

  struct Track {
    BlockRunner::Track place;
    Tensor rows;  // learned rows of one batch
  };

  bool has_tracks() const { return parts_.learner.tracks() > 0; }
  // Returns where batch `number` of an epoch finds the weights or gradients at `place`.
  void* on_track(void* place, int64_t number) const {
    if (!has_tracks()) return place;
    void* const at = parts_.learner.on_track(place, number);
    return parts_.gradient_tracks ? parts_.gradients.on_track(at, number % parts_.learner.tracks()) : at;
  }

  void run(const Batch& batch, HostBatch& own, int64_t step) {
    {
      const TraceSpan span("train", "compute");
      Track& track = tracks_[static_cast<size_t>(batch.index) % tracks_.size()];
      std::vector<LeafValue> leaves = parts_.gather(batch.sample, own.key);
      std::map<std::string, void*> in_place;
      if (const KindTables* kinds = parts_.inputs.kinds(); kinds != nullptr) {
        std::move(own.rows.begin(), own.rows.end(), std::back_inserter(leaves));
        for (LeafValue& learned : kinds->learned_rows(own.kinds, batch.index)) leaves.push_back(std::move(learned));
      } else {
        in_place[parts_.features_leaf()] = batch_features(batch, track);
      }
      const StepContext context{parts_.run.config.seed, static_cast<uint64_t>(step)};
      if (has_tracks()) {
        const auto places = [&](void* place) { return on_track(place, batch.index); };
        parts_.runner.run_on(track.place, places, *own.executor, leaves, in_place, context);
      } else {
        parts_.runner.run(*own.executor, leaves, in_place, context);
      }
      spread_gradients(batch, own);
    }
    const std::lock_guard lock(mutex_);
    reads_ += {.batches = 1, .host = batch.sample.vertices.size()};
  }

  // Sets the gradient of learned rows: that of the rows which the batch has read, and 0 elsewhere.
  void spread_gradients(const Batch& batch, const HostBatch& own) {
    const auto spread = [&](const Parameter& p, float* gradient, std::span<const NodeId> rows) {
      spread_rows(own.executor->output("grad:" + p.name), rows,
                  Tensor(DType::f32, p.shape, nullptr, on_track(gradient, batch.index)));
    };
    if (parts_.learned != nullptr) spread(*parts_.learned, parts_.learned_gradient, batch.sample.vertices.span());
    const KindTables* kinds = parts_.inputs.kinds();
    for (size_t k = 0; kinds != nullptr && k < kinds->list().size(); ++k) {
      const KindTable& table = kinds->list()[k];
      if (table.learned != nullptr) spread(*table.learned, table.gradient, own.kinds.rows[k].span());
    }
  }

  // Returns the feature rows of the batch: those that the loader has looked up or, if rows are
  // learned, rows that are looked up only now, because they change with every step.
  void* batch_features(const Batch& batch, Track& track) {
    const Parameter* learned = parts_.learned;
    if (learned == nullptr) return batch.features;
    const int64_t rows = batch.sample.vertices.size();
    if (!track.rows.defined() || track.rows.rows() < rows)
      track.rows = Tensor(DType::f32, {rows + rows / 8, parts_.feature_width()});
    void* const weights = on_track(parts_.learner.place(*learned), batch.index);
    gather_rows(Tensor(DType::f32, learned->shape, nullptr, weights), batch.sample.vertices.span(), track.rows.raw());
    return track.rows.raw();
  }

  BatchParts parts_;
  std::vector<Track> tracks_;
  std::mutex mutex_;  // protects reads_
  RowReads reads_;
};

}  // namespace

std::unique_ptr<BatchComputer> make_host_batches(const BatchParts& parts) {
  return std::make_unique<HostBatches>(parts);
}

}  // namespace nacre
