// The entries in the journal of a streaming conversion, which say how far an earlier process came.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nacre/data/convert/merge.h"
#include "nacre/data/external_sort.h"
#include "nacre/data/native_layout.h"

namespace nacre {

// How far the source has been read, and what was seen up to there. A sorted run ends when memory is
// full, which may be in the middle of a block.
struct Progressed {
  int64_t block = 0;     // number of blocks of the source that were read completely
  int64_t consumed = 0;  // number of edges read of the next block
  int64_t edges = 0;
  int64_t largest_id = -1;
  int64_t largest_type = -1;
};

// What an earlier process has finished, according to its journal.
struct Earlier {
  std::vector<std::pair<SortedRun, Progressed>> runs;
  std::vector<native::SectionEntry> graph;
  std::vector<native::SectionEntry> features;  // sections that are complete
  bool graph_done = false;
  Progressed source;  // how far the source was read when the graph was finished
  MergeResult merged;
  int64_t feature_rows = 0;  // number of finished rows of the first section that is not complete
  uint64_t feature_checksum = 0;
};
Earlier read_earlier(const std::vector<std::string>& entries);

// Each of these functions returns one entry of the journal. read_earlier() reads them.
std::string run_entry(const SortedRun& run, const Progressed& at);
std::string section_entry(const native::SectionEntry& section);
std::string graph_entry(const MergeResult& merged, const Progressed& at);
std::string rows_entry(int64_t rows, uint64_t checksum);

}  // namespace nacre
