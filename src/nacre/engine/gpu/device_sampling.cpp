#include "nacre/engine/gpu/device_sampling.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {
namespace {

// DrawnBatch: hands out, subtask by subtask, a sample that DeviceSampling draws as a whole. The
// first subtask takes the sample, and the others only look at it.
class DrawnBatch : public BatchSampler {
 public:
  explicit DrawnBatch(std::shared_ptr<DeviceSampling> from) : from_(std::move(from)) {}
  int hops() const override { return from_->hops(); }
  void begin(std::span<const NodeId> seeds, const SampleKey& key) override {
    seeds_.assign(seeds.begin(), seeds.end());
    key_ = key;
  }
  void pick(int hop) override {
    if (hop == 0) sample_ = from_->take(seeds_, key_);
  }
  void insert(int hop) override {
    known_ = sample_.blocks[sample_.blocks.size() - 1 - static_cast<size_t>(hop)].num_src();
  }
  std::span<const NodeId> vertices() const override {
    return sample_.vertices.span().first(static_cast<size_t>(known_));
  }
  void reindex(int) override {}
  Sample finish() override { return std::move(sample_); }

 private:
  std::shared_ptr<DeviceSampling> from_;
  std::vector<NodeId> seeds_;
  SampleKey key_;
  Sample sample_;
  int64_t known_ = 0;
};

}  // namespace

DeviceSampling::DeviceSampling(std::shared_ptr<GpuCompiler> compiler, const Sampler& sampler, const BatchOrder& order,
                               const Options& options)
    : hops_(sampler.layers()),
      options_(options),
      sampler_(std::move(compiler), sampler, GpuSampler::GraphMemory::device),
      orders_{order, order} {
  reorder(order);
}

void DeviceSampling::reorder(const BatchOrder& order) {
  const std::lock_guard lock(mutex_);
  orders_ = {order, order};
  epochs_ = {0, 1};
  for (size_t i = 0; i < 2; ++i) orders_[i].begin_epoch(epochs_[i]);
  drawn_.clear();
}

std::unique_ptr<BatchSampler> DeviceSampling::make_batch_sampler() {
  return std::make_unique<DrawnBatch>(shared_from_this());
}

Sample DeviceSampling::take(std::span<const NodeId> seeds, const SampleKey& key) {
  DeviceSample sample;
  {
    const std::lock_guard lock(mutex_);
    know(key.epoch);
    const Turn turn{key.epoch, key.batch};
    if (!drawn_.contains(turn)) draw(seeds, key);
    sample = std::move(drawn_.extract(turn).mapped());
  }
  Sample taken = sampler_.to_host(sample, options_.parts);
  NACRE_CHECK(std::ranges::equal(taken.vertices.span().first(seeds.size()), seeds),
              "the device has drawn a batch of other seeds");
  return taken;
}

// If `epoch` is new, sets its order and drops all samples except those of the epoch before it.
void DeviceSampling::know(uint64_t epoch) {
  uint64_t& known = epochs_[epoch % 2];
  if (known == epoch) return;
  known = epoch;
  orders_[epoch % 2].begin_epoch(epoch);
  std::erase_if(drawn_, [&](const auto& entry) { return entry.first.first + 1 != epoch; });
}

void DeviceSampling::draw(std::span<const NodeId> seeds, const SampleKey& key) {
  std::vector<GpuSampler::Batch> batches = {{seeds, key}};
  const BatchOrder& order = orders_[key.epoch % 2];
  const int64_t first = order.before(static_cast<int64_t>(key.batch));
  // If the seeds are not those that the order gives this batch, it is not known which batches
  // follow, so only this batch is drawn.
  const bool known = first < order.num_batches() && std::ranges::equal(order.batch(first), seeds);
  const int64_t last = known ? std::min(first + options_.ahead, order.num_batches()) : first + 1;
  for (int64_t i = first + 1; i < last; ++i) {
    if (options_.skips && options_.skips(order.number(i))) continue;
    const auto number = static_cast<uint64_t>(order.number(i));
    if (!drawn_.contains({key.epoch, number})) batches.push_back({order.batch(i), {key.epoch, number}});
  }
  // If the host draws beside the device, it may have drawn batches that the device drew as well.
  // Nobody will take their samples from here, so samples of batches long past are dropped.
  std::erase_if(drawn_, [&](const auto& entry) {
    const auto& [epoch, batch] = entry.first;
    return epoch == key.epoch && order.before(static_cast<int64_t>(batch)) + 2 * options_.ahead < first;
  });
  std::vector<DeviceSample> samples = sampler_.sample(batches);
  for (size_t i = 0; i < samples.size(); ++i)
    drawn_[{batches[i].key.epoch, batches[i].key.batch}] = std::move(samples[i]);
}

}  // namespace nacre
