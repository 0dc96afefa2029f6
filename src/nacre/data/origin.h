// Where a part of a data set was read from, so that a message about wrong data can name the place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nacre {

struct Origin {
  std::string file;                // the file and the array in it, "set.npz[x]"; empty if unknown
  std::string unit = "row";        // what a position in the file is called: row, entry, line, byte
  std::vector<int64_t> positions;  // position of each item; empty if items count from 0
  bool by_vertex = false;          // for splits: one item per vertex, as in masks
  int64_t first = 0;               // vertex of item 0, if there is one item per vertex of a kind

  bool known() const { return !file.empty(); }
  // Returns "x.npy row 4".
  std::string at(int64_t item) const {
    const int64_t own = item - first;
    const bool listed = own >= 0 && own < static_cast<int64_t>(positions.size());
    return file + " " + unit + " " + std::to_string(listed ? positions[own] : own);
  }
};

struct Origins {
  Origin graph;
  Origin features;
  Origin labels;  // origin of the labels or targets
  Origin train;
  Origin val;
  Origin test;
  std::vector<Origin> type_features;
};

}  // namespace nacre
