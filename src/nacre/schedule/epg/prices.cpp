#include "nacre/schedule/epg/prices.h"

#include <algorithm>
#include <limits>

namespace nacre {
namespace {

MfgSize size_of(const BatchShape::Layer& layer) { return {layer.sources, layer.edges}; }

MfgSize whole_size(const BatchShape& batch) {
  MfgSize size{batch.vertices(), 0};
  for (const BatchShape::Layer& layer : batch.layers) size.edges += layer.edges;
  return size;
}

// Returns the seconds of sampling on the host, where sampling a hop and building its block were
// timed as operations of their own.
double host_sampling(const OperationCosts& costs, const std::string& host, const BatchShape& batch) {
  double sum = 0;
  for (size_t l = 0; l < batch.layers.size(); ++l) {
    for (const char* operation : {"sample", "reindex"})
      sum += costs.predict({host, operation, static_cast<int>(l), ""}, size_of(batch.layers[l]));
  }
  return sum;
}

bool computes(const OperationCosts& costs, const std::string& device) {
  return std::any_of(costs.all().begin(), costs.all().end(), [&](const auto& entry) {
    return entry.first.device == device && entry.first.operation == "combine";
  });
}

}  // namespace

FittedPrices::FittedPrices(const OperationCosts& costs, std::vector<std::string> devices, bool in_plan)
    : costs_(costs), devices_(std::move(devices)), in_plan_(in_plan) {}

double FittedPrices::sampling(int device, const BatchShape& batch) const {
  const std::string& name = devices_[device];
  if (device == kHost) return host_sampling(costs_, name, batch);
  const OperationKey key{name, "sample", 0, ""};
  return costs_.find(key) == nullptr ? -1 : costs_.predict(key, whole_size(batch));
}

double FittedPrices::kernels(const std::string& device, EpgKind kind, const BatchShape& batch, int layer,
                             bool combine_first) const {
  if (!computes(costs_, device)) return -1;
  OperationKey key{device, std::string(epg_kind_name(kind)), layer, combine_first ? "combine" : "aggregate"};
  // If no layer of a model has a choice of order, only the plan of the run was timed.
  const bool ordered = std::any_of(costs_.all().begin(), costs_.all().end(), [&](const auto& entry) {
    return entry.first.device == device && entry.first.order == key.order;
  });
  if (!ordered || in_plan_) key.order = "plan";
  return costs_.predict(key, size_of(batch.layers[layer]));
}

double FittedPrices::seconds(int device, EpgKind kind, const BatchShape& batch, int layer, bool combine_first) const {
  const std::string& name = devices_[device];
  switch (kind) {
    case EpgKind::sample:
      return sampling(device, batch);
    case EpgKind::gather:
      if (device != kHost) return -1;
      return costs_.predict({name, "gather", 0, ""}, {batch.vertices(), 0}) +
             costs_.predict({name, "prepare", 0, ""}, size_of(batch.layers.front())) +
             costs_.predict({name, "bind", 0, ""}, size_of(batch.layers.front()));
    case EpgKind::update: {
      const OperationKey key{name, "update", 0, ""};
      return costs_.find(key) == nullptr ? -1 : costs_.predict(key, {});
    }
    default:
      return kernels(name, kind, batch, layer, combine_first);
  }
}

double FittedPrices::transfer(double bytes) const {
  return devices_.size() < 2 ? 0 : costs_.transfer(devices_[1], bytes, std::numeric_limits<double>::infinity());
}

BatchSeconds batch_seconds(const OperationCosts& costs, const std::string& device, const BatchShape& batch,
                           double batches) {
  const std::string host = kHostName;
  BatchSeconds seconds;
  const OperationKey drawn{device, "sample", 0, ""};
  const bool on_device = device != host && costs.find(drawn) != nullptr;
  seconds.sample = on_device ? costs.predict(drawn, whole_size(batch)) : host_sampling(costs, host, batch);
  seconds.gather = costs.predict({host, "gather", 0, ""}, {batch.vertices(), 0});
  seconds.prepare = costs.predict({host, "prepare", 0, ""}, size_of(batch.layers.front()));
  seconds.bind = costs.predict({host, "bind", 0, ""}, size_of(batch.layers.front()));
  if (device != host)
    seconds.transfer = costs.transfer(device, batch.vertices() * batch.layers.front().width_in * 4, batches);
  for (size_t l = 0; l < batch.layers.size(); ++l) {
    for (const char* operation : {"aggregate", "combine", "combine_grad", "aggregate_grad"})
      seconds.compute += costs.predict({device, operation, static_cast<int>(l), "plan"}, size_of(batch.layers[l]));
  }
  seconds.update = costs.predict({device, "update", 0, ""}, {});
  return seconds;
}

double epoch_seconds(const BatchSeconds& batch, double batches, int threads, bool on_host, bool ahead) {
  const double computed = batch.compute + batch.update;
  const double single = batch.sample + batch.prepare + batch.bind;
  if (!ahead) return batches * (computed + single + batch.gather + batch.transfer);
  const double prepared = batch.gather + single / std::max(1, threads);
  if (on_host) return batches * (computed + prepared);
  // Nothing runs beside the stages that prepare the first batch, so their time is added.
  return batches * std::max({computed, prepared, batch.transfer}) + single + batch.gather + batch.transfer;
}

}  // namespace nacre
