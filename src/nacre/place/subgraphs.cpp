// GraphSAINT: a batch is `budget` independent draws (sample/saint.h), so a vertex that one draw
// takes with probability p is in the batch with probability 1 − (1 − p)^budget.
//
// A walk takes the vertices on its way. The probability of being at v after s steps is a
// matrix-vector product, and v may have been met before. With f_s(v) the probability of meeting v
// first after s steps and r_t(v) that of being back at v after t steps, P_s(v) = Σ f_j(v)
// r_(s−j)(v), which gives f. r_1 (self loops) and r_2 (there and back) are exact. Longer circles
// count only as far as they lead back the way they came.
#include <algorithm>
#include <cmath>

#include "nacre/base/parallel.h"
#include "nacre/place/drawers.h"
#include "nacre/place/reach.h"

namespace nacre {
namespace {

constexpr int64_t kSubgraphRows = 1 << 12;

using Chances = std::vector<double>;

// Returns the chances of one draw by columns of the row-normalised adjacency with self loops.
Chances vertex_draw(const Graph& graph) {
  Chances weight(static_cast<size_t>(graph.num_nodes()), 0);
  double sum = 0;
  for (int64_t v = 0; v < graph.num_nodes(); ++v) {
    const double entry = 1 / static_cast<double>(graph.in_degree(v) + 1);
    weight[static_cast<size_t>(v)] += entry * entry;
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) weight[graph.col_idx()[e]] += entry * entry;
    sum += entry * entry * static_cast<double>(graph.in_degree(v) + 1);
  }
  for (double& each : weight) each /= sum;
  return weight;
}

// Returns the chances that one drawn edge has a vertex as an end.
Chances edge_draw(const Graph& graph) {
  Chances weight(static_cast<size_t>(graph.num_nodes()), 0);
  double sum = 0;
  for (int64_t v = 0; v < graph.num_nodes(); ++v) {
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) {
      const NodeId source = graph.col_idx()[e];
      const double chance = 1 / static_cast<double>(graph.in_degree(v)) +
                            1 / static_cast<double>(std::max<int64_t>(graph.in_degree(source), 1));
      weight[static_cast<size_t>(v)] += chance;
      if (source != static_cast<NodeId>(v)) weight[source] += chance;
      sum += chance;
    }
  }
  if (sum > 0) {
    for (double& each : weight) each /= sum;
  }
  return weight;
}

class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph), lists_(graph, false) {}

  // Returns the chances that one walk meets a vertex.
  Chances meets(int steps) {
    const auto vertices = static_cast<size_t>(graph_.num_nodes());
    std::vector<Chances> first{Chances(vertices, 1 / static_cast<double>(vertices))};
    const std::vector<Chances> back = returns(steps);
    Chances at = first[0], met = first[0];
    for (int s = 1; s <= steps; ++s) {
      at = next(at);
      Chances now = at;
      for (int j = 0; j < s; ++j) {
        for (size_t v = 0; v < vertices; ++v)
          now[v] -= first[static_cast<size_t>(j)][v] * back[static_cast<size_t>(s - j)][v];
      }
      for (size_t v = 0; v < vertices; ++v) met[v] += now[v] = std::max(0.0, now[v]);
      first.push_back(std::move(now));
    }
    return met;
  }

 private:
  double step(NodeId from, int64_t edges) const {
    return static_cast<double>(edges) / static_cast<double>(graph_.in_degree(from));
  }
  double loops(int64_t v) const {
    const auto row = graph_.col_idx().span().subspan(static_cast<size_t>(graph_.row_ptr()[v]),
                                                     static_cast<size_t>(graph_.in_degree(v)));
    const auto [first, last] = std::equal_range(row.begin(), row.end(), static_cast<NodeId>(v));
    return first == last ? 0 : step(static_cast<NodeId>(v), last - first);
  }

  // A walk ends where there is no in-edge.
  Chances next(const Chances& at) const {
    Chances to(at.size(), 0);
    parallel_for(graph_.num_nodes(), kSubgraphRows, [&](int64_t begin, int64_t end) {
      for (int64_t v = begin; v < end; ++v) {
        double sum = at[static_cast<size_t>(v)] * loops(v);
        lists_.each(v, [&](const DrawPair& pair) { sum += at[pair.u] * step(pair.u, pair.edges); });
        to[static_cast<size_t>(v)] = sum;
      }
    });
    return to;
  }

  // Returns a list with an entry for each t = 0 … steps: for every vertex v, the chance that a walk
  // which is at v is at v again t steps later.
  std::vector<Chances> returns(int steps) const {
    const auto vertices = static_cast<size_t>(graph_.num_nodes());
    // new_t is the chance of being back for the first time after t steps.
    Chances new_1(vertices), new_2(vertices), new_4(vertices);
    const auto there_and_back = [&](const auto& beyond, Chances& result) {
      parallel_for(graph_.num_nodes(), kSubgraphRows, [&](int64_t begin, int64_t end) {
        for (int64_t v = begin; v < end; ++v) {
          double sum = 0;
          lists_.each(v, [&](const DrawPair& pair) {
            if (pair.back == 0) return;
            const double both = step(static_cast<NodeId>(v), pair.back) * step(pair.u, pair.edges);
            sum += both * beyond(pair.u, both);
          });
          result[static_cast<size_t>(v)] = sum;
        }
      });
    };
    for (int64_t v = 0; v < graph_.num_nodes(); ++v) new_1[static_cast<size_t>(v)] = loops(v);
    there_and_back([](NodeId, double) { return 1.0; }, new_2);
    there_and_back([&](NodeId u, double both) { return new_2[u] - both; }, new_4);
    std::vector<Chances> back(static_cast<size_t>(steps) + 1, Chances(vertices, 0));
    back[0].assign(vertices, 1);
    for (size_t t = 1; t < back.size(); ++t) {
      for (size_t v = 0; v < vertices; ++v) {
        double sum = back[t - 1][v] * new_1[v];
        if (t >= 2) sum += back[t - 2][v] * new_2[v];
        if (t >= 4) sum += back[t - 4][v] * new_4[v];
        back[t][v] = sum;
      }
    }
    return back;
  }

  const Graph& graph_;
  DrawerLists lists_;
};

}  // namespace

std::vector<float> subgraph_probabilities(const Graph& graph, const SampleOptions& options) {
  std::vector<float> result(static_cast<size_t>(graph.num_nodes()), 0.0f);
  if (result.empty()) return result;
  Chances draw;
  if (options.sampler == "saint-walk") {
    draw = Walk(graph).meets(options.walk_length);
  } else {
    draw = options.sampler == "saint-edge" ? edge_draw(graph) : vertex_draw(graph);
  }
  const auto budget = static_cast<double>(options.budget);
  for (size_t v = 0; v < result.size(); ++v) {
    result[v] = static_cast<float>(draw[v] < 1 ? -std::expm1(budget * std::log1p(-draw[v])) : 1);
  }
  return result;
}

}  // namespace nacre
