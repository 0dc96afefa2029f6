// Edges and features that still lie in their files. A data set reads them into memory; a conversion passes them on
// block by block, whatever their size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nacre/data/convert/edge_source.h"
#include "nacre/data/native_writer.h"
#include "nacre/data/npz.h"

namespace nacre {

// Only sources and destinations count, ids within their kinds.
struct EdgeInput {
  std::string where;  // the file, and the array in it
  std::function<std::unique_ptr<EdgeSource>()> open;
  int64_t at_most = 0;     // edges that such a file can hold
  int64_t stated = -1;     // edges the set says there are; -1: it does not say
  bool both_ways = false;  // each edge is stored once, and its reverse belongs to the set
};
EdgeInput text_edges(const std::shared_ptr<const MappedFile>& file);
EdgeInput npy_edges(const std::shared_ptr<const MappedFile>& file, PairLayout layout);
EdgeInput npz_edges(const NpzFile& npz, const std::string& key, PairLayout layout);
// The largest source and the largest destination, and which edges name them first; -1 without edges.
struct LargestEnds {
  int64_t src = -1;
  int64_t src_edge = -1;
  int64_t dst = -1;
  int64_t dst_edge = -1;
};
LargestEnds largest_ends(const EdgeInput& edges);  // reads all of them

struct FeatureInput {
  std::string where;
  int64_t rows = -1;   // -1: known only when they have been read
  int64_t memory = 0;  // bytes that read() takes; 0: they stay in their file
  std::function<Tensor()> read;
  // One row per vertex; empty: read() is the only way.
  std::function<native::RowSource(int64_t vertices)> stream;
};
FeatureInput npy_features(const std::shared_ptr<const MappedFile>& file);
FeatureInput npz_features(const NpzFile& npz, const std::string& key);
FeatureInput text_features(const std::shared_ptr<const MappedFile>& file);
// f32 rows of this width without a header.
FeatureInput raw_features(const std::shared_ptr<const MappedFile>& file, int64_t width);

}  // namespace nacre
