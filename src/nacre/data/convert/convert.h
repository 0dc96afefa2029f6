// Converts any data set to a .nacre file. Edge lists, arrays of edges and the layouts of large sets
// (OGB, MAG240M, IGB, GraphBolt) stream through an external sort, whatever their size, and an
// interrupted conversion continues where it stopped. All other layouts are read into memory first,
// if that fits the memory allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/load.h"
#include "nacre/data/native_layout.h"
#include "nacre/graph/reorder.h"

namespace nacre {

struct ConvertOptions {
  LoadOptions load;  // format, node files, number of nodes, undirected
  int64_t memory = int64_t{2} << 30;
  bool self_loops = false;
  Reorder reorder = Reorder::none;
  native::Element feature_type = native::Element::f32;
  bool stream = true;  // false means that everything is read into memory first
  // Number of edges that are sorted at once; 0 means as many as memory allows.
  int64_t most_in_run = 0;
  int64_t mark_bytes = int64_t{512} << 20;  // bytes of features between two entries in the journal
};

struct ConvertReport {
  int64_t vertices = 0;
  int64_t edges = 0;
  int64_t runs = 0;  // number of sorted runs in the file of the external sort
  bool streamed = false;
  std::vector<std::string> notes;
};

constexpr int64_t kLeastConvertMemory = int64_t{64} << 20;

ConvertReport convert_dataset(const std::string& source, const std::string& path, const ConvertOptions& options);

}  // namespace nacre
