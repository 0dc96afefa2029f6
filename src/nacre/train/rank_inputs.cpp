#include "nacre/train/rank_inputs.h"

#include <algorithm>
#include <set>

#include "nacre/base/error.h"
#include "nacre/dfg/distribute.h"
#include "nacre/dfg/known_values.h"
#include "nacre/train/batch_inputs.h"

namespace nacre {
namespace {

// Returns the name of an input without the mark of its halo form and without its layer: all layers
// of a whole graph have the same degrees and weights. The marks of the whole graph and of reversed
// edges stay, because these have values of their own.
std::string plain_name(std::string name) {
  const std::string mark = halo_leaf("");
  if (name.starts_with(mark)) name = name.substr(mark.size());
  return name.starts_with("x.") ? name : name.substr(0, name.find('.'));
}

// Returns the name of an input without the mark `mark` at its beginning; an empty text if the name
// does not begin with the mark.
std::string without_mark(const std::string& name, const std::string& mark) {
  return name.starts_with(mark) ? name.substr(mark.size()) : "";
}

// Returns the names of the inputs that a plan reads.
std::set<std::string> names_of(const Plan& plan) {
  std::set<std::string> names;
  for (const Node& node : plan.dfg.nodes()) {
    if (node.op == Op::input) names.insert(plain_name(node.name));
  }
  return names;
}

Tensor tensor_of(const Array<float>& values) {
  Tensor copy(DType::f32, {values.size()});
  std::copy(values.begin(), values.end(), copy.data<float>());
  return copy;
}

// Returns the rank's numbers of those `nodes` that the rank owns, in the order of `nodes`.
Array<NodeId> local_numbers(const Array<NodeId>& nodes, const LocalGraph& local) {
  const Array<NodeId> order = rows_by_number(local);
  const auto row_at = [&](int64_t i) { return order.empty() ? static_cast<NodeId>(i) : order[i]; };
  std::vector<NodeId> sorted(static_cast<size_t>(local.num_own()));
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = local.own[row_at(static_cast<int64_t>(i))];
  std::vector<NodeId> numbers;
  for (const NodeId v : nodes) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), v);
    if (at != sorted.end() && *at == v) numbers.push_back(row_at(at - sorted.begin()));
  }
  return numbers;
}

}  // namespace

InputBytes input_bytes(const RunData& run, const LocalGraph& local, const std::vector<const Plan*>& plans) {
  const int64_t own = local.num_own(), all = own + local.num_halo();
  const auto bytes_of = [&](const std::string& name) -> int64_t {
    if (name == "label") return own * 4;
    if (name == "target") return own * run.dataset.targets.row_size();
    if (name == "loss_weight") return own * (run.weighs_pairs() ? run.dataset.num_classes : 1) * 4;
    if (name == "edge_weight") return local.graph.edge_weight().size() * 4;
    for (const FeatureLeaf& leaf : run.leaves) {
      if (leaf.name == name) return all * leaf.values.row_size() * dtype_size(leaf.values.dtype());
    }
    return all * 4;  // any other input is a number for each vertex, such as its degree
  };
  std::set<std::string> names;
  for (const Plan* plan : plans) {
    for (const Node& node : plan->dfg.nodes()) {
      if (node.op == Op::input) names.insert(plain_name(node.name));
    }
  }
  InputBytes bytes;
  for (const std::string& name : names) (name.starts_with("x") ? bytes.features : bytes.other) += bytes_of(name);
  return bytes;
}

RankInputs::RankInputs(const RunData& run, const LocalGraph& local, const LocalGraph* reversed)
    : run_(run), local_(local), reversed_(reversed), vertices_(vertex_numbers(local)) {}

Tensor RankInputs::rows(const Tensor& table, int64_t count) const {
  return gather_rows(table, vertices_.span().first(static_cast<size_t>(count)));
}

// Returns the weights of the rank's own vertices in the loss. A training vertex weighs as much as
// it does on one device, because the mean is over the training vertices of all ranks.
Tensor RankInputs::loss_weights() const {
  double total = 0;
  for (const NodeId v : run_.dataset.splits.train) total += run_.counts(v) ? run_.class_weight(v) : 0;
  Tensor weights = run_.no_loss_weights(local_.num_own());
  for (const NodeId i : local_numbers(run_.dataset.splits.train, local_)) {
    const NodeId v = local_.own[i];
    if (run_.counts(v)) run_.loss_weights(v, total, weights.data<float>() + int64_t{i} * weights.row_size());
  }
  return weights;
}

Tensor RankInputs::value_of_all(const std::string& name) const {
  const Graph& graph = run_.dataset.graph;
  if (name == "edge_weight") return tensor_of(graph.edge_weight());
  if (name == "in_degree" || name == "in_weight" || name == "out_degree" || name == "out_weight") {
    const Array<float> weight = name.ends_with("weight") ? graph.edge_weight() : Array<float>();
    return sum_at(graph, name.starts_with("in") ? End::dst : End::src, weight);
  }
  for (const FeatureLeaf& leaf : run_.leaves) {
    if (leaf.name == name) return leaf.values;
  }
  NACRE_CHECK(false, "a rank has no value of the input '" + name + "'");
  return {};
}

Tensor RankInputs::value(const std::string& name) const {
  const Dataset& data = run_.dataset;
  if (const std::string whole = without_mark(name, whole_leaf("")); !whole.empty()) return value_of_all(whole);
  if (const std::string turned = without_mark(name, reversed_leaf("")); !turned.empty()) {
    if (turned == "edge_weight") return tensor_of(reversed_->graph.edge_weight());
    return gather_rows(value_of_all(turned), vertex_numbers(*reversed_).span());
  }
  if (name == "label") return rows(run_.all_labels(), local_.num_own());
  if (name == "target") return rows(data.targets, local_.num_own());
  if (name == "loss_weight") return loss_weights();
  if (name == "edge_weight") return tensor_of(local_.graph.edge_weight());
  return rows(value_of_all(name), vertices_.size());
}

void RankInputs::make(const Plan& plan) {
  for (const std::string& name : names_of(plan)) {
    if (!values_.contains(name)) values_.emplace(name, value(name));
  }
}

int64_t RankInputs::bytes_of(const Plan& plan) {
  make(plan);
  int64_t bytes = 0;
  for (const std::string& name : names_of(plan)) bytes += values_.at(name).bytes();
  return bytes;
}

void RankInputs::keep_only(const std::vector<const Plan*>& plans) {
  std::set<std::string> kept;
  for (const Plan* plan : plans) kept.merge(names_of(*plan));
  std::erase_if(values_, [&](const auto& value) { return !kept.contains(value.first); });
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
  own.splits = {local_numbers(all.splits.train, local_), local_numbers(all.splits.val, local_),
                local_numbers(all.splits.test, local_)};
  return own;
}

}  // namespace nacre
