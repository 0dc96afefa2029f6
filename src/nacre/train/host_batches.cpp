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
    return std::make_shared<HostBatch>(*this, parts_.runner.prepare(Blocks(sample.blocks)), key);
  }

 private:
  class HostBatch : public PreparedBatch {
   public:
    HostBatch(HostBatches& all, std::unique_ptr<Executor> executor, const SampleKey& key)
        : all_(all), executor_(std::move(executor)), key_(key) {}
    void run(const Batch& batch, int64_t step, Finish finish) override {
      all_.run(batch, *executor_, key_, step);
      finish(executor_->pointer(executor_->plan().dfg.output("loss")));
    }

   private:
    HostBatches& all_;
    std::unique_ptr<Executor> executor_;
    SampleKey key_;
  };

  void run(const Batch& batch, Executor& executor, const SampleKey& key, int64_t step) {
    const Parameter* learned = parts_.learned;
    const TraceSpan span("train", "compute");
    parts_.runner.run(executor, parts_.gather(batch.sample, key), {{parts_.features_leaf(), batch_features(batch)}},
                      {parts_.run.config.seed, static_cast<uint64_t>(step)});
    if (learned != nullptr) {
      spread_rows(executor.output("grad:" + learned->name), batch.sample.vertices.span(),
                  Tensor(DType::f32, learned->shape, nullptr, parts_.learned_gradient));
    }
    reads_ += {.batches = 1, .host = batch.sample.vertices.size()};
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
