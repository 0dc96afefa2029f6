#include "nacre/tier/batch_sequence.h"

#include <algorithm>
#include <utility>

#include "nacre/schedule/batch_loader.h"

namespace nacre {
namespace {

class SampledBatches : public BatchSequence {
 public:
  SampledBatches(const Sampler& sampler, std::unique_ptr<BatchSampler> drawer, BatchOrder order, WantedRows wanted)
      : sampler_(sampler), drawer_(std::move(drawer)), order_(std::move(order)), wanted_(std::move(wanted)) {}

  int64_t batches_per_epoch() const override { return order_.num_batches(); }

  void begin(BatchTurn first) override {
    turn_ = first;
    order_.begin_epoch(first.epoch);
  }

  void next(std::vector<NodeId>& rows) override {
    if (turn_.index == order_.num_batches()) begin({turn_.epoch + 1, 0});
    drawer_->begin(sampler_.draws_seeds() ? std::span<const NodeId>() : order_.batch(turn_.index),
                   {turn_.epoch, static_cast<uint64_t>(order_.number(turn_.index))});
    for (int hop = 0; hop < drawer_->hops(); ++hop) {
      drawer_->pick(hop);
      drawer_->insert(hop);
    }
    const auto all = drawer_->vertices();
    rows.assign(all.begin(), all.end());
    if (wanted_) std::erase_if(rows, [this](NodeId row) { return (*wanted_)[row] != LoaderFeatures::kWanted; });
    ++turn_.index;
  }

 private:
  const Sampler& sampler_;
  std::unique_ptr<BatchSampler> drawer_;
  BatchOrder order_;
  WantedRows wanted_;
  BatchTurn turn_;
};

class ListedBatches : public BatchSequence {
 public:
  ListedBatches(int64_t count, std::function<void(int64_t, std::vector<NodeId>&)> rows)
      : count_(count), rows_(std::move(rows)) {}
  int64_t batches_per_epoch() const override { return count_; }
  void begin(BatchTurn first) override { next_ = first.index; }
  void next(std::vector<NodeId>& rows) override {
    if (next_ == count_) next_ = 0;
    rows_(next_++, rows);
  }

 private:
  int64_t count_;
  int64_t next_ = 0;
  std::function<void(int64_t, std::vector<NodeId>&)> rows_;
};

}  // namespace

std::unique_ptr<BatchSequence> sampled_batches(const Sampler& sampler, std::unique_ptr<BatchSampler> drawer,
                                               BatchOrder order, WantedRows wanted) {
  return std::make_unique<SampledBatches>(sampler, std::move(drawer), std::move(order), std::move(wanted));
}

std::unique_ptr<BatchSequence> listed_batches(int64_t count, std::function<void(int64_t, std::vector<NodeId>&)> rows) {
  return std::make_unique<ListedBatches>(count, std::move(rows));
}

}  // namespace nacre
