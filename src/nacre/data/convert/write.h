// The last step of a conversion whose data set is there, in memory or mapped.
#pragma once

#include <string>

#include "nacre/data/convert/convert.h"
#include "nacre/data/dataset.h"

namespace nacre {

// Adds self loops, reorders and narrows as asked, and writes. The rows of features are moved on their way to the file.
ConvertReport write_converted(Dataset data, const std::string& path, const std::string& conversion,
                              const ConvertOptions& options);

// A copy whose vertex i is vertex order[i] of `data`, all but the features; kinds stay together if `order` keeps them
// so. original_ids or node_names tell what the vertices were called.
Dataset reordered(const Dataset& data, const Array<NodeId>& order);

}  // namespace nacre
