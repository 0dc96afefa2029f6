// The edges of a data set of several files and kinds as one source: ids in the space all kinds share, types by
// relation.
#pragma once

#include <memory>

#include "nacre/data/convert/edge_source.h"
#include "nacre/data/formats/builder.h"

namespace nacre {

// `set` must outlive it.
std::unique_ptr<EdgeSource> fuse_edges(const DatasetBuilder& set);

}  // namespace nacre
