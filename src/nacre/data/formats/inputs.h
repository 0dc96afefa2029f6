// Edges and features that are still in their files. A data set reads them into memory; a conversion
// passes them on block by block, whatever their size.
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

// Edges with ids within their kinds. Only sources and destinations are used.
struct EdgeInput {
  std::string where;  // the file, and the array in it
  std::function<std::unique_ptr<EdgeSource>()> open;
  int64_t at_most = 0;     // the most edges that a file of this size can hold
  int64_t stated = -1;     // the number of edges that the set claims to have, or -1
  bool both_ways = false;  // each edge is stored once, but its reverse belongs to the set too
};
EdgeInput text_edges(const std::shared_ptr<const MappedFile>& file);
EdgeInput npy_edges(const std::shared_ptr<const MappedFile>& file, PairLayout layout);
EdgeInput npz_edges(const NpzFile& npz, const std::string& key, PairLayout layout);
// The largest source and the largest destination, and the first edges that name them; -1 if there
// are no edges.
struct LargestEnds {
  int64_t src = -1;
  int64_t src_edge = -1;
  int64_t dst = -1;
  int64_t dst_edge = -1;
};
LargestEnds largest_ends(const EdgeInput& edges);  // reads all edges

struct FeatureInput {
  std::string where;
  int64_t rows = -1;    // -1 if known only after reading
  int64_t columns = 0;  // 0 if known only after reading
  int64_t memory = 0;   // bytes that read() takes; 0 if the features stay in their file
  std::function<Tensor()> read;
  // Returns the rows of all vertices in order. If this function is empty, only read() can give the
  // features.
  std::function<native::RowSource(int64_t vertices)> stream;
};
FeatureInput npy_features(const std::shared_ptr<const MappedFile>& file);
FeatureInput npz_features(const NpzFile& npz, const std::string& key);
FeatureInput text_features(const std::shared_ptr<const MappedFile>& file);
// Returns the features of a file without a header, which holds f32 rows of this width.
FeatureInput raw_features(const std::shared_ptr<const MappedFile>& file, int64_t width);

}  // namespace nacre
