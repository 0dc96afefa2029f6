#include "nacre/train/rank_inputs.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/dfg/distribute.h"
#include "nacre/train/batch_inputs.h"

namespace nacre {
namespace {

// Returns the name of an input without the mark of its halo form and without its layer: all layers
// of a whole graph have the same degrees and weights.
std::string plain_name(std::string name) {
  const std::string mark = halo_leaf("");
  if (name.starts_with(mark)) name = name.substr(mark.size());
  return name.starts_with("x.") ? name : name.substr(0, name.find('.'));
}

Array<NodeId> own_then_halo(const LocalGraph& local) {
  std::vector<NodeId> numbers(local.own.begin(), local.own.end());
  numbers.insert(numbers.end(), local.halo.begin(), local.halo.end());
  return numbers;
}

// Returns the rank's numbers of those `nodes` that the rank owns, in the order of `nodes`. `own` is
// ascending.
Array<NodeId> local_numbers(const Array<NodeId>& nodes, const Array<NodeId>& own) {
  std::vector<NodeId> numbers;
  for (const NodeId v : nodes) {
    const auto at = std::lower_bound(own.begin(), own.end(), v);
    if (at != own.end() && *at == v) numbers.push_back(static_cast<NodeId>(at - own.begin()));
  }
  return numbers;
}

}  // namespace

RankInputs::RankInputs(const RunData& run, const LocalGraph& local)
    : run_(run), local_(local), vertices_(own_then_halo(local)) {}

Tensor RankInputs::rows(const Tensor& table, int64_t count) const {
  return gather_rows(table, vertices_.span().first(static_cast<size_t>(count)));
}

Tensor RankInputs::sum_at(End end, bool weighted) const {
  const Graph& graph = run_.dataset.graph;
  Tensor sums = Tensor::zeros(DType::f32, {graph.num_nodes()});
  auto* sum = sums.data<float>();
  for (int64_t d = 0; d < graph.num_nodes(); ++d) {
    for (int64_t e = graph.row_ptr()[d]; e < graph.row_ptr()[d + 1]; ++e)
      sum[end == End::src ? graph.col_idx()[e] : static_cast<NodeId>(d)] += weighted ? graph.edge_weight()[e] : 1.0F;
  }
  return rows(sums, vertices_.size());
}

// A training vertex weighs as much as it does on one device: the mean is over the training vertices
// of all ranks.
Tensor RankInputs::loss_weights() const {
  double total = 0;
  for (const NodeId v : run_.dataset.splits.train) total += run_.counts(v) ? run_.class_weight(v) : 0;
  Tensor weights = run_.no_loss_weights(local_.num_own());
  for (const NodeId i : local_numbers(run_.dataset.splits.train, local_.own)) {
    const NodeId v = local_.own[i];
    if (run_.counts(v)) run_.loss_weights(v, total, weights.data<float>() + int64_t{i} * weights.row_size());
  }
  return weights;
}

Tensor RankInputs::value(const std::string& name) const {
  const Dataset& data = run_.dataset;
  if (name == "label") return rows(run_.all_labels(), local_.num_own());
  if (name == "target") return rows(data.targets, local_.num_own());
  if (name == "loss_weight") return loss_weights();
  if (name == "edge_weight") {
    const Array<float>& weight = local_.graph.edge_weight();
    Tensor copy(DType::f32, {weight.size()});
    std::copy(weight.begin(), weight.end(), copy.data<float>());
    return copy;
  }
  if (name == "in_degree" || name == "in_weight") return sum_at(End::dst, name == "in_weight");
  if (name == "out_degree" || name == "out_weight") return sum_at(End::src, name == "out_weight");
  for (const FeatureLeaf& leaf : run_.leaves) {
    if (leaf.name == name) return rows(leaf.values, vertices_.size());
  }
  NACRE_CHECK(false, "a rank has no value of the input '" + name + "'");
  return {};
}

void RankInputs::make(const Plan& plan) {
  for (const Node& node : plan.dfg.nodes()) {
    if (node.op != Op::input) continue;
    const std::string name = plain_name(node.name);
    if (!values_.contains(name)) values_.emplace(name, value(name));
  }
}

void RankInputs::bind(Executor& executor, Learner& learner) const {
  const Dfg& dfg = executor.plan().dfg;
  const auto step_reads = [&](const std::string& name) {
    return std::any_of(dfg.nodes().begin(), dfg.nodes().end(), [&](const Node& node) {
      return node.op == Op::input && plain_name(node.name) == name && executor.step_reads(node.name);
    });
  };
  for (const Node& node : dfg.nodes()) {
    if (node.op != Op::input) continue;
    const std::string name = plain_name(node.name);
    const Tensor& values = values_.at(name);
    if (!executor.backend().on_host() && name.starts_with("x") && !step_reads(name)) {
      executor.bind_host(node.name, values.raw());
    } else {
      executor.bind(node.name, learner.leaf(name, values));
    }
  }
}

int64_t RankInputs::feature_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, values] : values_) bytes += name.starts_with("x") ? values.bytes() : 0;
  return bytes;
}

int64_t RankInputs::other_bytes() const {
  int64_t bytes = -feature_bytes();
  for (const auto& [name, values] : values_) bytes += values.bytes();
  return bytes;
}

Dataset RankInputs::own_data() const {
  const Dataset& all = run_.dataset;
  Dataset own;
  own.name = all.name;
  own.num_classes = all.num_classes;
  own.class_names = all.class_names;
  if (all.multilabel()) own.targets = rows(all.targets, local_.num_own());
  std::vector<int32_t> labels;
  for (const NodeId v : local_.own) {
    if (!all.labels.empty()) labels.push_back(all.labels[v]);
  }
  own.labels = std::move(labels);
  own.splits = {local_numbers(all.splits.train, local_.own), local_numbers(all.splits.val, local_.own),
                local_numbers(all.splits.test, local_.own)};
  return own;
}

}  // namespace nacre
