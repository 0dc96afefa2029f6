#include "nacre/graph/parts.h"

#include <algorithm>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

constexpr NodeId kOutside = ~NodeId{0};

uint64_t below(uint64_t bound, uint64_t seed, uint64_t counter) {
  const PhiloxBlock random = philox(seed, 0x70617274, counter);
  return ((uint64_t{random[0]} << 32) | random[1]) % bound;
}

// Returns distinct random vertices: the beginning of a random shuffle of all vertices.
std::vector<NodeId> scattered(int64_t vertices, int64_t count, uint64_t seed) {
  std::vector<NodeId> all(vertices);
  std::iota(all.begin(), all.end(), NodeId{0});
  for (int64_t i = 0; i < count; ++i) std::swap(all[i], all[i + static_cast<int64_t>(below(vertices - i, seed, i))]);
  all.resize(count);
  return all;
}

// Returns `count` vertices found by following edges backwards from a random vertex. If nothing more
// can be reached, the search goes on from the next vertex that has not been found.
std::vector<NodeId> ball(const Graph& graph, int64_t count, uint64_t seed) {
  std::vector<char> found(graph.num_nodes(), 0);
  std::vector<NodeId> queue;
  auto start = static_cast<int64_t>(below(graph.num_nodes(), seed, 0));
  const auto visit = [&](NodeId v) {
    if (found[v] != 0 || static_cast<int64_t>(queue.size()) == count) return;
    found[v] = 1;
    queue.push_back(v);
  };
  for (size_t next = 0; static_cast<int64_t>(queue.size()) < count; ++next) {
    while (next == queue.size()) {
      visit(static_cast<NodeId>(start));
      start = (start + 1) % graph.num_nodes();
    }
    const NodeId v = queue[next];
    for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) visit(graph.col_idx()[i]);
  }
  return queue;
}

}  // namespace

std::vector<NodeId> draw_vertices(const Graph& graph, PartShape shape, int64_t count, uint64_t seed) {
  NACRE_CHECK(graph.num_src() == graph.num_dst(), "only whole graphs are cut into parts, not blocks");
  NACRE_CHECK(count >= 0 && count <= graph.num_nodes(), "the graph has fewer vertices than are asked for");
  std::vector<NodeId> vertices;
  if (count == 0) return vertices;
  switch (shape) {
    case PartShape::scattered:
      vertices = scattered(graph.num_nodes(), count, seed);
      break;
    case PartShape::ball:
      vertices = ball(graph, count, seed);
      break;
    case PartShape::range:
      vertices.resize(count);
      std::iota(vertices.begin(), vertices.end(), static_cast<NodeId>(below(graph.num_nodes() - count + 1, seed, 0)));
      break;
  }
  std::sort(vertices.begin(), vertices.end());
  return vertices;
}

GraphPart part_of(const Graph& graph, std::span<const NodeId> own, bool halo) {
  GraphPart part;
  part.own = static_cast<int64_t>(own.size());
  part.vertices.assign(own.begin(), own.end());
  std::vector<NodeId> place(graph.num_src(), kOutside);
  for (size_t i = 0; i < own.size(); ++i) place[own[i]] = static_cast<NodeId>(i);
  if (halo) {
    std::vector<NodeId> others;
    for (const NodeId v : own) {
      for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) {
        NodeId& p = place[graph.col_idx()[i]];
        if (p != kOutside) continue;
        p = 0;  // marks the vertex as listed; its number is set below
        others.push_back(graph.col_idx()[i]);
      }
    }
    std::sort(others.begin(), others.end());
    for (size_t i = 0; i < others.size(); ++i) place[others[i]] = static_cast<NodeId>(own.size() + i);
    part.vertices.insert(part.vertices.end(), others.begin(), others.end());
  }
  EdgeList edges;
  edges.num_nodes = static_cast<int64_t>(part.vertices.size());
  edges.num_types = graph.num_edge_types();
  for (const NodeId v : own) {
    for (int64_t i = graph.row_ptr()[v]; i < graph.row_ptr()[v + 1]; ++i) {
      const NodeId source = place[graph.col_idx()[i]];
      if (source == kOutside) continue;
      edges.src.push_back(source);
      edges.dst.push_back(place[v]);
      if (graph.weighted()) edges.weight.push_back(graph.edge_weight()[i]);
      if (graph.typed()) edges.type.push_back(graph.edge_type()[i]);
    }
  }
  part.graph = build_graph(std::move(edges), "part");
  return part;
}

}  // namespace nacre
