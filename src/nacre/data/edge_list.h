// Edge lists as text (SNAP, CSV), plain or gzipped: one edge per line, source then destination, optionally a weight.
// A first line of names (src, dst, weight, type in any order; common synonyms are known) says which column is what.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/data/dataset.h"
#include "nacre/data/load.h"
#include "nacre/data/mapped_file.h"

namespace nacre {

// Just the edges, weights and types; num_nodes is left to the caller.
class EdgeSource;
EdgeList read_edges(EdgeSource& source, std::vector<std::string>& notes);

// The graph only; ids are kept as they are, so num_nodes is the largest + 1 unless the options say more.
Dataset read_edge_list(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options);

}  // namespace nacre
