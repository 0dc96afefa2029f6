// How large a data set is, told from the headers of its files or from a twin's recipe: nothing large is read or
// allocated.
#pragma once

#include <optional>
#include <string>

#include "nacre/data/dataset.h"
#include "nacre/data/load.h"
#include "nacre/graph/costs.h"

namespace nacre {

struct DataSizes {
  GraphCounts graph;  // as it will be loaded
  int edge_types = 1;
  int64_t features = 0;  // per node; 0 where there are none or kinds of nodes have their own
  int64_t classes = 0;   // 0 where only the data tell
  bool multilabel = false;
  bool heterogeneous = false;
  int64_t feature_bytes = 0;
  int64_t label_bytes = 0;  // labels, targets, splits, names

  int64_t mapped = 0;   // bytes of files that stay mapped; the system may drop their pages and read them again
  int64_t held = 0;     // bytes of memory once it is loaded
  int64_t reading = 0;  // the most memory at any moment while it is loaded; pages of mapped files included
  bool exact = true;    // false: counted from the first lines of a text, or by a bound
};

// Nothing where the layout tells only while it is read, or the source is not there.
std::optional<DataSizes> data_sizes(const std::string& spec, const LoadOptions& options);

// The same of a data set that has been loaded.
DataSizes data_sizes(const Dataset& dataset);

}  // namespace nacre
