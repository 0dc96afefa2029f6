#include "nacre/data/reordered.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "nacre/base/parallel.h"
#include "nacre/graph/reorder.h"

namespace nacre {
namespace {

Array<NodeId> renamed(const Array<NodeId>& ids, const Array<NodeId>& new_id) {
  std::vector<NodeId> out(ids.begin(), ids.end());
  for (NodeId& v : out) v = new_id[v];
  return out;
}

HeldOutEdges renamed(const HeldOutEdges& edges, const Array<NodeId>& new_id) {
  return {renamed(edges.src, new_id), renamed(edges.dst, new_id), edges.type};
}

template <class T>
Array<T> moved(const Array<T>& values, const Array<NodeId>& order) {
  if (values.empty()) return {};
  std::vector<T> out;
  out.reserve(order.size());
  for (const NodeId v : order) out.push_back(values[v]);
  return out;
}

// Returns the rows of `from` in the new order. They belong to consecutive vertices, of which
// `begin` is the first, and the order keeps these vertices together.
Tensor moved_rows(const Tensor& from, const Array<NodeId>& order, int64_t begin = 0) {
  if (!from.defined() || from.shape()[0] == 0) return from;
  Tensor to(from.dtype(), from.shape());
  const int64_t rows = from.shape()[0];
  const int64_t bytes = from.bytes() / rows;
  const auto* source = static_cast<const uint8_t*>(from.raw());
  auto* target = static_cast<uint8_t*>(to.raw());
  parallel_for(rows, 1 << 12, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      std::memcpy(target + i * bytes, source + (order[begin + i] - begin) * bytes, static_cast<size_t>(bytes));
  });
  return to;
}

}  // namespace

Array<NodeId> by_kind(const Array<NodeId>& order, const std::vector<int64_t>& offsets) {
  if (offsets.size() < 3) return order;
  const auto kind = [&](NodeId v) {
    return std::upper_bound(offsets.begin(), offsets.end(), static_cast<int64_t>(v)) - offsets.begin();
  };
  std::vector<NodeId> result(order.begin(), order.end());
  std::stable_sort(result.begin(), result.end(), [&](NodeId a, NodeId b) { return kind(a) < kind(b); });
  return result;
}

void reorder_all_but_features(Dataset& data, const Array<NodeId>& order) {
  const Array<NodeId> new_id = inverse_order(order);
  data.graph = permuted(data.graph, order, new_id);
  data.labels = moved(data.labels, order);
  data.targets = moved_rows(data.targets, order);
  data.splits = {renamed(data.splits.train, new_id), renamed(data.splits.val, new_id),
                 renamed(data.splits.test, new_id)};
  data.val_edges = renamed(data.val_edges, new_id);
  data.test_edges = renamed(data.test_edges, new_id);
}

void reorder_features(Dataset& data, const Array<NodeId>& order) {
  data.features = moved_rows(data.features, order);
  for (size_t k = 0; k < data.type_features.size(); ++k)
    data.type_features[k] = moved_rows(data.type_features[k], order, data.node_offsets[k]);
}

Dataset reordered(const Dataset& data, const Array<NodeId>& order) {
  Dataset out = data;
  reorder_all_but_features(out, order);
  if (!data.node_names.empty()) {
    for (int64_t i = 0; i < order.size(); ++i) out.node_names[i] = data.node_names[order[i]];
  } else if (!data.original_ids.empty()) {
    out.original_ids = moved(data.original_ids, order);
  } else {
    // The original id of a vertex is its number within its kind.
    std::vector<int64_t> ids(order.begin(), order.end());
    for (size_t k = 1; k < data.node_types.size(); ++k) {
      for (int64_t i = data.node_offsets[k]; i < data.node_offsets[k + 1]; ++i) ids[i] -= data.node_offsets[k];
    }
    out.original_ids = std::move(ids);
  }
  return out;
}

}  // namespace nacre
