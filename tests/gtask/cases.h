// Tables and edge values that the tests of this room use.
#pragma once

#include <string>
#include <vector>

#include "nacre/gtask/partition.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::test {

struct Entry {
  Location location;
  Attribute attribute;
};

inline constexpr Entry kEntries[] = {{Location::src, Attribute::id},  {Location::src, Attribute::degree},
                                     {Location::dst, Attribute::id},  {Location::dst, Attribute::degree},
                                     {Location::edge, Attribute::id}, {Location::edge, Attribute::type}};

inline const std::vector<std::string>& named_tables() {
  static const std::vector<std::string> tables = {
      "",
      "dst-id=1",
      "src-id=1",
      "edge-id=1",
      "edge-id=7",
      "dst-id=1,edge-id=3",
      "dst-id=4,edge-id=5",
      "dst-id=3",
      "src-id=3",
      "src-id=3,dst-id=3",
      "src-id=2,dst-id=5",
      "src-id=1,dst-id=1",
      "src-id=1,dst-id=4",
      "src-id=1000,dst-id=1000",
      "dst-id=1,edge-type=1",
      "src-id=4,edge-type=1",
      "dst-id=4,edge-type=2",
      "edge-type=1,edge-id=4",
      "edge-type=1",
      "dst-id=4,dst-degree=min",
      "dst-degree=1",
      "src-degree=1",
      "src-degree=2,dst-degree=2",
      "src-id=3,src-degree=min",
      "src-id=min,dst-id=1",
      "src-id=min,dst-id=4",
      "edge-id=min,dst-id=2",
      "src-degree=min,dst-degree=1,edge-type=min",
      "src-id=9000000000000000000,edge-id=9000000000000000000",
  };
  return tables;
}

// Returns a table in which every entry is free, min or a small k.
inline PartitionTable random_table(Rng& rng) {
  PartitionTable table;
  for (const auto& [location, attribute] : kEntries) {
    const int64_t draw = rng.below(8);
    if (draw == 0) table.set(location, attribute, {Restriction::minimum, 0});
    if (draw == 1 || draw == 2) table.set(location, attribute, {Restriction::exact, 1 + rng.below(6)});
  }
  return table;
}

inline std::vector<PartitionTable> test_tables(uint64_t seed, int random) {
  std::vector<PartitionTable> tables;
  for (const std::string& text : named_tables()) tables.push_back(PartitionTable::parse(text));
  Rng rng(seed);
  for (int i = 0; i < random; ++i) tables.push_back(random_table(rng));
  return tables;
}

// Returns full graphs and blocks.
inline std::vector<GraphCase> test_graphs(uint64_t seed) {
  std::vector<GraphCase> cases = random_graphs(seed, 12);
  for (GraphCase& larger : random_graphs(seed + 1, 40)) cases.push_back({larger.name + "_40", larger.graph});
  for (BlocksCase& blocks : random_blocks(seed, 2, 5)) {
    for (size_t l = 0; l < blocks.layers.size(); ++l) {
      cases.push_back({blocks.name + std::to_string(l), blocks.layers[l]});
    }
  }
  cases.push_back({"empty", Graph()});
  return cases;
}

// Finds the value of an edge the slow way, from the lists of edges.
inline int64_t value_of(const Graph& graph, int64_t edge, const Entry& entry) {
  if (entry.attribute == Attribute::type) return graph.typed() ? graph.edge_type()[edge] : 0;
  if (entry.location == Location::edge) return edge;
  const Array<NodeId>& end = entry.location == Location::src ? graph.col_idx() : graph.edge_dst();
  if (entry.attribute == Attribute::id) return end[edge];
  int64_t degree = 0;
  for (const NodeId v : end) degree += v == end[edge];
  return degree;
}

// Returns values[entry][edge], with entries as in kEntries.
inline std::vector<std::vector<int64_t>> all_values(const Graph& graph) {
  std::vector<std::vector<int64_t>> values;
  for (const Entry& entry : kEntries) {
    values.emplace_back();
    for (int64_t e = 0; e < graph.num_edges(); ++e) values.back().push_back(value_of(graph, e, entry));
  }
  return values;
}

}  // namespace nacre::test
