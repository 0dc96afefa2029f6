// What a partition reveals about the data (WG4, WG8): how often values repeat inside a gTask
// (duplicated data), how many distinct ones there are to process together (batched data), how the
// volume changes from what is read to what is written (changing volume), and the gTasks that are
// unlike the rest (outliers).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nacre/gtask/partition.h"

namespace nacre {

// Of one attribute over all gTasks.
struct AttributePattern {
  int64_t unique_total = 0;  // Σ over gTasks of distinct values
  int64_t unique_max = 0;
  double unique_mean = 0;
  double duplication = 1;  // edges / unique_total: how often a value is used per gTask
  // histogram[b]: gTasks with 2^b <= distinct values < 2^(b+1)
  std::vector<int64_t> histogram;
};

enum class Outlier : uint8_t { none, underfill, overfill, frequent };

struct Patterns {
  int64_t tasks = 0;
  int64_t edges = 0;
  AttributePattern edge_id, src_id, dst_id, edge_type, src_degree, dst_degree;
  AttributePattern src_type_pair, dst_type_pair;  // distinct (src, type), (dst, type) pairs
  // rows written (distinct dst) over rows read (distinct src), summed over gTasks
  double volume_change = 1;
  int64_t underfill = 0, overfill = 0, frequent = 0;                    // gTasks of each kind
  int64_t underfill_edges = 0, overfill_edges = 0, frequent_edges = 0;  // their edges
};

struct PatternReport {
  Patterns patterns;
  std::vector<Outlier> outlier;  // of each gTask
};

// Overfill: more than 4 times the mean number of edges where edge-id does not bound it (and at
// least 64). Underfill: fewer distinct values than half of what one of the exact(k) entries allows.
// Frequent: most of its edges have a destination (or, where src-id is restricted, a source) that at
// least 8 other gTasks have too. The first that holds counts.
PatternReport find_patterns(const GTasks& tasks);

// For people: a few lines.
std::string pattern_text(const Patterns& patterns);

}  // namespace nacre
