// The last step of a conversion whose data set is complete, in memory or mapped.
#pragma once

#include <string>

#include "nacre/data/convert/convert.h"
#include "nacre/data/dataset.h"

namespace nacre {

// Adds self loops, reorders the vertices and narrows the features as `options` ask, and writes the
// file. The rows of features are reordered while they are written.
ConvertReport write_converted(Dataset data, const std::string& path, const std::string& conversion,
                              const ConvertOptions& options);

}  // namespace nacre
