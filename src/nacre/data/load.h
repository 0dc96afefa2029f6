// The one door into the data room: opens whatever the user named.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

struct LoadOptions {
  // NAME or NAME:VARIANT of formats/registry.cpp; recognised from the content when empty.
  std::string format;
  // Optional files beside an edge list, or for what another data set lacks. Empty = none. Text may be gzipped.
  std::string features_file;  // .npy, .npz (key x, or its only array) or CSV, one row per vertex; or one of the words
                              // learned, degree and onehot (made_features.h), which replace what the set has
  // .npy, .npz (key y, or its only array) or text: one class per line, 0/1 columns, or lines of node and class.
  std::string labels_file;
  std::string splits_file;  // .npz with train_idx/val_idx/test_idx, or text: one of train|val|test|none per line
  int64_t num_nodes = 0;    // edge lists: 0 = largest id + 1
  bool undirected = false;  // add the reverse of every edge
  bool ignore_edge_weights = false;  // read the graph as if its edges had no weights
  // Draw splits instead of those of the set (split.h); empty: do not.
  std::string split;
  uint64_t split_seed = 0;
  bool split_needed = true;  // false: a set without labels is left undivided
  bool verify = true;        // .nacre files: check every checksum, which reads the whole file once
  // For twins only.
  uint64_t seed = 0;
};

// `spec` is a file, a folder or `twin:NAME[@scale]`. Errors are UserErrors naming the file (and the offset or line
// where known).
Dataset load_dataset(const std::string& spec, const LoadOptions& options);

}  // namespace nacre
