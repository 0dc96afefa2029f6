// Where a part of a data set was read from, so that whoever finds it wrong can say where.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nacre {

struct Origin {
  std::string file;                // with the array in it, "set.npz[x]"; empty: not known
  std::string unit = "row";        // what a place in the file is called: row, entry, line, byte
  std::vector<int64_t> positions;  // of each item; empty: they count on from 0
  bool by_vertex = false;          // of a split: one item per vertex, as masks have it
  int64_t first = 0;               // the vertex that item 0 is of, where there is one per vertex of a kind

  bool known() const { return !file.empty(); }
  // "x.npy row 4"
  std::string at(int64_t item) const {
    const int64_t own = item - first;
    const bool listed = own >= 0 && own < static_cast<int64_t>(positions.size());
    return file + " " + unit + " " + std::to_string(listed ? positions[static_cast<size_t>(own)] : own);
  }
};

struct Origins {
  Origin graph;
  Origin features;
  Origin labels;  // or targets
  Origin train;
  Origin val;
  Origin test;
  std::vector<Origin> type_features;
};

}  // namespace nacre
