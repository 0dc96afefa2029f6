// The last step of a conversion whose data set is complete, in memory or mapped.
#pragma once

#include <string>

#include "nacre/data/convert/convert.h"
#include "nacre/data/dataset.h"

namespace nacre {

// Adds self loops, reorders and narrows as asked, and writes the file. The rows of features are
// reordered while they are written.
ConvertReport write_converted(Dataset data, const std::string& path, const std::string& conversion,
                              const ConvertOptions& options);

// Returns a copy of `data` without features whose vertex i is vertex order[i] of `data`. Kinds stay
// together only if `order` keeps them together. original_ids or node_names of the copy say what the
// source called the vertices.
Dataset reordered(const Dataset& data, const Array<NodeId>& order);

}  // namespace nacre
