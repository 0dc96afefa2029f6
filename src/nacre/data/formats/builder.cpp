#include "nacre/data/formats/builder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/data/edge_list.h"
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
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= count) {
      throw UserError(where, "edge " + std::to_string(i) + " names node " + std::to_string(ids[i]) +
                                 ", but its kind has only " + human_count(count) + " nodes");
    }
    ids[i] = static_cast<NodeId>(ids[i] + by);
  }
}

[[noreturn]] void refuse_count(const EdgeInput& input, int64_t held) {
  throw UserError(input.where,
                  "ends after edge " + std::to_string(held) + ", but the set states " + human_count(input.stated),
                  "the set is incomplete: fetch it again");
}

void check_memory(const FeatureInput& input) {
  const int64_t free = available_memory();
  if (input.memory <= free) return;
  throw UserError(input.where,
                  "takes " + human_bytes(static_cast<double>(input.memory)) + " as f32, but " +
                      human_bytes(static_cast<double>(free)) + " of memory are free",
                  "convert the set to a .nacre file, whose features are mapped");
}

}  // namespace

int DatasetBuilder::add_type(const std::string& name, int64_t count) {
  NACRE_CHECK(relations_.empty(), "a kind of nodes was added after edges");
  if (find_type(name) >= 0) throw UserError(where_, "names the kind of node '" + name + "' twice");
  if (count < 0 || count > kMaxNodeId + 1 - offsets_.back()) {
    throw UserError(where_, "has " + human_count(count) + " nodes of kind '" + name + "'",
                    "all kinds together may have at most 4,294,967,295 nodes");
  }
  types_.push_back(name);
  offsets_.push_back(offsets_.back() + count);
  features_.emplace_back();
  feature_origins_.emplace_back();
  feature_inputs_.emplace_back();
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
  throw UserError(where, "unknown kind of node '" + name.substr(0, 60) + "'", "choose one of " + known);
}

size_t DatasetBuilder::relation_id(const Relation& relation, const std::string& where) {
  const auto id = static_cast<size_t>(std::find(relations_.begin(), relations_.end(), relation) - relations_.begin());
  if (id == relations_.size()) {
    if (id >= static_cast<size_t>(kMaxEdgeTypes)) throw UserError(where, "has more than 65,535 relations");
    relations_.push_back(relation);
  }
  return id;
}

void DatasetBuilder::add_edges(const Relation& relation, EdgeInput edges) {
  edge_inputs_.push_back({relation_id(relation, edges.where), std::move(edges)});
}

void DatasetBuilder::add_edges(const Relation& relation, EdgeList edges, const std::string& where) {
  const size_t id = relation_id(relation, where);
  shift(edges.src, offset(relation.src_type), count(relation.src_type), where);
  shift(edges.dst, offset(relation.dst_type), count(relation.dst_type), where);
  // If only some of the edges have weights, the others weigh 1.
  if (!edges.weight.empty() || !edges_.weight.empty()) {
    edges_.weight.resize(edges_.src.size(), 1.0F);
    edges.weight.resize(edges.src.size(), 1.0F);
    append(edges_.weight, edges.weight);
  }
  edges_.type.resize(edges_.type.size() + edges.src.size(), static_cast<uint16_t>(id));
  append(edges_.src, edges.src);
  append(edges_.dst, edges.dst);
}

void DatasetBuilder::set_features(int type, Tensor features, Origin origin) {
  features_[type] = std::move(features);
  feature_origins_[type] = std::move(origin);
}

void DatasetBuilder::set_features(int type, FeatureInput features) { feature_inputs_[type] = std::move(features); }

void DatasetBuilder::set_labels(int type, std::vector<int32_t> labels, int64_t num_classes, Origin origin) {
  const auto held = static_cast<int64_t>(labels.size());
  if (held != count(type)) {
    throw UserError(origin.known() ? origin.at(std::min(held, count(type))) : where_,
                    "has " + human_count(held) + " labels for " + human_count(count(type)) + " nodes of kind '" +
                        types_[type] + "'");
  }
  NACRE_CHECK(labelled_ < 0, "two kinds of nodes have labels");
  labelled_ = type;
  origin.first = offset(type);
  data.origins.labels = std::move(origin);
  data.num_classes = num_classes;
  if (types_.size() == 1) {
    data.labels = std::move(labels);
    return;
  }
  std::vector<int32_t> all(num_nodes(), -1);
  std::copy(labels.begin(), labels.end(), all.begin() + offset(type));
  data.labels = std::move(all);
}

void DatasetBuilder::set_targets(int type, const Tensor& targets, Origin origin) {
  if (targets.rows() != count(type)) {
    throw UserError(origin.known() ? origin.at(std::min(targets.rows(), count(type))) : where_,
                    "has " + human_count(targets.rows()) + " rows of labels for " + human_count(count(type)) +
                        " nodes of kind '" + types_[type] + "'");
  }
  NACRE_CHECK(labelled_ < 0, "two kinds of nodes have labels");
  labelled_ = type;
  origin.first = offset(type);
  data.origins.labels = std::move(origin);
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
    set_targets(type, part.targets, part.origins.labels);
  } else {
    set_labels(type, {part.labels.begin(), part.labels.end()}, part.num_classes, part.origins.labels);
  }
}

Array<NodeId> DatasetBuilder::split(int type, const std::vector<int64_t>& ids, const Origin& origin) const {
  std::vector<NodeId> fused;
  fused.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= count(type)) {
      throw UserError(
          origin.at(static_cast<int64_t>(i)),
          "names node " + std::to_string(ids[i]) + ", but its kind has only " + human_count(count(type)) + " nodes");
    }
    fused.push_back(static_cast<NodeId>(offset(type) + ids[i]));
  }
  return fused;
}

void DatasetBuilder::set_split(Part part, int type, const std::vector<int64_t>& ids, const Origin& origin) {
  Splits& s = data.splits;
  Origins& o = data.origins;
  (part == Part::train ? s.train : part == Part::val ? s.val : s.test) = split(type, ids, origin);
  (part == Part::train ? o.train : part == Part::val ? o.val : o.test) = origin;
}

void DatasetBuilder::read_inputs() {
  int64_t edges = 0;
  for (const TypedInput& input : edge_inputs_) {
    const EdgeInput& from = input.edges;
    std::vector<std::string> about_columns;  // ignored, because only two columns are used
    EdgeList list = read_edges(*from.open(), about_columns);
    list.weight = {};
    list.type = {};
    const auto held = static_cast<int64_t>(list.src.size());
    if (from.stated >= 0 && from.stated != held) refuse_count(from, held);
    edges += held;
    if (from.both_ways) {
      list.src.insert(list.src.end(), list.dst.begin(), list.dst.end());
      list.dst.insert(list.dst.end(), list.src.begin(), list.src.begin() + held);
    }
    add_edges(relations_[input.relation], std::move(list), from.where);
  }
  edge_inputs_.clear();
  for (size_t k = 0; k < feature_inputs_.size(); ++k) {
    if (!feature_inputs_[k]) continue;
    check_memory(*feature_inputs_[k]);
    set_features(static_cast<int>(k), feature_inputs_[k]->read(), {feature_inputs_[k]->where});
    edges += features_[k].rows();
  }
  check_vertex_count(num_nodes(), edges, where_);
}

void DatasetBuilder::name_kinds() {
  if (plain()) return;
  data.node_types = types_;
  data.node_offsets = offsets_;
  data.relations = relations_;
}

Dataset DatasetBuilder::finish_rest() {
  if (later_) std::exchange(later_, {})(*this);
  name_kinds();
  return std::move(data);
}

Dataset DatasetBuilder::finish() {
  read_inputs();
  if (later_) std::exchange(later_, {})(*this);
  edges_.num_nodes = num_nodes();
  if (plain()) {
    edges_.type = {};
  } else {
    edges_.num_types = std::max(1, static_cast<int>(relations_.size()));
  }
  name_kinds();
  data.graph = build_graph(std::move(edges_), where_);
  const auto given = [](const Tensor& t) { return t.defined(); };
  if (types_.size() == 1) {
    data.features = features_[0];
    data.origins.features = feature_origins_[0];
  } else if (std::any_of(features_.begin(), features_.end(), given)) {
    data.type_features = features_;
    data.origins.type_features = feature_origins_;
  }
  return std::move(data);
}

std::vector<Relation> with_reverses(std::vector<Relation> relations, std::vector<uint16_t>& reverse,
                                    const std::string& where) {
  const size_t own = relations.size();
  reverse.resize(own);
  for (size_t r = 0; r < own; ++r) {
    const Relation forward = relations[r];
    reverse[r] = static_cast<uint16_t>(r);
    if (forward.src_type == forward.dst_type) continue;
    if (relations.size() >= static_cast<size_t>(kMaxEdgeTypes))
      throw UserError(where, "has more than 65,535 relations with their reverses");
    reverse[r] = static_cast<uint16_t>(relations.size());
    relations.push_back({forward.dst_type, "rev_" + forward.name, forward.src_type});
  }
  return relations;
}

Dataset add_reverse_relations(Dataset data) {
  std::vector<uint16_t> reverse;
  data.relations = with_reverses(std::move(data.relations), reverse, data.name);
  const Graph& graph = data.graph;
  const Array<NodeId>& dst = graph.edge_dst();
  struct Edge {
    NodeId src;
    NodeId dst;
    uint16_t type;
    float weight;
  };
  std::vector<Edge> both;
  both.reserve(2 * graph.num_edges());
  for (int64_t e = 0; e < graph.num_edges(); ++e) {
    const NodeId s = graph.col_idx()[e];
    const uint16_t type = graph.typed() ? graph.edge_type()[e] : 0;
    const float weight = graph.weighted() ? graph.edge_weight()[e] : 1;
    both.push_back({s, dst[e], type, weight});
    if (reverse[type] != type || s != dst[e]) both.push_back({dst[e], s, reverse[type], weight});
  }
  std::stable_sort(both.begin(), both.end(), [](const Edge& a, const Edge& b) { return a.type < b.type; });
  EdgeList edges;
  edges.num_nodes = graph.num_nodes();
  edges.num_types = static_cast<int>(data.relations.size());
  for (const Edge& edge : both) {
    edges.src.push_back(edge.src);
    edges.dst.push_back(edge.dst);
    edges.type.push_back(edge.type);
    if (graph.weighted()) edges.weight.push_back(edge.weight);
  }
  data.graph = cleaned(build_graph(std::move(edges), data.name), {.merge_duplicates = true});
  return data;
}

}  // namespace nacre
