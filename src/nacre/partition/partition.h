// Cuts a graph into parts, one for each device, with few edges between them. The parts may have
// unequal shares of the work, because devices may be unequal (νGNN, section 4.3).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/graph/costs.h"
#include "nacre/graph/graph.h"

namespace nacre {

enum class PartitionMethod : uint8_t {
  metis,   // multilevel: clusters, METIS on the graph of clusters, refinement (multilevel.h)
  fennel,  // streaming: memory for the vertices only, edges are read in order (fennel.h)
  range,   // consecutive vertices
  random,  // vertices in a random order
};
std::string_view partition_method_name(PartitionMethod method);
std::vector<std::string> partition_method_names();
// Returns the method of that name. If there is none, throws UserError, which names the option
// `option`.
PartitionMethod parse_partition_method(const std::string& name, const std::string& option = "--method");

struct PartitionOptions {
  PartitionMethod method = PartitionMethod::metis;
  // The work of a vertex is row_work + edge_work × the number of its in-edges. The work of a row is
  // that of a dense product, and the work of an edge is that of reading one row. The default is an
  // estimate for 256 columns, not a measurement.
  double row_work = 10;
  double edge_work = 1;
  double imbalance = 0.03;  // largest distance of a part's work from its target, over the target
  int passes = 4;           // fennel: how often the edges are read
  uint64_t seed = 0;
  // If true, results of metis and fennel are kept in the cache folder and taken from there.
  bool use_cache = true;
};

// This is the largest number of parts. It is limited because parts are 16-bit numbers inside, and
// tables of parts × parts are kept.
constexpr int kMostParts = 1024;

struct Partition {
  int num_parts = 0;
  Array<int32_t> part;  // part of each vertex
  bool cached = false;  // whether it was taken from the cache
};

// Returns a part for every vertex of a whole graph. Part p gets about shares[p] / sum of shares of
// the work; a part of share 0 gets nothing. Equal arguments give equal results on any number of
// threads. Throws UserError if the shares are unusable, or if the method cannot hold the graph.
Partition partition_graph(const Graph& graph, std::span<const double> shares, const PartitionOptions& options);

// Returns the partition `before` of the graph, changed for new shares with as few moves of vertices
// as possible. So the parts stay alike, and times that were measured on them still hold. Cuts the
// graph anew, as partition_graph() does, if a part would become empty or was empty, or if the
// method is neither metis nor fennel. Takes no more memory than a new cut.
Partition repartition_graph(const Graph& graph, const Partition& before, std::span<const double> shares,
                            const PartitionOptions& options);

// Throws UserError if shares or options are unusable.
void check_partition_options(std::span<const double> shares, const PartitionOptions& options);

// Returns the most bytes that partition_graph() holds at any moment beside the graph. `symmetric`
// says whether every edge has its reverse.
int64_t partition_bytes(const GraphCounts& graph, int parts, const PartitionOptions& options, bool symmetric);

}  // namespace nacre
