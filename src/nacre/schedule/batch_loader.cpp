#include "nacre/schedule/batch_loader.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {

namespace {

class HostSink : public FeatureSink {
 public:
  void* buffer(int slot, int64_t bytes) override {
    if (static_cast<size_t>(slot) >= slots_.size()) slots_.resize(static_cast<size_t>(slot) + 1);
    Slot& s = slots_[static_cast<size_t>(slot)];
    if (bytes > s.bytes) {
      const auto grown = allocate_bytes(bytes + bytes / 4);
      if (s.bytes > 0) std::memcpy(grown.get(), s.memory.get(), static_cast<size_t>(s.bytes));
      s = {grown, bytes + bytes / 4};
    }
    return s.memory.get();
  }
  void send(int, int64_t, int64_t) override {}
  void* finish(int slot, int64_t) override { return slots_[static_cast<size_t>(slot)].memory.get(); }

 private:
  struct Slot {
    std::shared_ptr<void> memory;
    int64_t bytes = 0;
  };
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<FeatureSink> make_host_sink() { return std::make_unique<HostSink>(); }

struct BatchLoader::State {
  const Sampler& sampler;
  BatchOrder order;
  Tensor features;
  FeatureSink& sink;
  LoaderOptions options;
  Prepare prepare;
  uint64_t epoch = 0;
  int64_t next = 0;
};

BatchLoader::BatchLoader(const Sampler& sampler, BatchOrder order, Tensor features, FeatureSink& sink,
                         const LoaderOptions& options, Prepare prepare)
    : state_(new State{sampler, std::move(order), std::move(features), sink, options, std::move(prepare)}) {}

BatchLoader::~BatchLoader() = default;

int64_t BatchLoader::num_batches() const { return state_->order.num_batches(); }

void BatchLoader::begin_epoch(uint64_t epoch, int64_t first) {
  state_->epoch = epoch;
  state_->next = first;
  state_->order.begin_epoch(epoch);
}

Batch BatchLoader::next() {
  State& s = *state_;
  NACRE_CHECK(s.next < s.order.num_batches(), "the epoch has no more batches");
  Batch batch;
  batch.index = s.next++;
  batch.sample = s.sampler.sample(s.sampler.draws_seeds() ? std::span<const NodeId>() : s.order.batch(batch.index),
                                  {s.epoch, static_cast<uint64_t>(batch.index)});
  const auto ids = batch.sample.vertices.span();
  const int64_t row = s.features.row_size() * dtype_size(s.features.dtype());
  const auto bytes = static_cast<int64_t>(ids.size()) * row;
  auto* to = static_cast<char*>(s.sink.buffer(0, bytes));
  const auto* from = static_cast<const char*>(s.features.raw());
  parallel_for(static_cast<int64_t>(ids.size()), std::max<int64_t>(1, 65536 / std::max<int64_t>(1, row)),
               [&](int64_t b, int64_t e) {
                 for (int64_t i = b; i < e; ++i) {
                   std::memcpy(to + i * row, from + static_cast<int64_t>(ids[static_cast<size_t>(i)]) * row,
                               static_cast<size_t>(row));
                 }
               });
  s.sink.send(0, 0, bytes);
  batch.features = s.sink.finish(0, bytes);
  if (s.prepare) batch.prepared = s.prepare(batch.sample);
  return batch;
}

LoaderTimes BatchLoader::times() const { return {}; }

}  // namespace nacre
