#include "nacre/schedule/epg/graph.h"

#include <array>
#include <cmath>

#include "nacre/base/error.h"

namespace nacre {
namespace {

constexpr double kFloat = 4;
// A block that travels has 4 bytes for the source of each edge and 8 for the offset of each row.
constexpr double kEdgeBytes = 4, kRowBytes = 8;

// A Writer builds one way to write a batch.
class Writer {
 public:
  Writer(const BatchShape& shape, const EpgPrices& prices, int devices, std::vector<bool> combine_first)
      : shape_(shape), prices_(prices), devices_(devices), first_(std::move(combine_first)) {}

  BatchGraph write() {
    for (const bool combine : first_) graph_.name += combine ? 'c' : 'a';
    sample_ = add(EpgKind::sample, 0, {});
    graph_.operations.back().host_workers = 1;
    int value = add(EpgKind::gather, 0, {{sample_, shape_.vertices() * kFloat}});
    const auto layers = static_cast<int>(shape_.layers.size());
    for (int l = 0; l < layers; ++l) value = forward(l, value);
    int gradient = value;
    double bytes = 0;  // 0, because the last combination also computes the loss
    for (int l = layers - 1; l >= 0; --l) {
      gradient = backward(l, gradient, bytes);
      bytes = shape_.layers[l].sources * shape_.layers[l].width_in * kFloat;
    }
    std::vector<EpgInput> gradients;
    gradients.reserve(shape_.layers.size());
    for (int l = 0; l < layers; ++l) gradients.push_back({combined_grad_[l], shape_.layers[l].weights * kFloat});
    graph_.update = add(EpgKind::update, 0, gradients);
    return std::move(graph_);
  }

 private:
  int add(EpgKind kind, int layer, std::vector<EpgInput> inputs, int with = -1) {
    EpgOperation operation;
    operation.kind = kind;
    operation.layer = layer;
    operation.with = with;
    for (EpgInput& input : inputs) input.seconds = input.bytes > 0 ? prices_.transfer(input.bytes) : 0;
    operation.inputs = std::move(inputs);
    const bool combine = static_cast<size_t>(layer) < first_.size() && first_[layer];
    for (int d = 0; d < devices_; ++d) operation.seconds.push_back(prices_.seconds(d, kind, shape_, layer, combine));
    graph_.operations.push_back(std::move(operation));
    return static_cast<int>(graph_.operations.size()) - 1;
  }

  int combine(int l, std::vector<EpgInput> inputs) {
    const int at = add(EpgKind::combine, l, std::move(inputs));
    EpgOperation& operation = graph_.operations.back();
    operation.weight_bytes = shape_.layers[l].weights * kFloat;
    operation.weight_seconds = operation.weight_bytes > 0 ? prices_.transfer(operation.weight_bytes) : 0;
    combined_.push_back(at);
    return at;
  }

  int aggregate(int l, const EpgInput& rows) {
    const BatchShape::Layer& layer = shape_.layers[l];
    const double block = layer.edges * kEdgeBytes + layer.destinations * kRowBytes;
    aggregated_.push_back(
        add(EpgKind::aggregate, l, {rows, {.operation = sample_, .bytes = block, .seconds = 0, .part = l + 1}}));
    return aggregated_.back();
  }

  int forward(int l, int value) {
    const BatchShape::Layer& layer = shape_.layers[l];
    const double in = layer.width_in * kFloat, out = layer.width_out * kFloat;
    if (first_[l]) return aggregate(l, {combine(l, {{value, layer.sources * in}}), layer.sources * out});
    std::vector<EpgInput> inputs = {{aggregate(l, {value, layer.sources * in}), layer.destinations * in}};
    if (layer.reads_self) inputs.push_back({value, layer.destinations * in});
    return combine(l, std::move(inputs));
  }

  // Adds the operations of a layer's backward pass. Returns the one that makes the gradient of the
  // layer's input. The gradient of features is not computed.
  int backward(int l, int gradient, double bytes) {
    const BatchShape::Layer& layer = shape_.layers[l];
    const int combined = combined_[l], aggregated = aggregated_[l];
    combined_grad_.resize(shape_.layers.size(), -1);
    int& combined_grad = combined_grad_[l];
    if (first_[l]) {
      const int sums = add(EpgKind::aggregate_grad, l, {{gradient, bytes}}, aggregated);
      combined_grad = add(EpgKind::combine_grad, l, {{sums, layer.sources * layer.width_out * kFloat}}, combined);
      return combined_grad;
    }
    combined_grad = add(EpgKind::combine_grad, l, {{gradient, bytes}}, combined);
    if (l == 0) return combined_grad;
    return add(EpgKind::aggregate_grad, l, {{combined_grad, layer.destinations * layer.width_in * kFloat}}, aggregated);
  }

  const BatchShape& shape_;
  const EpgPrices& prices_;
  int devices_;
  std::vector<bool> first_;  // whether the combination of each layer comes first
  BatchGraph graph_;
  int sample_ = 0;
  std::vector<int> aggregated_, combined_, combined_grad_;  // the operations of each layer
};

}  // namespace

std::string_view epg_kind_name(EpgKind kind) {
  constexpr std::array<std::string_view, 7> names = {"sample",       "gather",         "aggregate", "combine",
                                                     "combine_grad", "aggregate_grad", "update"};
  return names[static_cast<size_t>(kind)];
}

std::vector<BatchGraph> batch_graphs(const BatchShape& shape, const EpgPrices& prices, int devices) {
  // At most this many layers may change their order; further layers keep the order of the model.
  constexpr size_t kMostFree = 6;
  std::vector<size_t> free;
  for (size_t l = 0; l < shape.layers.size(); ++l) {
    if (shape.layers[l].may_combine_first && free.size() < kMostFree) free.push_back(l);
  }
  std::vector<BatchGraph> graphs;
  for (size_t bits = 0; bits < size_t{1} << free.size(); ++bits) {
    std::vector<bool> combine_first(shape.layers.size(), false);
    for (size_t i = 0; i < free.size(); ++i) combine_first[free[i]] = (bits >> i & 1) != 0;
    graphs.push_back(Writer(shape, prices, devices, combine_first).write());
  }
  return graphs;
}

void ExecutionPlanGraph::validate() const {
  NACRE_CHECK(!devices.empty() && host_workers >= 1 && staleness >= 0, "an EPG needs a host");
  for (const std::vector<BatchGraph>& ways : batches) {
    NACRE_CHECK(!ways.empty(), "a batch of an EPG cannot be computed in any way");
    for (const BatchGraph& graph : ways) {
      const auto count = static_cast<int>(graph.operations.size());
      NACRE_CHECK(graph.update >= 0 && graph.update < count, "a batch of an EPG has no update");
      for (int i = 0; i < count; ++i) {
        const EpgOperation& op = graph.operations[i];
        NACRE_CHECK(op.seconds.size() == devices.size(), "an operation of an EPG lacks the times of devices");
        NACRE_CHECK(op.with < i && op.host_workers <= host_workers, "an operation of an EPG is misplaced");
        bool somewhere = false;
        for (const double seconds : op.seconds) {
          NACRE_CHECK(std::isfinite(seconds), "an operation of an EPG has no time");
          somewhere = somewhere || seconds >= 0;
        }
        NACRE_CHECK(somewhere, "no device can run an operation of an EPG");
        for (const EpgInput& input : op.inputs)
          NACRE_CHECK(input.operation >= 0 && input.operation < i && input.seconds >= 0, "an EPG is not in order");
      }
    }
  }
}

}  // namespace nacre
