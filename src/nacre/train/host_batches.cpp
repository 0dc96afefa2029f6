#include <iterator>
#include <utility>

#include "nacre/base/trace.h"
#include "nacre/train/batch_computer.h"

namespace nacre {
namespace {

class HostBatches : public BatchComputer {
 public:
  explicit HostBatches(const BatchParts& parts) : parts_(parts) {}

  std::unique_ptr<FeatureSink> make_sink() override { return make_host_sink(); }
  RowReads rows_read() override { return reads_; }
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

  void run(const Batch& batch, HostBatch& own, int64_t step) {
    {
      const TraceSpan span("train", "compute");
      std::vector<LeafValue> leaves = parts_.gather(batch.sample, own.key);
      std::map<std::string, void*> in_place;
      if (const KindTables* kinds = parts_.inputs.kinds(); kinds != nullptr) {
        std::move(own.rows.begin(), own.rows.end(), std::back_inserter(leaves));
        for (LeafValue& learned : kinds->learned_rows(own.kinds)) leaves.push_back(std::move(learned));
      } else {
        in_place[parts_.features_leaf()] = batch_features(batch);
      }
      parts_.runner.run(*own.executor, leaves, in_place, {parts_.run.config.seed, static_cast<uint64_t>(step)});
      spread_gradients(batch, own);
    }
    reads_ += {.batches = 1, .host = batch.sample.vertices.size()};
  }

  // Sets the gradient of learned rows: that of the rows which the batch has read, and 0 elsewhere.
  void spread_gradients(const Batch& batch, const HostBatch& own) {
    const auto spread = [&](const Parameter& p, float* gradient, std::span<const NodeId> rows) {
      spread_rows(own.executor->output("grad:" + p.name), rows, Tensor(DType::f32, p.shape, nullptr, gradient));
    };
    if (parts_.learned != nullptr) spread(*parts_.learned, parts_.learned_gradient, batch.sample.vertices.span());
    const KindTables* kinds = parts_.inputs.kinds();
    for (size_t k = 0; kinds != nullptr && k < kinds->list().size(); ++k) {
      const KindTable& table = kinds->list()[k];
      if (table.learned != nullptr) spread(*table.learned, table.gradient, own.kinds.rows[k].span());
    }
  }

  // Returns the rows of the vertices of the batch. Learned rows change with every step, so they are
  // looked up only now.
  void* batch_features(const Batch& batch) {
    const Parameter* learned = parts_.learned;
    if (learned == nullptr) return batch.features;
    const int64_t rows = batch.sample.vertices.size();
    if (!rows_.defined() || rows_.rows() < rows) rows_ = Tensor(DType::f32, {rows + rows / 8, parts_.feature_width()});
    const Tensor all(DType::f32, learned->shape, nullptr, parts_.learner.parameters().data(*learned));
    gather_rows(all, batch.sample.vertices.span(), rows_.raw());
    return rows_.raw();
  }

  BatchParts parts_;
  Tensor rows_;  // rows of one batch; used if features are learned
  RowReads reads_;
};

}  // namespace

std::unique_ptr<BatchComputer> make_host_batches(const BatchParts& parts) {
  return std::make_unique<HostBatches>(parts);
}

}  // namespace nacre
