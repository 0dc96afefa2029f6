// Presents the edges of a data set of several files and kinds as one source. Vertex ids are those
// that all kinds share, and edge types are the numbers of the relations.
#pragma once

#include <memory>

#include "nacre/data/convert/edge_source.h"
#include "nacre/data/formats/builder.h"

namespace nacre {

// Returns the edges of all inputs of `set` as one source. `set` must outlive the source.
std::unique_ptr<EdgeSource> fuse_edges(const DatasetBuilder& set);

}  // namespace nacre
