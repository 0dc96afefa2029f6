// Implements Fennel (Tsourakakis, Gkantsidis, Radunovic, Vojnovic: WSDM 2014) with work and shares:
// vertices come one after the other and choose the part with most of their neighbours, less a price
// for the work that the part already has. Further passes choose again and know all neighbours
// (Nishimura, Ugander: KDD 2013). Edges are read in order from the graph, which may be a mapped
// file, and memory is needed for the vertices only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nacre/partition/partition.h"

namespace nacre {

// Returns a part for every vertex. There must be at least two shares, all of them positive.
std::vector<uint16_t> fennel_parts(const Graph& graph, std::span<const double> shares, const PartitionOptions& options);
int64_t fennel_bytes(const GraphCounts& graph, int parts);

}  // namespace nacre
