// Dataset: everything a training run needs from the outside world, whatever it was read from.
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

// One kind of edge: which kind of vertex it leads from and to.
struct Relation {
  int src_type = 0;  // index into Dataset::node_types
  std::string name;
  int dst_type = 0;

  bool operator==(const Relation&) const = default;
};

// Edges that are no part of the graph: what a recommender or a link predictor is asked about.
struct HeldOutEdges {
  Array<NodeId> src;
  Array<NodeId> dst;
  Array<uint16_t> type;  // empty, or one per edge

  int64_t size() const { return src.size(); }
};

struct Dataset {
  std::string name;  // "cora", "twin:arxiv@0.1"
  Graph graph;
  Tensor features;        // f32 [N, F]; undefined when the set has none. May be a mapped file.
  Array<int32_t> labels;  // single-label: [N], -1 = unlabelled. Empty when the set has none or is multi-label.
  Tensor targets;         // multi-label: u8 [N, C] of 0/1; undefined otherwise.
  int64_t num_classes = 0;
  std::vector<std::string> class_names;  // what the source called the classes, where they are words; empty: numbers
  Splits splits;

  // Several kinds of vertices share one id space: kind k has the ids [node_offsets[k], node_offsets[k + 1]). Both are
  // empty when the set does not speak of kinds.
  std::vector<std::string> node_types;
  std::vector<int64_t> node_offsets;
  std::vector<Relation> relations;  // of every edge type of the graph; empty when they have no names
  // Features by kind: f32 [vertices of the kind, F_k], undefined for kinds without. Empty with fewer than two kinds,
  // whose features are `features`; where this is not empty, `features` is undefined.
  std::vector<Tensor> type_features;
  HeldOutEdges val_edges;
  HeldOutEdges test_edges;

  // What the source called the vertices, where they were renumbered: an integer or a word each. At most one of the two
  // is given; with several kinds an id may stand once in each.
  Array<int64_t> original_ids;
  std::vector<std::string> node_names;
  std::vector<std::string> notes;  // what was assumed while reading; shown to the user
  Origins origins;                 // as far as the reader knows; no part of the set

  bool heterogeneous() const { return node_types.size() > 1; }
  bool multilabel() const { return targets.defined(); }
  int64_t num_nodes() const { return graph.num_nodes(); }
  int64_t num_features() const { return features.defined() ? features.shape()[1] : 0; }
  int64_t bytes() const;
  // Hash of everything above except the names of the set and its vertices, and the notes. Kinds and held-out edges
  // count only where there are any.
  uint64_t fingerprint() const;
};

// Throws UserError naming `where` when parts do not fit together: sizes, label and split ranges, overlapping splits,
// non-finite features, edges that do not lead where their relation says.
void validate(const Dataset& dataset, const std::string& where);

}  // namespace nacre
