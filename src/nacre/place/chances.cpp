#include "nacre/place/chances.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kChanceRows = 1 << 12;

double square(double x) { return x * x; }

}  // namespace

double uniform_chance(int64_t degree, int64_t edges, int count, bool replace) {
  if (degree == 0 || edges == 0) return 0;
  if (count < 0 || (!replace && count >= degree)) return 1;
  if (replace) return 1 - std::pow(1 - static_cast<double>(edges) / static_cast<double>(degree), count);
  if (edges == 1) return static_cast<double>(count) / static_cast<double>(degree);
  double none = 1;
  for (int64_t i = 0; i < edges && none > 0; ++i) {
    none *= 1 - std::min(1.0, static_cast<double>(count) / static_cast<double>(degree - i));
  }
  return 1 - none;
}

void weighted_chances(std::span<const double> weights, int count, bool replace, std::vector<double>& chances) {
  chances.assign(weights.size(), 0);
  double left = 0, candidates = 0;
  for (const double w : weights) {
    left += w;
    candidates += w > 0 ? 1 : 0;
  }
  if (count == 0 || (!(left > 0) && count > 0)) return;
  if (count < 0 || (!replace && count >= candidates)) {
    for (size_t i = 0; i < weights.size(); ++i) chances[i] = count < 0 || weights[i] > 0 ? 1 : 0;
    return;
  }
  if (replace) {
    for (size_t i = 0; i < weights.size(); ++i) chances[i] = 1 - std::pow(1 - weights[i] / left, count);
    return;
  }
  // `stays` is the chance that a candidate has not been drawn yet. The next draw takes a remaining
  // candidate with a chance equal to its weight divided by the total weight that remains.
  std::vector<double> stays(weights.size(), 1);
  for (int drawn = 0; drawn < count; ++drawn) {
    const double many = candidates - drawn;  // number of candidates that are left
    double next = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double w = weights[i];
      if (!(w > 0)) continue;
      const double others = std::max(0.0, left - w * stays[i]) * (many - 1) / std::max(many - stays[i], 1e-12);
      chances[i] = stays[i] * others / (others + w);
      next += w * chances[i];
    }
    std::swap(stays, chances);
    left = next;
  }
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) sum += chances[i] = weights[i] > 0 ? 1 - stays[i] : 0;
  for (double& chance : chances) chance = std::min(1.0, chance * count / sum);
}

DrawChances::DrawChances(const Graph& graph, const SampleOptions& options, int hops)
    : graph_(graph),
      options_(options),
      hops_(std::min(hops, kMostHops)),
      layerwise_(options.sampler == "layer"),
      by_edge_(options.weighted || !options.type_fanout.empty()),
      stride_(hops_ + 1 + (by_edge_ ? 0 : hops_)),
      records_(graph.num_nodes() * stride_) {
  NACRE_CHECK(layerwise_ || options.sampler == "neighbor", "the sampler does not go hop by hop");
  if (by_edge_) of_edge_.resize(static_cast<size_t>(hops_));
}

void DrawChances::set_hop(int hop, std::span<const float> known, const DrawerLists& lists) {
  if (by_edge_) of_edge_[static_cast<size_t>(hop)] = Buffer<float>(graph_.num_edges());
  if (layerwise_) {
    set_layer_hop(hop, known, lists);
  } else {
    set_neighbor_hop(hop);
  }
}

void DrawChances::set_neighbor_hop(int hop) {
  const auto h = static_cast<size_t>(hop);
  parallel_for(graph_.num_nodes(), kChanceRows, [&](int64_t begin, int64_t end) {
    std::vector<double> weights, chances;
    for (int64_t u = begin; u < end; ++u) {
      if (by_edge_) {
        set_row(hop, u, weights, chances);
      } else {
        single(u)[hop] =
            static_cast<float>(uniform_chance(graph_.in_degree(u), 1, options_.fanout[h], options_.replace));
      }
    }
  });
}

// Sets the chances of the edges of a row, channel by channel: an edge type with a fan-out of its
// own is a channel.
void DrawChances::set_row(int hop, int64_t u, std::vector<double>& weights, std::vector<double>& chances) {
  const auto h = static_cast<size_t>(hop);
  const bool typed = !options_.type_fanout.empty();
  const int channels = typed ? graph_.num_edge_types() : 1;
  const int64_t begin = graph_.row_ptr()[u], end = graph_.row_ptr()[u + 1];
  for (int channel = 0; channel < channels; ++channel) {
    const auto inside = [&](int64_t e) { return !typed || graph_.edge_type()[e] == channel; };
    const int count = typed ? options_.type_fanout[h][static_cast<size_t>(channel)] : options_.fanout[h];
    weights.clear();
    for (int64_t e = begin; e < end; ++e) {
      if (inside(e)) weights.push_back(options_.weighted ? graph_.edge_weight()[e] : 1.0);
    }
    if (weights.empty()) continue;
    if (options_.weighted) {
      weighted_chances(weights, count, options_.replace, chances);
    } else {
      chances.assign(weights.size(), uniform_chance(static_cast<int64_t>(weights.size()), 1, count, options_.replace));
    }
    size_t i = 0;
    for (int64_t e = begin; e < end; ++e) {
      if (inside(e)) of_edge_[h][e] = static_cast<float>(chances[i++]);
    }
  }
}

double DrawChances::of_parallel(int hop, NodeId u, int64_t edges) const {
  if (!layerwise_) {
    return uniform_chance(graph_.in_degree(u), edges, options_.fanout[static_cast<size_t>(hop)], options_.replace);
  }
  // The importance of parallel edges adds up. So with n parallel edges, the chance of not being
  // drawn is that of a single edge to the power of n.
  return 1 - std::pow(1 - double{single(u)[hop]}, static_cast<double>(edges));
}

// Returns, for every edge, the square of its entry in the row-normalised adjacency.
static Buffer<float> squared_shares(const Graph& graph) {
  Buffer<float> share2(graph.num_edges());
  parallel_for(graph.num_nodes(), kChanceRows, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      double sum = 0;
      for (int64_t e = graph.row_ptr()[u]; e < graph.row_ptr()[u + 1]; ++e) sum += graph.edge_weight()[e];
      for (int64_t e = graph.row_ptr()[u]; e < graph.row_ptr()[u + 1]; ++e) {
        share2[e] = sum > 0 ? static_cast<float>(square(graph.edge_weight()[e] / sum)) : 0.0f;
      }
    }
  });
  return share2;
}

void DrawChances::set_layer_hop(int hop, std::span<const float> known, const DrawerLists& lists) {
  const int fanout = options_.fanout[static_cast<size_t>(hop)];
  Buffer<float> share2 = by_edge_ ? squared_shares(graph_) : Buffer<float>();
  const std::span<const float> of_edges{share2.data(), static_cast<size_t>(share2.size())};
  double threshold = std::numeric_limits<double>::infinity();
  if (fanout >= 0 && options_.replace) {
    // A draw takes a candidate with the probability `share`, its part of all importance. There are
    // many draws, so the chance that none takes it is about e^(-draws · share).
    double importance = 0;
    for (int64_t u = 0; u < graph_.num_nodes(); ++u) {
      double row = 0;
      if (by_edge_) {
        for (int64_t e = graph_.row_ptr()[u]; e < graph_.row_ptr()[u + 1]; ++e) row += share2[e];
      } else if (graph_.in_degree(u) > 0) {
        row = 1 / static_cast<double>(graph_.in_degree(u));
      }
      importance += known[static_cast<size_t>(u)] * row;
    }
    threshold = importance > 0 ? fanout / importance : 0;
  } else if (fanout >= 0) {
    threshold = layer_threshold(graph_, lists, known, of_edges, fanout);
  }
  // With fan-out -1, weights do not matter: edges of weight 0 are taken, too.
  const auto chance = [&](double rate) {
    if (fanout < 0) return 1.0f;
    return static_cast<float>(rate > 0 ? -std::expm1(-threshold * rate) : 0);
  };
  parallel_for(graph_.num_nodes(), kChanceRows, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t degree = graph_.in_degree(u);
      if (!by_edge_) {
        single(u)[hop] = degree > 0 ? chance(square(1 / static_cast<double>(degree))) : 0.0f;
        continue;
      }
      for (int64_t e = graph_.row_ptr()[u]; e < graph_.row_ptr()[u + 1]; ++e) {
        of_edge_[static_cast<size_t>(hop)][e] = chance(share2[e]);
      }
    }
  });
}

}  // namespace nacre
