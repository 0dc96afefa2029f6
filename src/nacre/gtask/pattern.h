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

// Describes the pattern of one attribute over all gTasks.
struct AttributePattern {
  int64_t unique_total = 0;  // Σ over gTasks of the number of distinct values
  int64_t unique_max = 0;
  double unique_mean = 0;
  double duplication = 1;  // edges / unique_total: how often a gTask uses the same value
  // histogram[b] counts the gTasks with 2^b <= distinct values < 2^(b+1).
  std::vector<int64_t> histogram;
};

enum class Outlier : uint8_t { none, underfill, overfill, frequent };

struct Patterns {
  int64_t tasks = 0;
  int64_t edges = 0;
  AttributePattern edge_id, src_id, dst_id, edge_type, src_degree, dst_degree;
  AttributePattern src_type_pair, dst_type_pair;  // distinct (src, type) and (dst, type) pairs
  // Rows written (distinct dst) over rows read (distinct src), both summed over gTasks.
  double volume_change = 1;
  // The number of gTasks of each kind of outlier, and the number of their edges.
  int64_t underfill = 0, overfill = 0, frequent = 0;
  int64_t underfill_edges = 0, overfill_edges = 0, frequent_edges = 0;
};

struct PatternReport {
  Patterns patterns;
  std::vector<Outlier> outlier;  // kind of each gTask
};

// Finds the patterns and the outliers. Overfill: a gTask has more than 4 times the mean number of
// edges (and at least 64), and edge-id does not bound it. Underfill: it has fewer distinct values
// than half of what one of the exact(k) entries allows. Frequent: most of its edges have a
// destination (or, if src-id is restricted, a source) that at least 8 other gTasks have too. A
// gTask of several of these kinds counts as the one that comes first in this list.
PatternReport find_patterns(const GTasks& tasks);

// Returns a description of a few lines for people.
std::string pattern_text(const Patterns& patterns);

}  // namespace nacre
