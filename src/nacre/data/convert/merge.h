// Turns sorted edges into the graph sections of a file, range by range, in little memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/external_sort.h"
#include "nacre/data/native_writer.h"

namespace nacre {

struct MergeOptions {
  int64_t num_nodes = 0;
  // Keep the first edge of each (src, dst). Edges of the source come before reversed ones.
  bool merge_duplicates = false;
  // If duplicates are merged, keep the first edge of each (src, dst, type), in the order of types,
  // instead of the first of each (src, dst). Must not be combined with self_loops.
  bool by_type = false;
  bool self_loops = false;  // add a loop to every vertex that has none
  uint16_t loop_type = 0;
  bool weighted = false;
  bool typed = false;
  bool count_unused = false;
  int64_t memory = 0;
  std::string weight_file;  // scratch files for weights and types, if edges have them
  std::string type_file;
};

struct MergeResult {
  int64_t edges = 0;
  int64_t loops_added = 0;
  int64_t unused = 0;  // number of vertices without any edge in the source
};

// Writes the sections row_ptr, col_idx and, if asked for, edge_weight and edge_type.
template <class Edge>
MergeResult merge_to_sections(const ExternalSort<Edge>& sorted, const MergeOptions& options, native::Writer& writer,
                              std::vector<native::SectionEntry>& sections);

}  // namespace nacre
