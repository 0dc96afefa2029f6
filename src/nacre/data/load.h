// The entry point of this room: opens whatever data set the user named.
#pragma once

#include <cstdint>
#include <string>

#include "nacre/data/dataset.h"

namespace nacre {

struct LoadOptions {
  // NAME or NAME:VARIANT of formats/format.h. If empty, the format is recognised from the
  // content.
  std::string format;
  // The next three members name optional files, for an edge list or for parts that another data set
  // lacks. An empty name means that there is no such file. Text may be gzipped.
  //
  // Features: .npy, .npz (key x, or its only array) or CSV with one row per node; or one of the
  // words learned, degree and onehot (made_features.h), which replace the features of the set.
  std::string features_file;
  // Labels: .npy, .npz (key y, or its only array) or text with one class per line, 0/1 columns, or
  // lines of node and class.
  std::string labels_file;
  // Splits: .npz with train_idx, val_idx and test_idx, or text with train, val, test or none in
  // each line.
  std::string splits_file;
  int64_t num_nodes = 0;             // edge lists only; 0 means the largest id + 1
  bool undirected = false;           // add the reverse of every edge
  bool ignore_edge_weights = false;  // read the graph as if its edges had no weights
  // Draw these splits instead of using those of the set (split.h). Empty means do not draw.
  std::string split;
  uint64_t split_seed = 0;
  bool split_needed = true;  // false means that a set without labels gets no split
  bool verify = true;        // .nacre files: check every checksum, which reads the whole file
  // The seed from which twins are generated.
  uint64_t seed = 0;
};

// Loads a data set. `spec` is a file, a folder or `twin:NAME[@scale]`. Errors are UserErrors that
// name the file, and the offset or line if known.
Dataset load_dataset(const std::string& spec, const LoadOptions& options);

// Returns `data` after applying the options that do not say how its files are read: node files,
// splits, reversed edges, features that are made. `spec` names the data set in messages.
Dataset complete_dataset(Dataset data, const std::string& spec, const LoadOptions& options);

}  // namespace nacre
