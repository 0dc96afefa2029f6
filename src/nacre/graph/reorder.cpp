#include "nacre/graph/reorder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

// Returns the number of edges at each vertex, in both directions.
std::vector<int64_t> degrees(const Graph& graph) {
  std::vector<int64_t> degree(graph.num_nodes());
  for (int64_t v = 0; v < graph.num_nodes(); ++v) degree[v] = graph.in_degree(v);
  for (const NodeId source : graph.col_idx()) ++degree[source];
  return degree;
}

std::vector<NodeId> by_degree(const std::vector<int64_t>& degree, bool descending) {
  std::vector<NodeId> order(degree.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<NodeId>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](NodeId a, NodeId b) { return descending ? degree[a] > degree[b] : degree[a] < degree[b]; });
  return order;
}

// Finds the order of Cuthill and McKee by breadth-first search over edges in both directions.
class CuthillMcKee {
 public:
  explicit CuthillMcKee(const Graph& graph)
      : graph_(graph), out_(graph.out()), degree_(degrees(graph)), seen_(degree_.size(), 0) {}

  std::vector<NodeId> run() {
    std::vector<NodeId> order;
    order.reserve(degree_.size());
    for (const NodeId v : by_degree(degree_, false)) {
      if (placed(v)) continue;
      const NodeId start = peripheral(v);
      ++stamp_;
      visit(start, order, true);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  static constexpr uint32_t kPlaced = 0xFFFFFFFF;

  bool placed(NodeId v) const { return seen_[v] == kPlaced; }

  // Appends the vertices reached from `start`, nearest first. Returns where the last level begins
  // and how many levels there are.
  struct Levels {
    size_t last_begin = 0;
    int64_t count = 0;
  };
  Levels visit(NodeId start, std::vector<NodeId>& order, bool place) {
    const uint32_t mark = place ? kPlaced : stamp_;
    Levels levels{order.size(), 1};
    order.push_back(start);
    seen_[start] = mark;
    size_t level_end = order.size();
    for (size_t at = levels.last_begin; at < order.size(); ++at) {
      if (at == level_end) {
        levels.last_begin = at;
        level_end = order.size();
        ++levels.count;
      }
      append_neighbours(order[at], mark, order);
    }
    return levels;
  }

  void append_neighbours(NodeId v, uint32_t mark, std::vector<NodeId>& order) {
    const size_t begin = order.size();
    const auto take = [&](NodeId u) {
      if (seen_[u] == mark || seen_[u] == kPlaced) return;
      seen_[u] = mark;
      order.push_back(u);
    };
    for (int64_t i = graph_.row_ptr()[v]; i < graph_.row_ptr()[v + 1]; ++i) take(graph_.col_idx()[i]);
    for (int64_t i = out_.row_ptr[v]; i < out_.row_ptr[v + 1]; ++i) take(out_.dst[i]);
    std::sort(order.begin() + static_cast<int64_t>(begin), order.end(),
              [&](NodeId a, NodeId b) { return std::pair(degree_[a], a) < std::pair(degree_[b], b); });
  }

  // Returns a vertex far from the others of its component. Starting at `v`, moves to a vertex of
  // least degree among the farthest, as long as that makes the search deeper.
  NodeId peripheral(NodeId v) {
    constexpr int most_tries = 5;
    int64_t depth = 0;
    for (int i = 0; i < most_tries; ++i) {
      reached_.clear();
      ++stamp_;
      const Levels levels = visit(v, reached_, false);
      if (levels.count <= depth) break;
      depth = levels.count;
      const auto last = reached_.begin() + static_cast<int64_t>(levels.last_begin);
      v = *std::min_element(last, reached_.end(),
                            [&](NodeId a, NodeId b) { return std::pair(degree_[a], a) < std::pair(degree_[b], b); });
    }
    return v;
  }

  const Graph& graph_;
  const OutCsc& out_;
  std::vector<int64_t> degree_;
  std::vector<uint32_t> seen_;  // number of the search that reached a vertex last, or kPlaced
  uint32_t stamp_ = 0;
  std::vector<NodeId> reached_;
};

}  // namespace

std::string_view reorder_name(Reorder how) {
  constexpr std::string_view names[] = {"none", "degree", "rcm", "rabbit"};
  return names[static_cast<size_t>(how)];
}

Reorder parse_reorder(std::string_view name) {
  for (const Reorder how : {Reorder::none, Reorder::degree, Reorder::rcm, Reorder::rabbit}) {
    if (name == reorder_name(how)) return how;
  }
  throw UserError("--reorder", "unknown order '" + std::string(name) + "'", "choose degree, rcm, rabbit or none");
}

Array<NodeId> degree_order(const Graph& graph) { return by_degree(degrees(graph), true); }

Array<NodeId> rcm_order(const Graph& graph) { return CuthillMcKee(graph).run(); }

Array<NodeId> vertex_order(const Graph& graph, Reorder how) {
  NACRE_CHECK(graph.num_src() == graph.num_dst(), "only whole graphs are reordered");
  switch (how) {
    case Reorder::degree:
      return degree_order(graph);
    case Reorder::rcm:
      return rcm_order(graph);
    case Reorder::rabbit:
      return rabbit_order(graph);
    case Reorder::none:
      break;
  }
  std::vector<NodeId> same(graph.num_nodes());
  for (size_t i = 0; i < same.size(); ++i) same[i] = static_cast<NodeId>(i);
  return same;
}

Array<NodeId> inverse_order(const Array<NodeId>& order) {
  Buffer<NodeId> new_id(order.size());
  parallel_for(order.size(), 1 << 18, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) new_id[order[i]] = static_cast<NodeId>(i);
  });
  return std::move(new_id).freeze();
}

Graph permuted(const Graph& graph, const Array<NodeId>& order, const Array<NodeId>& new_id) {
  const int64_t nodes = graph.num_nodes();
  Buffer<int64_t> row_ptr(nodes + 1);
  row_ptr[0] = 0;
  for (int64_t i = 0; i < nodes; ++i) row_ptr[i + 1] = row_ptr[i] + graph.in_degree(order[i]);
  Buffer<NodeId> col(graph.num_edges());
  Buffer<float> weight(graph.weighted() ? graph.num_edges() : 0);
  Buffer<uint16_t> type(graph.typed() ? graph.num_edges() : 0);
  parallel_for(nodes, 1 << 12, [&](int64_t b, int64_t e) {
    // Holds the new number of the source and the old position of each edge of a row. Sorting by
    // both keeps the order of parallel edges.
    std::vector<std::pair<NodeId, int64_t>> row;
    for (int64_t i = b; i < e; ++i) {
      const int64_t from = graph.row_ptr()[order[i]];
      const int64_t to = graph.row_ptr()[order[i] + int64_t{1}];
      row.clear();
      for (int64_t k = from; k < to; ++k) row.emplace_back(new_id[graph.col_idx()[k]], k);
      std::sort(row.begin(), row.end());
      for (size_t k = 0; k < row.size(); ++k) {
        const int64_t at = row_ptr[i] + static_cast<int64_t>(k);
        col[at] = row[k].first;
        if (graph.weighted()) weight[at] = graph.edge_weight()[row[k].second];
        if (graph.typed()) type[at] = graph.edge_type()[row[k].second];
      }
    }
  });
  GraphArrays arrays;
  arrays.num_src = arrays.num_dst = nodes;
  arrays.row_ptr = std::move(row_ptr).freeze();
  arrays.col_idx = std::move(col).freeze();
  if (graph.weighted()) arrays.edge_weight = std::move(weight).freeze();
  if (graph.typed()) arrays.edge_type = std::move(type).freeze();
  arrays.num_edge_types = graph.num_edge_types();
  return {std::move(arrays), "reordered graph"};
}

int64_t reorder_bytes(const Graph& graph, Reorder how) {
  return reorder_bytes({graph.num_nodes(), graph.num_edges(), graph.weighted(), graph.typed()}, how);
}

int64_t reorder_bytes(const GraphCounts& graph, Reorder how) {
  if (how == Reorder::none) return 0;
  const int64_t nodes = graph.nodes;
  const int64_t applying = graph.bytes() + nodes * 8;
  int64_t finding = nodes * 16;
  if (how != Reorder::degree) finding += out_bytes(graph) + nodes * 16;
  // Rabbit order also holds both ends of every edge while the edges move up the tree of
  // communities.
  if (how == Reorder::rabbit) finding += graph.edges * 16 + nodes * 32;
  return graph.bytes() + std::max(applying, finding);
}

}  // namespace nacre
