// This file implements PaGraph's partition. The training vertices are dealt out one by one. A
// training vertex t goes to the device with the largest
//   |its training vertices within L hops of t| · (the mean share − |its training vertices|)
//     / |vertices of its neighbourhoods|,
// and the vertices within L hops of t join that device's neighbourhood. Every t takes a search of L
// hops, so the time grows with the square of the graph.
#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/place/methods.h"
#include "nacre/place/ranking.h"

namespace nacre {
namespace {

// Finds the vertices within some hops of one vertex, against the direction of messages.
class HopSearch {
 public:
  HopSearch(const Graph& graph, size_t hops) : graph_(graph), hops_(hops), met_(graph.num_nodes(), 0) {}

  const std::vector<NodeId>& around(NodeId start) {
    ++search_;
    found_.assign(1, start);
    met_[start] = search_;
    size_t first = 0;
    for (size_t hop = 0; hop < hops_; ++hop) {
      const size_t last = found_.size();
      for (; first < last; ++first) visit(found_[first]);
    }
    return found_;
  }

 private:
  void visit(NodeId v) {
    for (int64_t e = graph_.row_ptr()[v]; e < graph_.row_ptr()[int64_t{v} + 1]; ++e) {
      const NodeId source = graph_.col_idx()[e];
      if (met_[source] == search_) continue;
      met_[source] = search_;
      found_.push_back(source);
    }
  }
  const Graph& graph_;
  size_t hops_;
  std::vector<uint32_t> met_;  // the search that met the vertex last
  uint32_t search_ = 0;
  std::vector<NodeId> found_;
};

struct PaGraphPart {
  int64_t train = 0;
  int64_t size = 0;
  std::vector<bool> vertices;
};

size_t hops_of(const SampleOptions& options) {
  if (!options.type_fanout.empty()) return options.type_fanout.size();
  return options.fanout.empty() ? static_cast<size_t>(std::max(options.layers, 1)) : options.fanout.size();
}

std::vector<PaGraphPart> deal_out(const AccessRequest& accesses, size_t parts) {
  const Graph& graph = *accesses.graph;
  const auto vertices = static_cast<size_t>(graph.num_nodes());
  std::vector<PaGraphPart> dealt(parts);
  for (PaGraphPart& part : dealt) part.vertices.assign(vertices, false);
  std::vector<int16_t> part_of(vertices, -1);
  HopSearch search(graph, hops_of(accesses.sampling));
  const double mean = static_cast<double>(accesses.train.size()) / static_cast<double>(parts);
  std::vector<int64_t> shared(parts);
  for (const NodeId t : accesses.train) {
    const std::vector<NodeId>& around = search.around(t);
    std::fill(shared.begin(), shared.end(), 0);
    for (const NodeId v : around) {
      if (part_of[v] >= 0) ++shared[static_cast<size_t>(part_of[v])];
    }
    const auto score = [&](size_t p) {
      const PaGraphPart& part = dealt[p];
      return static_cast<double>(shared[p]) * (mean - static_cast<double>(part.train)) /
             static_cast<double>(std::max<int64_t>(1, part.size));
    };
    size_t best = 0;
    for (size_t p = 1; p < parts; ++p) {
      const double gain = score(p) - score(best);
      if (gain > 0 || (gain == 0 && dealt[p].train < dealt[best].train)) best = p;
    }
    part_of[t] = static_cast<int16_t>(best);
    PaGraphPart& part = dealt[best];
    ++part.train;
    for (const NodeId v : around) {
      part.size += part.vertices[v] ? 0 : 1;
      part.vertices[v] = true;
    }
  }
  return dealt;
}

}  // namespace

PlacedRows place_by_pagraph(const PlacementRequest& request) {
  NACRE_CHECK(request.accesses.graph != nullptr, "PaGraph's placement needs the graph");
  PlacedRows placed;
  placed.reads_peers = false;
  placed.order = rank_vertices(request.reads);
  const std::vector<PaGraphPart> parts = deal_out(request.accesses, request.device_rows.size());
  for (size_t d = 0; d < parts.size(); ++d) {
    const auto most = static_cast<size_t>(std::max<int64_t>(0, request.device_rows[d]));
    std::vector<NodeId> rows;
    for (const bool inside : {true, false}) {  // when the rows of the neighbourhood are placed,
                                               // other rows fill the rest
      for (int64_t i = 0; i < placed.order.size() && rows.size() < most; ++i) {
        const NodeId v = placed.order[i];
        if (parts[d].vertices[v] == inside) rows.push_back(v);
      }
    }
    placed.device_rows.emplace_back(std::move(rows));
  }
  return placed;
}

}  // namespace nacre
