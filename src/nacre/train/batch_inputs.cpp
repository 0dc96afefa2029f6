#include "nacre/train/batch_inputs.h"

#include <algorithm>
#include <cstring>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/tensor/narrow_floats.h"

namespace nacre {
namespace {

constexpr int64_t kGatherBytes = 1 << 16;  // bytes of one chunk of a parallel gather

std::span<const NodeId> first(const Array<NodeId>& ids, int64_t count) {
  return ids.span().first(static_cast<size_t>(count));
}

Tensor from_array(const Array<float>& values) {
  return {DType::f32, {values.size()}, nullptr, const_cast<float*>(values.data())};
}

Tensor ones(int64_t count) {
  Tensor t(DType::f32, {count});
  std::fill_n(t.data<float>(), count, 1.0F);
  return t;
}

}  // namespace

Tensor sum_at(const Graph& graph, End end, const Array<float>& weight) {
  Tensor sum = Tensor::zeros(DType::f32, {end == End::src ? graph.num_src() : graph.num_dst()});
  auto* out = sum.data<float>();
  for (int64_t d = 0; d < graph.num_dst(); ++d) {
    for (int64_t e = graph.row_ptr()[d]; e < graph.row_ptr()[d + 1]; ++e) {
      out[end == End::src ? graph.col_idx()[e] : static_cast<NodeId>(d)] += weight.empty() ? 1.0F : weight[e];
    }
  }
  return sum;
}

void gather_rows(const Tensor& table, std::span<const NodeId> ids, void* out) {
  const int64_t rows = table.shape().empty() ? 0 : table.shape()[0];
  const int64_t row_bytes = rows == 0 ? 0 : table.bytes() / rows;
  const auto* from = static_cast<const char*>(table.raw());
  auto* to = static_cast<char*>(out);
  const int64_t chunk = std::max<int64_t>(1, kGatherBytes / std::max<int64_t>(1, row_bytes));
  const int64_t width = table.row_size();
  parallel_for(static_cast<int64_t>(ids.size()), chunk, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      if (is_narrow_float(table.dtype())) {
        widen(table.dtype(), static_cast<const uint16_t*>(table.raw()) + static_cast<int64_t>(ids[i]) * width,
              static_cast<float*>(out) + i * width, width);
        continue;
      }
      std::memcpy(to + i * row_bytes, from + static_cast<int64_t>(ids[i]) * row_bytes, static_cast<size_t>(row_bytes));
    }
  });
}

Tensor gather_rows(const Tensor& table, std::span<const NodeId> ids) {
  Shape shape = table.shape();
  shape[0] = static_cast<int64_t>(ids.size());
  Tensor out(is_narrow_float(table.dtype()) ? DType::f32 : table.dtype(), shape);
  gather_rows(table, ids, out.raw());
  return out;
}

void spread_rows(const float* rows, std::span<const NodeId> ids, const Tensor& table) {
  const int64_t width = table.row_size();
  auto* to = const_cast<float*>(table.data<float>());
  parallel_for(table.size(), kGatherBytes / 4, [&](int64_t b, int64_t e) { std::fill(to + b, to + e, 0.0F); });
  const int64_t chunk = std::max<int64_t>(1, kGatherBytes / std::max<int64_t>(4, width * 4));
  parallel_for(static_cast<int64_t>(ids.size()), chunk, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) std::copy_n(rows + i * width, width, to + static_cast<int64_t>(ids[i]) * width);
  });
}

BatchInputs::BatchInputs(const RunData& run) : run_(run) {
  const std::vector<VertexKind>& kinds = run.config.model.kinds;
  if (!kinds.empty() && !learns_all_rows(kinds)) kinds_ = std::make_unique<KindTables>(run);
  const Graph& graph = run.dataset.graph;
  in_degree_ = sum_at(graph, End::dst, {});
  out_degree_ = sum_at(graph, End::src, {});
  counts_.assign(graph.num_nodes(), 0);
  for (const NodeId v : run.dataset.splits.train) counts_[v] = run.dataset.num_classes > 0 && run.counts(v) ? 1 : 0;
  if (!graph.weighted()) return;
  in_weight_ = sum_at(graph, End::dst, graph.edge_weight());
  out_weight_ = sum_at(graph, End::src, graph.edge_weight());
}

int64_t BatchInputs::bytes() const {
  return static_cast<int64_t>(counts_.size()) + in_degree_.bytes() + out_degree_.bytes() +
         (in_weight_.defined() ? 2 * in_weight_.bytes() : 0);
}

Blocks BatchInputs::blocks(const Sample& sample) const {
  return Blocks(sample.blocks, kinds_ ? kinds_->split(sample.vertices.span()).places : nullptr);
}

int64_t BatchInputs::row_bytes(const Sample& sample) const {
  return kinds_ ? kinds_->bytes(sample.vertices.span()) : sample.vertices.size() * run_.config.model.in_dim * 4;
}

int64_t BatchInputs::all_row_bytes() const {
  return kinds_ ? kinds_->bytes() : run_.dataset.num_nodes() * run_.config.model.in_dim * 4;
}

double BatchInputs::weight_of(std::span<const NodeId> vertices) const {
  double sum = 0;
  for (const NodeId v : vertices) sum += counts_[v] != 0 ? run_.class_weight(v) : 0;
  return sum;
}

// Returns the weight of each seed in the loss. Seeds that are not labelled training vertices get 0;
// a subgraph has such seeds. With these weights, the loss is the mean over the labelled training
// vertices of the batch or, if several batches make up a step, the part of this batch in the mean
// of the step.
Tensor BatchInputs::loss_weights(const Sample& sample, const LossTotal& total) const {
  const double weight = total.weight
                            ? *total.weight
                            : weight_of(first(sample.vertices, sample.num_seeds)) * static_cast<double>(total.batches);
  Tensor t = run_.no_loss_weights(sample.num_seeds);
  const int64_t width = t.row_size();
  for (int64_t i = 0; i < sample.num_seeds; ++i) {
    if (counts_[sample.vertices[i]] == 0) continue;
    float* row = t.data<float>() + i * width;
    run_.loss_weights(sample.vertices[i], weight, row);
    for (int64_t c = 0; c < width && !sample.loss_scale.empty(); ++c) row[c] *= sample.loss_scale[i];
  }
  return t;
}

Tensor BatchInputs::value(const Node& leaf, const Sample& sample, const LossTotal& total) const {
  const std::string& name = leaf.name;
  const auto seeds = first(sample.vertices, sample.num_seeds);
  if (name == "label") {
    Tensor t(DType::i32, {sample.num_seeds});
    for (int64_t i = 0; i < sample.num_seeds; ++i) t.data<int32_t>()[i] = run_.dataset.labels[seeds[i]];
    return t;
  }
  if (name == "target") return gather_rows(run_.dataset.targets, seeds);
  if (name == "loss_weight") return loss_weights(sample, total);
  const auto layer = static_cast<size_t>(leaf.type.space.layer);
  if (leaf.type.space.kind == SpaceKind::vertex) {
    const bool last = layer >= sample.blocks.size();
    const auto ids = first(sample.vertices, last ? sample.blocks.back().num_dst() : sample.blocks[layer].num_src());
    if (name.starts_with("in_degree.")) return gather_rows(in_degree_, ids);
    if (name.starts_with("out_degree.")) return gather_rows(out_degree_, ids);
    if (name.starts_with("in_weight.")) return gather_rows(in_weight_, ids);
    if (name.starts_with("out_weight.")) return gather_rows(out_weight_, ids);
  } else {
    const Graph& block = sample.blocks[layer];
    if (name.starts_with("edge_weight.")) return from_array(block.edge_weight());
    if (name.starts_with("edge_scale.")) {
      const bool alone = sample.scale.empty() || (sample.scale[layer].empty() && block.num_edges() > 0);
      return alone ? ones(block.num_edges()) : from_array(sample.scale[layer]);
    }
  }
  NACRE_CHECK(false, "leaf '" + name + "' has no value on sampled blocks");
  return {};
}

namespace {

// Returns whether a leaf of this name holds features: those of all vertices ("x") or those of one
// kind ("x.<kind>").
bool is_feature_leaf(const std::string& name) { return name == "x" || name.starts_with("x."); }

}  // namespace

std::vector<LeafValue> BatchInputs::gather(const Dfg& dfg, const Sample& sample, const LossTotal& total) const {
  std::vector<LeafValue> list;
  for (const Node& node : dfg.nodes()) {
    if (node.op != Op::input || is_feature_leaf(node.name) || node.name.starts_with("value.")) continue;
    list.push_back({node.name, value(node, sample, total)});
  }
  return list;
}

}  // namespace nacre
