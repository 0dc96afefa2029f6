// Tells how large a data set is from the headers of its files or from the recipe of a twin. Nothing
// large is read or allocated.
#pragma once

#include <optional>
#include <string>

#include "nacre/data/dataset.h"
#include "nacre/data/load.h"
#include "nacre/graph/costs.h"

namespace nacre {

struct DataSizes {
  GraphCounts graph;  // sizes of the graph as it will be loaded
  int edge_types = 1;
  // The number of features of a node; 0 if nodes have none, or if each kind of nodes has its own
  // number.
  int64_t features = 0;
  int64_t classes = 0;  // number of classes; 0 if it is known only after reading
  bool multilabel = false;
  bool heterogeneous = false;
  bool users_and_items = false;  // pairs of users and items, for a recommender
  int64_t feature_bytes = 0;
  int64_t label_bytes = 0;  // bytes of labels, targets, splits and names

  // Bytes of files that stay mapped; the system may drop their pages and read them again.
  int64_t mapped = 0;
  int64_t held = 0;     // bytes of memory after loading
  int64_t reading = 0;  // most bytes at any moment while loading, including pages of mapped files
  bool exact = true;    // false if sizes are guessed from the first lines of a text or are bounds
  // False if only the bytes of the files are known; `graph` is empty then.
  bool counted = true;
};

// Returns the sizes of the data set `spec`, or nothing if the data do not exist or have no known
// layout.
std::optional<DataSizes> data_sizes(const std::string& spec, const LoadOptions& options);

// Returns the sizes of a data set that has been loaded.
DataSizes data_sizes(const Dataset& dataset);

}  // namespace nacre
