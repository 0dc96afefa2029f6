// Dataset: everything that a training run needs to know about its data, in one form for all
// layouts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/origin.h"
#include "nacre/graph/graph.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

struct Splits {
  Array<NodeId> train;
  Array<NodeId> val;
  Array<NodeId> test;
};

// Describes one kind of edge, with the kinds of vertices that it leads from and to.
struct Relation {
  int src_type = 0;  // index into Dataset::node_types
  std::string name;
  int dst_type = 0;

  bool operator==(const Relation&) const = default;
};

// Edges that are not part of the graph, about which a recommender or a link predictor is asked.
struct HeldOutEdges {
  Array<NodeId> src;
  Array<NodeId> dst;
  Array<uint16_t> type;  // empty, or one per edge

  int64_t size() const { return src.size(); }
};

struct Dataset {
  std::string name;  // for example "cora" or "twin:arxiv@0.1"
  Graph graph;
  Tensor features;  // f32 [N, F], maybe in a mapped file; undefined if the set has no features
  // Single-label sets: [N], -1 means unlabelled. Empty if the set has no labels or is multi-label.
  Array<int32_t> labels;
  Tensor targets;  // multi-label sets: u8 [N, C] of 0/1; undefined in other sets
  int64_t num_classes = 0;
  // Names of the classes, if the source has words for them. Empty if classes are numbers.
  std::vector<std::string> class_names;
  Splits splits;

  // All kinds of vertices share one range of ids: kind k has the ids [node_offsets[k],
  // node_offsets[k + 1]). Both vectors are empty if the source names no kinds.
  std::vector<std::string> node_types;
  std::vector<int64_t> node_offsets;
  // The relation of each edge type; empty if edge types have no names.
  std::vector<Relation> relations;
  // Features of each kind: f32 [vertices of the kind, F_k], undefined for kinds without features.
  // If there are fewer than two kinds, the vector is empty, and `features` has the features. If the
  // vector is not empty, `features` is undefined.
  std::vector<Tensor> type_features;
  HeldOutEdges val_edges;
  HeldOutEdges test_edges;

  // What the source called the vertices, if they were renumbered: an integer or a word for each. At
  // most one of the two is given. In a set of several kinds, two kinds may have the same id.
  Array<int64_t> original_ids;
  std::vector<std::string> node_names;
  std::vector<std::string> notes;  // assumptions made while reading, which are shown to the user
  // Says where values come from, as far as the reader knows. It is not part of the fingerprint.
  Origins origins;

  bool heterogeneous() const { return node_types.size() > 1; }
  bool multilabel() const { return targets.defined(); }
  int64_t num_nodes() const { return graph.num_nodes(); }
  int64_t num_features() const { return features.defined() ? features.shape()[1] : 0; }
  int64_t bytes() const;
  // Returns a hash of everything above except name, node_names, original_ids, notes and origins.
  // Kinds and held-out edges count only if there are any.
  uint64_t fingerprint() const;
};

// Throws UserError naming `where` if the parts do not fit together: wrong sizes, labels or splits
// out of range, overlapping splits, features that are not finite, edges that do not lead where
// their relation says.
void validate(const Dataset& dataset, const std::string& where);

}  // namespace nacre
