// Dataset: everything a training run needs from the outside world, whatever it was read from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/graph/graph.h"
#include "nacre/tensor/tensor.h"

namespace nacre {

struct Splits {
  Array<NodeId> train;
  Array<NodeId> val;
  Array<NodeId> test;
};

struct Dataset {
  std::string name;  // "cora", "twin:arxiv@0.1"
  Graph graph;
  Tensor features;        // f32 [N, F]; undefined when the set has none. May be a mapped file.
  Array<int32_t> labels;  // single-label: [N], -1 = unlabelled. Empty when the set has none or is multi-label.
  Tensor targets;         // multi-label: u8 [N, C] of 0/1; undefined otherwise.
  int64_t num_classes = 0;
  Splits splits;
  std::vector<std::string> notes;  // what was assumed while reading; shown to the user

  bool multilabel() const { return targets.defined(); }
  int64_t num_nodes() const { return graph.num_nodes(); }
  int64_t num_features() const { return features.defined() ? features.shape()[1] : 0; }
  int64_t bytes() const;
  // Hash of everything above except name and notes.
  uint64_t fingerprint() const;
};

// Throws UserError naming `where` when parts do not fit together: sizes, label and split ranges, overlapping splits,
// non-finite features.
void validate(const Dataset& dataset, const std::string& where);

}  // namespace nacre
