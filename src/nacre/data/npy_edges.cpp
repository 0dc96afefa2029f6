#include "nacre/data/npy_edges.h"

#include <algorithm>
#include <cmath>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/data/node_data.h"

namespace nacre {
namespace {

void require_per_edge(const NpyReader& array, size_t edges) {
  if (array.header().count == static_cast<int64_t>(edges)) return;
  throw UserError(array.where_header(),
                  "has shape " + shape_text(array.shape()) + ", but there are " +
                      human_count(static_cast<int64_t>(edges)) + " edges",
                  "store one value per edge");
}

}  // namespace

NodeId to_node_id(int64_t value, int64_t position, const std::string& where) {
  if (value >= 0 && value <= kMaxNodeId) return static_cast<NodeId>(value);
  throw UserError(where, "node id " + std::to_string(value) + " at position " + std::to_string(position) +
                             (value < 0 ? " is negative" : " is beyond the largest possible, 4,294,967,294"));
}

// Reads the elements in storage order. Depending on the layout, all sources come first, or sources
// and destinations come in turn.
EdgeList pairs_from(NpyReader array, PairLayout layout, std::vector<std::string>& notes) {
  EdgeList edges;
  const Shape& shape = array.shape();
  const bool can_be_rows = shape.size() == 2 && shape[0] == 2 && layout != PairLayout::two_columns;
  const bool can_be_columns = shape.size() == 2 && shape[1] == 2 && layout != PairLayout::two_rows;
  if (!can_be_rows && !can_be_columns) {
    const char* expected = layout == PairLayout::two_columns ? "; [E, 2] is expected" : "; [2, E] is expected";
    throw UserError(array.where_header(), "has shape " + shape_text(shape) + expected, "transpose or split it");
  }
  const bool rows = can_be_rows;
  if (!rows && layout == PairLayout::guess)
    notes.emplace_back("edge_index has shape [E, 2]: read as one (source, destination) pair per row");
  const int64_t count = array.header().count / 2;
  const bool in_turn = rows == array.header().fortran;
  edges.src.resize(count);
  edges.dst.resize(count);
  array.stream_i64(NanAs::error, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t at = first + static_cast<int64_t>(i);
      const NodeId id = to_node_id(values[i], at, array.where());
      if (in_turn) {
        (at % 2 == 0 ? edges.src : edges.dst)[at / 2] = id;
      } else {
        (at < count ? edges.src : edges.dst)[at < count ? at : at - count] = id;
      }
    }
  });
  return edges;
}

std::vector<NodeId> node_ids_from(NpyReader array) {
  if (array.shape().size() != 1) {
    throw UserError(array.where_header(), "has shape " + shape_text(array.shape()) + "; [E] is expected");
  }
  std::vector<NodeId> ids(array.header().count);
  array.stream_i64(NanAs::error, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) ids[first + i] = to_node_id(values[i], first + i, array.where());
  });
  return ids;
}

void edge_weight_from(NpyReader array, EdgeList& edges) {
  require_per_edge(array, edges.src.size());
  edges.weight.resize(edges.src.size());
  array.stream_f32([&](int64_t first, std::span<const float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) {
        throw UserError(array.where(), "the weight at position " + std::to_string(first + i) + " is not finite");
      }
      edges.weight[first + i] = values[i];
    }
  });
}

void edge_type_from(NpyReader array, EdgeList& edges) {
  require_per_edge(array, edges.src.size());
  edges.type.resize(edges.src.size());
  array.stream_i64(NanAs::error, [&](int64_t first, std::span<const int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] >= kMaxEdgeTypes) {
        throw UserError(array.where(), "edge type " + std::to_string(values[i]) + " at position " +
                                           std::to_string(first + i) + " is not within 0 to 65,534");
      }
      edges.type[first + i] = static_cast<uint16_t>(values[i]);
      edges.num_types = std::max(edges.num_types, static_cast<int>(values[i]) + 1);
    }
  });
}

}  // namespace nacre
