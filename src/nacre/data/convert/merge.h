// From sorted edges to the graph sections of a file, range by range, in little memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/data/external_sort.h"
#include "nacre/data/native_writer.h"

namespace nacre {

struct MergeOptions {
  int64_t num_nodes = 0;
  bool merge_duplicates = false;  // keep the first of each (src, dst), those of the source before reversed ones
  bool by_type = false;           // of each (src, dst, type) instead, in the order of types; no loops then
  bool self_loops = false;        // add one where a vertex has none
  uint16_t loop_type = 0;
  bool weighted = false;
  bool typed = false;
  bool count_unused = false;
  int64_t memory = 0;
  std::string weight_file;  // scratch, where there are weights or types
  std::string type_file;
};

struct MergeResult {
  int64_t edges = 0;
  int64_t loops_added = 0;
  int64_t unused = 0;  // vertices without any edge of the source
};

// Writes row_ptr, col_idx and, where asked, edge_weight and edge_type.
template <class Edge>
MergeResult merge_to_sections(const ExternalSort<Edge>& sorted, const MergeOptions& options, native::Writer& writer,
                              std::vector<native::SectionEntry>& sections);

}  // namespace nacre
