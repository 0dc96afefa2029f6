// Features of the adjacency matrix of a graph or of a part of one: numbers from which a performance
// model predicts the time of a training step (NU2). A row is a destination, a column is a source,
// and a non-zero is an edge. Parallel edges count as several non-zeros.
//
// All features together take a few parallel passes over the edges. They have the same bits on any
// number of threads. They are finite for every graph; where a quotient has no meaning (no rows, no
// edges), it is 0.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "nacre/graph/graph.h"

namespace nacre {

enum class GraphFeature : uint8_t {
  // Sizes of the matrix.
  rows,
  columns,
  nonzeros,
  density,
  edge_types,
  // Numbers of non-zeros in a row.
  row_mean,
  row_deviation,
  row_variation,
  row_skew,
  row_min,
  row_p10,
  row_median,
  row_p90,
  row_p99,
  row_max,
  row_gini,
  row_empty,
  row_longest,
  row_change,
  // Numbers of non-zeros in a column.
  column_mean,
  column_deviation,
  column_variation,
  column_skew,
  column_min,
  column_p10,
  column_median,
  column_p90,
  column_p99,
  column_max,
  column_gini,
  column_empty,
  column_longest,
  // Where the non-zeros lie in the matrix.
  distance_mean,
  distance_log,
  bandwidth,
  gap_log,
  repeated,
  distinct_64,
  distinct_1024,
  distinct_16384,
  reuse_log,
  // Structure of the graph.
  self_loops,
  duplicates,
  halo_columns,
  halo_nonzeros,
  assortativity,
  count_
};
inline constexpr int kGraphFeatures = static_cast<int>(GraphFeature::count_);

struct GraphFeatureInfo {
  std::string_view name;
  std::string_view about;
  // True if the feature grows with the graph over several orders of magnitude. Models that predict
  // a logarithm read log(1 + feature) then.
  bool by_logarithm = false;
};
const GraphFeatureInfo& graph_feature_info(GraphFeature feature);

struct GraphFeatures {
  std::array<double, kGraphFeatures> value{};
  double& operator[](GraphFeature f) { return value[static_cast<size_t>(f)]; }
  double operator[](GraphFeature f) const { return value[static_cast<size_t>(f)]; }
};

// Returns the features of `graph`. The first `own` sources belong to the part; the others are its
// halo. The function takes four bytes of memory for each source and thread while it runs.
GraphFeatures graph_features(const Graph& graph, int64_t own);

}  // namespace nacre
