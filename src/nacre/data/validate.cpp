#include "nacre/data/validate.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <string_view>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/data/node_data.h"

namespace nacre {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr int64_t kCheckChunk = 1 << 18;

// Returns the first index for which `bad` holds, or kNone. The result is the same on any number of
// threads.
template <class Bad>
int64_t first_bad(int64_t count, const Bad& bad) {
  std::atomic<int64_t> first{kNone};
  parallel_for(count, kCheckChunk, [&](int64_t b, int64_t e) {
    if (b >= first.load(std::memory_order_relaxed)) return;
    for (int64_t i = b; i < e; ++i) {
      if (!bad(i)) continue;
      int64_t seen = first.load();
      while (i < seen && !first.compare_exchange_weak(seen, i)) {
      }
      return;
    }
  });
  return first.load();
}

bool not_finite(float value) { return (std::bit_cast<uint32_t>(value) & 0x7F800000u) == 0x7F800000u; }

class Validator {
 public:
  Validator(const Dataset& data, const std::string& where, const GraphSize& graph)
      : d_(data), where_(where), nodes_(graph.vertices), edge_types_(graph.edge_types) {}

  void check_sizes() const {
    if (nodes_ == 0) fail_at(d_.origins.graph, 0, "has no nodes");
    if (d_.graph.num_src() != d_.graph.num_dst()) fail("is a block, not a whole graph");
    if (d_.features.defined()) {
      const Shape& shape = d_.features.shape();
      if (d_.features.dtype() != DType::f32 || shape.size() != 2) fail("features are not an f32 matrix");
      if (shape[0] != nodes_) fail_rows("features", shape[0], d_.origins.features);
      if (shape[1] == 0) fail_at(d_.origins.features, 0, "features have no columns");
    }
    if (!d_.labels.empty() && d_.labels.size() != nodes_) fail_rows("labels", d_.labels.size(), d_.origins.labels);
    if (d_.multilabel()) check_target_size();
    if (d_.num_classes < 0 || d_.num_classes > kMaxClasses) fail("the number of classes is out of range");
  }

  void check_kinds() const {
    const size_t kinds = d_.node_types.size();
    const auto& offsets = d_.node_offsets;
    if (kinds == 0 && (!offsets.empty() || !d_.relations.empty() || !d_.type_features.empty()))
      fail("has features, relations or numbers by kind of node, but names no kinds");
    if (kinds > 0 && (offsets.size() != kinds + 1 || offsets.front() != 0 || offsets.back() != nodes_ ||
                      !std::is_sorted(offsets.begin(), offsets.end()))) {
      fail("the kinds of nodes do not cover the " + human_count(nodes_) + " nodes");
    }
    if (!d_.relations.empty() && static_cast<int>(d_.relations.size()) != edge_types_) {
      fail("has " + human_count(static_cast<int64_t>(d_.relations.size())) + " relations for " +
           human_count(edge_types_) + " edge types");
    }
    for (const Relation& r : d_.relations) {
      const auto known = [&](int type) { return type >= 0 && static_cast<size_t>(type) < kinds; };
      if (!known(r.src_type) || !known(r.dst_type)) fail("relation " + r.name + " names an unknown kind of node");
    }
    if (!d_.type_features.empty()) check_type_feature_sizes();
    if (!d_.original_ids.empty() && d_.original_ids.size() != nodes_) fail_rows("ids", d_.original_ids.size(), {});
    if (!d_.node_names.empty() && static_cast<int64_t>(d_.node_names.size()) != nodes_)
      fail_rows("names", static_cast<int64_t>(d_.node_names.size()), {});
    if (!d_.class_names.empty() && static_cast<int64_t>(d_.class_names.size()) != d_.num_classes)
      fail("has " + human_count(static_cast<int64_t>(d_.class_names.size())) + " names for " +
           human_count(d_.num_classes) + " classes");
    if (!d_.node_names.empty() && !d_.original_ids.empty()) fail("has both names and ids of its nodes");
  }

  // Checks that every edge leads from and to the kinds that its relation names.
  void check_relations() const {
    if (d_.relations.empty() || d_.node_types.size() < 2) return;
    const Graph& graph = d_.graph;
    const int64_t* rows = graph.row_ptr().data();
    const int64_t at = first_bad(nodes_, [&](int64_t v) {
      for (int64_t e = rows[v]; e < rows[v + 1]; ++e) {
        if (!fits(graph.typed() ? graph.edge_type()[e] : 0, graph.col_idx()[e], v)) return true;
      }
      return false;
    });
    if (at != kNone) fail("an edge into node " + human_count(at) + " does not lead where its relation says");
  }

  void check_held_out(const HeldOutEdges& edges, const std::string& name) const {
    if (edges.src.size() != edges.dst.size() || (!edges.type.empty() && edges.type.size() != edges.src.size()))
      fail("the " + name + " edges differ in number of sources, destinations and types");
    const int64_t at = first_bad(edges.size(), [&](int64_t i) {
      const int type = edges.type.empty() ? 0 : edges.type[i];
      if (edges.src[i] >= nodes_ || edges.dst[i] >= nodes_ || type >= edge_types_) return true;
      return !d_.relations.empty() && !fits(type, edges.src[i], edges.dst[i]);
    });
    if (at != kNone) fail(name + " edge " + human_count(at) + " names a node or type that does not fit");
  }

  void check_labels() const {
    if (d_.num_classes > 0 && nodes_ > 0 && d_.labels.empty() && !d_.multilabel())
      fail("speaks of " + human_count(d_.num_classes) + " classes, but has no labels");
    const int32_t* labels = d_.labels.data();
    const int64_t at =
        first_bad(d_.labels.size(), [&](int64_t i) { return labels[i] < -1 || labels[i] >= d_.num_classes; });
    if (at != kNone) {
      fail_at(d_.origins.labels, at,
              "node " + human_count(at) + " has class " + std::to_string(labels[at]) + ", but there are " +
                  human_count(d_.num_classes) + " classes");
    }
  }

  void check_splits() const {
    std::vector<uint8_t> owner(nodes_, 0);
    const Array<NodeId>* parts[] = {&d_.splits.train, &d_.splits.val, &d_.splits.test};
    const Origin* origins[] = {&d_.origins.train, &d_.origins.val, &d_.origins.test};
    constexpr std::string_view names[] = {"", "train", "val", "test"};
    for (uint8_t p = 1; p <= 3; ++p) {
      const std::string name(names[p]);
      for (int64_t i = 0; i < parts[p - 1]->size(); ++i) {
        const NodeId v = (*parts[p - 1])[i];
        const auto fail = [&](const std::string& what) {
          fail_at(*origins[p - 1], origins[p - 1]->by_vertex ? int64_t{v} : i, what);
        };
        if (v >= nodes_)
          fail("the " + name + " split names node " + human_count(v) + ", but there are only " + human_count(nodes_) +
               " nodes");
        if (owner[v] == p) fail("the " + name + " split names node " + human_count(v) + " twice");
        if (owner[v] != 0)
          fail("node " + human_count(v) + " is in both " + std::string(names[owner[v]]) + " and " + name);
        if (!d_.labels.empty() && d_.labels[v] < 0)
          fail("the " + name + " split names node " + human_count(v) + ", which has no label");
        owner[v] = p;
      }
    }
  }

  void check_values() const {
    check_finite(d_.features, "node ", d_.origins.features);
    for (size_t k = 0; k < d_.type_features.size(); ++k)
      check_finite(d_.type_features[k], d_.node_types[k] + " ", origin_of_kind(k));
    if (d_.multilabel()) {
      const auto* y = d_.targets.data<uint8_t>();
      const int64_t bad = first_bad(d_.targets.size(), [&](int64_t i) { return y[i] > 1; });
      if (bad != kNone) fail_at(d_.origins.labels, bad / d_.targets.shape()[1], "multi-label targets are not 0 or 1");
    }
    const float* w = d_.graph.edge_weight().data();
    const int64_t at = first_bad(d_.graph.edge_weight().size(), [&](int64_t i) { return not_finite(w[i]); });
    if (at != kNone) fail_at(d_.origins.graph, at, "the weight of edge " + human_count(at) + " is not finite");
  }

 private:
  bool fits(int type, int64_t src, int64_t dst) const {
    const Relation& r = d_.relations[type];
    const auto within = [&](int64_t v, int kind) {
      return v >= d_.node_offsets[kind] && v < d_.node_offsets[kind + 1];
    };
    return within(src, r.src_type) && within(dst, r.dst_type);
  }

  void check_type_feature_sizes() const {
    if (d_.features.defined()) fail("has both features and features by kind of node");
    if (d_.type_features.size() != d_.node_types.size()) fail("features by kind of node do not fit the kinds");
    for (size_t k = 0; k < d_.type_features.size(); ++k) {
      const Tensor& x = d_.type_features[k];
      if (!x.defined()) continue;
      const int64_t count = d_.node_offsets[k + 1] - d_.node_offsets[k];
      const std::string& type = d_.node_types[k];
      if (x.dtype() != DType::f32 || x.shape().size() != 2) fail("features of " + type + " are not an f32 matrix");
      if (x.shape()[0] != count) {
        fail_at(origin_of_kind(k), x.shape()[0],
                "features of " + type + " have " + human_count(x.shape()[0]) + " rows, but there are " +
                    human_count(count) + " such nodes");
      }
      if (x.shape()[1] == 0) fail_at(origin_of_kind(k), 0, "features of " + type + " have no columns");
    }
  }

  void check_finite(const Tensor& features, const std::string& what, const Origin& origin) const {
    if (!features.defined()) return;
    const auto* x = features.data<float>();
    const int64_t at = first_bad(features.size(), [&](int64_t i) { return not_finite(x[i]); });
    if (at == kNone) return;
    const int64_t columns = features.shape()[1];
    fail_at(origin, at / columns,
            "feature " + human_count(at % columns) + " of " + what + human_count(at / columns) + " is not finite",
            "replace NaN and infinite values");
  }

  void check_target_size() const {
    const Shape& shape = d_.targets.shape();
    if (d_.targets.dtype() != DType::u8 || shape.size() != 2)
      fail("multi-label targets must be a matrix of bytes (u8), one row per node");
    if (shape[0] != nodes_) fail_rows("targets", shape[0], d_.origins.labels);
    if (shape[1] != d_.num_classes)
      fail("targets have " + human_count(shape[1]) + " columns for " + human_count(d_.num_classes) + " classes");
    if (!d_.labels.empty()) fail("has both single labels and multi-label targets");
  }

  [[noreturn]] void fail(const std::string& what, const std::string& remedy = "") const {
    throw UserError(where_, what, remedy);
  }

  [[noreturn]] void fail_at(const Origin& origin, int64_t item, const std::string& what,
                            const std::string& remedy = "") const {
    throw UserError(origin.known() ? origin.at(item) : where_, what, remedy);
  }

  // Throws UserError that names the place where the rows end or, if there are too many, the first
  // row that is too many.
  [[noreturn]] void fail_rows(const std::string& what, int64_t rows, const Origin& origin) const {
    fail_at(origin, std::min(rows, nodes_),
            what + " have " + human_count(rows) + " rows, but there are " + human_count(nodes_) + " nodes",
            "give one row per node, or the number of nodes with --num-nodes");
  }

  Origin origin_of_kind(size_t kind) const {
    return kind < d_.origins.type_features.size() ? d_.origins.type_features[kind] : Origin();
  }

  const Dataset& d_;
  const std::string& where_;
  int64_t nodes_;
  int edge_types_;
};

}  // namespace

void validate_parts(const Dataset& dataset, const std::string& where, Depth depth) {
  const Validator validator(dataset, where, {dataset.num_nodes(), dataset.graph.num_edge_types()});
  validator.check_sizes();
  validator.check_kinds();
  validator.check_relations();
  validator.check_held_out(dataset.val_edges, "validation");
  validator.check_held_out(dataset.test_edges, "test");
  validator.check_labels();
  validator.check_splits();
  if (depth == Depth::everything) validator.check_values();
}

void validate_beside_graph(const Dataset& dataset, const GraphSize& graph, const std::string& where) {
  const Validator validator(dataset, where, graph);
  validator.check_sizes();
  validator.check_kinds();
  validator.check_held_out(dataset.val_edges, "validation");
  validator.check_held_out(dataset.test_edges, "test");
  validator.check_labels();
  validator.check_splits();
  validator.check_values();
}

void validate(const Dataset& dataset, const std::string& where) { validate_parts(dataset, where, Depth::everything); }

}  // namespace nacre
