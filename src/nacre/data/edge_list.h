// Reads edge lists as text (SNAP, CSV), plain or gzipped: one edge per line, source, destination
// and optionally a weight. If the first line has names (src, dst, weight, type in any order, or
// common synonyms), they say what the columns are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/load.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

// Reads edges, weights and types only. The caller sets num_nodes.
class EdgeSource;
EdgeList read_edges(EdgeSource& source, std::vector<std::string>& notes);

// Reads a data set of a graph only. Ids are kept as they are, so num_nodes is the largest id + 1
// unless the options give more.
Dataset read_edge_list(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options);

}  // namespace nacre
