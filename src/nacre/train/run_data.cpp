#include "nacre/train/run_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/base/philox.h"
#include "nacre/base/trace.h"
#include "nacre/base/warnings.h"
#include "nacre/data/made_features.h"
#include "nacre/data/native_writer.h"
#include "nacre/data/reordered.h"
#include "nacre/data/users_items.h"
#include "nacre/dfg/dfg.h"
#include "nacre/model/model.h"
#include "nacre/model/model_file.h"
#include "nacre/train/class_weights.h"
#include "nacre/train/disk_tier.h"
#include "nacre/train/feature_options.h"
#include "nacre/train/metrics.h"
#include "nacre/train/room.h"
#include "nacre/train/row_sums.h"

namespace nacre {
namespace {

template <class T>
void copy_to_memory(Array<T>& values) {
  values = std::vector<T>(values.begin(), values.end());
}

// Copies labels and splits out of the mapped file, where they stand behind the features. If the
// file is cut short during the run, reading a row of features from it throws an error, and the run
// can still write a checkpoint. Reading mapped memory that is gone would end the process at once.
void copy_labels_and_splits(Dataset& dataset) {
  copy_to_memory(dataset.labels);
  copy_to_memory(dataset.splits.train);
  copy_to_memory(dataset.splits.val);
  copy_to_memory(dataset.splits.test);
}

}  // namespace

RunData::RunData(Dataset data, RunConfig settings, bool training)
    : config(std::move(settings)), dataset(std::move(data)), notes(dataset.notes) {
  const bool learned = config.load.features_file == "learned";
  if (!dataset.features.defined() && !dataset.heterogeneous() && !learned) {
    throw UserError(config.data, "has no node features",
                    "give them with --features FILE, or use --features learned, degree or onehot");
  }
  if (!training) align_classes(config.class_names, config.data, dataset);
  if (!dataset.class_names.empty()) config.class_names = dataset.class_names;
  if (training && users_and_items(dataset)) {
    const bool held_out = dataset.test_edges.size() + dataset.val_edges.size() > 0;
    throw UserError(config.data,
                    held_out ? "holds users and items, but this command is for models that classify nodes"
                             : "holds users and items, but no pairs to test a recommender on",
                    held_out ? "train a recommender with nacre train --model lightgcn"
                             : "add test_user and test_item to the .npz file, or test.txt beside train.txt");
  }
  if (training && (dataset.num_classes < 1 || (dataset.labels.empty() && !dataset.multilabel())))
    throw UserError(config.data, "has no labels", "give them with --labels FILE");
  if (training && dataset.splits.train.empty()) {
    throw UserError(config.data, "has no training nodes",
                    "draw them with --split random:0.6/0.2/0.2, or give them with --splits FILE");
  }
  on_disk = rows_on_disk(config, dataset);
  if (on_disk) copy_labels_and_splits(dataset);
  config.disk_bytes = on_disk ? on_disk->bytes() : 0;
  data_fingerprint = on_disk ? fingerprint_with(dataset, *on_disk) : dataset.fingerprint();
  metric = resolve_metric(config.metric, dataset);
  if (training) class_weights = nacre::class_weights(config.class_weights, dataset);
  prepare_graph();
  const bool made = is_made_features(config.load.features_file) && config.normalize_features == "auto";
  const std::string how = made ? "none" : config.normalize_features;
  if (on_disk) require_no_division(how);
  if (divides_rows(dataset.features, how))
    require_room(config, dataset.features.bytes(), "features with rows divided by their sums",
                 "add --normalize-features none, or use a smaller graph");
  normalize_features(dataset, how, notes);
  store_features(config, dataset, config.mode != "minibatch");
  complete_model(training);
}

// Throws UserError if rows that stay on disk would have to be divided by their sums, because they
// are used as they are. The first rows of the file tell whether they look like word counts, and the
// memory of these rows is released afterwards.
void RunData::require_no_division(const std::string& how) const {
  const bool divides = divides_rows(dataset.features, how);
  native::release_pages(dataset.features.raw(), dataset.features.bytes());
  if (!divides) return;
  throw UserError("--host-budget", "feature rows that stay on disk cannot be normalized (divided by their sums)",
                  "add --normalize-features none, or raise --host-budget");
}

void RunData::prepare_graph() {
  const ModelInfo& info = model_info(config.model.model);
  if (dataset.graph.weighted() && !info.supports_edge_weight) {
    throw UserError("--model " + info.name, "does not use edge weights, but the graph has them",
                    "use a model that does (gcn, sage), or add --ignore-edge-weights");
  }
  if (info.needs_types && !dataset.graph.typed()) {
    if (config.relations < 1 || config.relations > 65535) throw UserError("--relations", "must be between 1 and 65535");
    require_room(config, dataset.graph.num_edges() * 6, "relations of the edges");
    dataset.graph = assign_relations(dataset.graph, config.relations);
    notes.push_back(
        fmt::format("{}the graph has no edge types, so each edge got one of {} made-up relations "
                    "(--relations), by a hash of its ends",
                    kWarningNote, config.relations));
  }
  if (info.needs_self_loops) {
    const TraceSpan span("prepare", "self loops");
    require_room(config, dataset.graph.bytes() + dataset.num_nodes() * 10, "the graph with self loops");
    dataset.graph = add_self_loops(dataset.graph);
  }
}

void RunData::complete_model(bool training) {
  ModelOptions& m = config.model;
  const int64_t trained_in = m.in_dim;
  const int64_t trained_out = m.out_dim;
  // A trained model may be given vertices without labels, or labels in which the last classes do
  // not occur.
  const bool unlabelled = dataset.labels.empty() && !dataset.multilabel();
  const bool guided = !training && trained_out > 0;
  if (guided && !dataset.multilabel() && dataset.num_classes < trained_out) dataset.num_classes = trained_out;
  if (guided && !unlabelled && dataset.multilabel() != (m.loss == "bce")) {
    throw UserError(config.data, std::string("has ") + (dataset.multilabel() ? "multi-label" : "single-label") +
                                     " data, but the model was trained for the other kind");
  }
  const std::vector<VertexKind> kinds = vertex_kinds(dataset);
  if (guided || !m.kinds.empty()) check_trained_kinds(m.kinds, kinds, config.data);
  if (training && kinds.empty() && trained_in > 0 && trained_in != dataset.num_features()) {
    throw UserError("--input-dim",
                    "is the width that features of several kinds of nodes are projected to, but the data have one kind",
                    "leave it out");
  }
  m.kinds = kinds;
  leaves = feature_leaves(dataset, kinds);
  // With several kinds, m.in_dim is the width that features are projected to: the trained one, or
  // that of the hidden layers.
  m.in_dim = kinds.empty() ? dataset.num_features() : trained_in;
  m.out_dim = dataset.num_classes;
  if ((trained_in != 0 && trained_in != m.in_dim) || (trained_out != 0 && trained_out != m.out_dim)) {
    throw UserError(config.data, fmt::format("has {} features and {} classes, but the model was trained for {} and {}",
                                             m.in_dim, m.out_dim, trained_in, trained_out));
  }
  m.num_edge_types = dataset.graph.typed() ? dataset.graph.num_edge_types() : 0;
  m.edge_weighted = dataset.graph.weighted();
  if (!guided) m.loss = dataset.multilabel() ? "bce" : "cross_entropy";
  m = complete_options(m);
  if (!kinds.empty() && dataset.heterogeneous()) notes.push_back(kinds_text(kinds, m.in_dim));
}

void RunData::reorder(const Array<NodeId>& order) {
  // Old rows are freed with the last leaf that refers to them, so the leaves are cleared first.
  leaves.clear();
  reorder_features(dataset, order);
  reorder_all_but_features(dataset, order);
  leaves = feature_leaves(dataset, config.model.kinds);
}

std::string RunData::fingerprint() const {
  uint64_t h = data_fingerprint;
  std::string settings = result_settings_json(config);
  // The file of a model may have changed since the run was started, so the model itself is
  // included.
  if (!file_of_model(config.model.model).empty()) settings += print_dfg(build_model(config.model));
  for (const char c : settings) h = mix_key(h, static_cast<unsigned char>(c));
  return fmt::format("{:016x}", h);
}

int64_t RunData::label_bytes() const {
  const Splits& s = dataset.splits;
  return dataset.labels.size() * 4 + dataset.targets.bytes() +
         (s.train.size() + s.val.size() + s.test.size()) * static_cast<int64_t>(sizeof(NodeId));
}

Tensor RunData::all_labels() const {
  Tensor labels(DType::i32, {dataset.num_nodes()});
  std::fill_n(labels.data<int32_t>(), dataset.num_nodes(), -1);
  if (!dataset.multilabel()) std::copy(dataset.labels.begin(), dataset.labels.end(), labels.data<int32_t>());
  return labels;
}

double RunData::class_weight(NodeId node) const {
  return class_weights.empty() || dataset.multilabel() ? 1 : class_weights[dataset.labels[node]];
}

void RunData::loss_weights(NodeId node, double total, float* out) const {
  const double classes = dataset.multilabel() ? static_cast<double>(dataset.num_classes) : 1;
  const double of_node = total > 0 ? class_weight(node) / (total * classes) : 0;
  *out = static_cast<float>(of_node);
  if (!weighs_pairs()) return;
  const uint8_t* target = dataset.targets.data<uint8_t>() + static_cast<int64_t>(node) * dataset.num_classes;
  for (size_t c = 0; c < class_weights.size(); ++c)
    out[c] = static_cast<float>(target[c] != 0 ? of_node * class_weights[c] : of_node);
}

Tensor RunData::no_loss_weights(int64_t nodes) const {
  return Tensor::zeros(DType::f32, weighs_pairs() ? Shape{nodes, dataset.num_classes} : Shape{nodes});
}

}  // namespace nacre
