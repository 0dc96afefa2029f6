#include "nacre/data/formats/builder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/formats/clean.h"
#include "nacre/data/node_data.h"

namespace nacre {
namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
  if (to.empty()) {
    to = std::move(from);
  } else {
    to.insert(to.end(), from.begin(), from.end());
  }
  from = {};
}

void shift(std::vector<NodeId>& ids, int64_t by, int64_t count, const std::string& where) {
  for (NodeId& id : ids) {
    if (id >= count) {
      throw UserError(
          where, "an edge names vertex " + human_count(id) + " of a kind of which there are " + human_count(count));
    }
    id = static_cast<NodeId>(id + by);
  }
}

}  // namespace

int DatasetBuilder::add_type(const std::string& name, int64_t count) {
  NACRE_CHECK(relations_.empty(), "kinds come before edges");
  if (find_type(name) >= 0) throw UserError(where_, "names the kind of vertex '" + name + "' twice");
  if (count < 0 || count > kMaxNodeId + 1 - offsets_.back()) {
    throw UserError(where_, "has " + human_count(count) + " vertices of kind '" + name + "'",
                    "4,294,967,295 vertices of all kinds are possible");
  }
  types_.push_back(name);
  offsets_.push_back(offsets_.back() + count);
  features_.emplace_back();
  return static_cast<int>(types_.size()) - 1;
}

int DatasetBuilder::find_type(const std::string& name) const {
  const auto found = std::find(types_.begin(), types_.end(), name);
  return found == types_.end() ? -1 : static_cast<int>(found - types_.begin());
}

int DatasetBuilder::type(const std::string& name, const std::string& where) const {
  const int found = find_type(name);
  if (found >= 0) return found;
  std::string known;
  for (const std::string& type : types_) known += (known.empty() ? "" : ", ") + type;
  throw UserError(where, "'" + name.substr(0, 60) + "' is no kind of vertex", "known are: " + known);
}

void DatasetBuilder::add_edges(const Relation& relation, EdgeList edges, const std::string& where) {
  size_t id = static_cast<size_t>(std::find(relations_.begin(), relations_.end(), relation) - relations_.begin());
  if (id == relations_.size()) {
    if (id >= static_cast<size_t>(kMaxEdgeTypes)) throw UserError(where, "more than 65,535 relations");
    relations_.push_back(relation);
  }
  shift(edges.src, offset(relation.src_type), count(relation.src_type), where);
  shift(edges.dst, offset(relation.dst_type), count(relation.dst_type), where);
  // Weights on some of the edges: the others weigh 1.
  if (!edges.weight.empty() || !edges_.weight.empty()) {
    edges_.weight.resize(edges_.src.size(), 1.0F);
    edges.weight.resize(edges.src.size(), 1.0F);
    append(edges_.weight, edges.weight);
  }
  edges_.type.resize(edges_.type.size() + edges.src.size(), static_cast<uint16_t>(id));
  append(edges_.src, edges.src);
  append(edges_.dst, edges.dst);
}

void DatasetBuilder::set_features(int type, Tensor features) {
  features_[static_cast<size_t>(type)] = std::move(features);
}

void DatasetBuilder::set_labels(int type, std::vector<int32_t> labels, int64_t num_classes) {
  if (static_cast<int64_t>(labels.size()) != count(type)) {
    throw UserError(where_, "has " + human_count(static_cast<int64_t>(labels.size())) + " labels for " +
                                human_count(count(type)) + " vertices of kind '" + types_[static_cast<size_t>(type)] +
                                "'");
  }
  NACRE_CHECK(labelled_ < 0, "two kinds have labels");
  labelled_ = type;
  data.num_classes = num_classes;
  if (types_.size() == 1) {
    data.labels = std::move(labels);
    return;
  }
  std::vector<int32_t> all(static_cast<size_t>(num_nodes()), -1);
  std::copy(labels.begin(), labels.end(), all.begin() + offset(type));
  data.labels = std::move(all);
}

void DatasetBuilder::set_targets(int type, const Tensor& targets) {
  if (targets.rows() != count(type)) {
    throw UserError(where_, "has " + human_count(targets.rows()) + " rows of labels for " + human_count(count(type)) +
                                " vertices of kind '" + types_[static_cast<size_t>(type)] + "'");
  }
  NACRE_CHECK(labelled_ < 0, "two kinds have labels");
  labelled_ = type;
  data.num_classes = targets.row_size();
  if (types_.size() == 1) {
    data.targets = targets;
    return;
  }
  data.targets = Tensor::zeros(DType::u8, {num_nodes(), targets.shape()[1]});
  std::memcpy(data.targets.data<uint8_t>() + offset(type) * targets.shape()[1], targets.raw(),
              static_cast<size_t>(targets.bytes()));
}

void DatasetBuilder::set_labels(int type, const Dataset& part) {
  if (part.multilabel()) {
    set_targets(type, part.targets);
  } else {
    set_labels(type, {part.labels.begin(), part.labels.end()}, part.num_classes);
  }
}

Array<NodeId> DatasetBuilder::split(int type, const std::vector<int64_t>& ids, const std::string& where) const {
  std::vector<NodeId> fused;
  fused.reserve(ids.size());
  for (const int64_t id : ids) {
    if (id < 0 || id >= count(type)) {
      throw UserError(where, "names vertex " + std::to_string(id) + ", but there are " + human_count(count(type)));
    }
    fused.push_back(static_cast<NodeId>(offset(type) + id));
  }
  return fused;
}

Dataset DatasetBuilder::finish() {
  edges_.num_nodes = num_nodes();
  const bool plain = types_.size() == 1 && relations_.size() <= 1;
  if (plain) {
    edges_.type = {};
  } else {
    edges_.num_types = std::max(1, static_cast<int>(relations_.size()));
    data.node_types = types_;
    data.node_offsets = offsets_;
    data.relations = relations_;
  }
  data.graph = build_graph(std::move(edges_), where_);
  const auto given = [](const Tensor& t) { return t.defined(); };
  if (types_.size() == 1) {
    data.features = features_[0];
  } else if (std::any_of(features_.begin(), features_.end(), given)) {
    data.type_features = features_;
  }
  return std::move(data);
}

Dataset add_reverse_relations(Dataset data) {
  const auto relations = static_cast<int>(data.relations.size());
  std::vector<int> reverse(data.relations.size());
  for (int r = 0; r < relations; ++r) {
    const Relation forward = data.relations[static_cast<size_t>(r)];
    reverse[static_cast<size_t>(r)] = r;
    if (forward.src_type == forward.dst_type) continue;
    if (data.relations.size() >= static_cast<size_t>(kMaxEdgeTypes))
      throw UserError(data.name, "more than 65,535 relations with their reverses");
    reverse[static_cast<size_t>(r)] = static_cast<int>(data.relations.size());
    data.relations.push_back({forward.dst_type, "rev_" + forward.name, forward.src_type});
  }
  const Graph& graph = data.graph;
  const Array<NodeId>& dst = graph.edge_dst();
  EdgeList both;
  both.num_nodes = graph.num_nodes();
  both.num_types = static_cast<int>(data.relations.size());
  for (int64_t e = 0; e < graph.num_edges(); ++e) {
    const NodeId s = graph.col_idx()[e];
    const int type = graph.typed() ? graph.edge_type()[e] : 0;
    const int back = reverse[static_cast<size_t>(type)];
    const auto add = [&](NodeId from, NodeId to, int as) {
      both.src.push_back(from);
      both.dst.push_back(to);
      both.type.push_back(static_cast<uint16_t>(as));
      if (graph.weighted()) both.weight.push_back(graph.edge_weight()[e]);
    };
    add(s, dst[e], type);
    if (back != type || s != dst[e]) add(dst[e], s, back);
  }
  data.graph = cleaned(build_graph(std::move(both), data.name), {.merge_duplicates = true});
  return data;
}

}  // namespace nacre
