#include "nacre/sample/options.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {
namespace {

// A longer walk has forgotten where it began, and a batch of such walks is most of the graph.
constexpr int kLongestWalk = 10'000;

void check_types(const Graph& graph, const SampleOptions& options) {
  if (!sampler_info(options.sampler).type_fanout) {
    throw UserError("--fanout", "only the neighbor sampler has fan-outs for edge types");
  }
  if (!options.fanout.empty())
    throw UserError("--fanout", "numbers for all edges beside numbers for types", "give one of them");
  if (!graph.typed()) throw UserError("--fanout", "the graph's edges have no types", "give one number per layer");
  for (const std::vector<int>& hop : options.type_fanout) {
    if (static_cast<int>(hop.size()) != graph.num_edge_types()) {
      throw UserError("--fanout", std::to_string(hop.size()) + " fan-outs for " +
                                      std::to_string(graph.num_edge_types()) + " edge types");
    }
    if (std::any_of(hop.begin(), hop.end(), [](int k) { return k < -1; })) {
      throw UserError("--fanout", "a fan-out below -1", "-1 takes all edges, 0 none of a type");
    }
  }
}

void check_weights(const Graph& graph) {
  if (!graph.weighted() && graph.num_edges() > 0) {
    throw UserError("--sample-weighted", "the graph's edges have no weights");
  }
  for (const float weight : graph.edge_weight()) {
    if (!(weight >= 0 && weight <= 3.0e38f)) {
      throw UserError("--sample-weighted", "edge weights must be finite and not negative");
    }
  }
}

int check_subgraph(const SampleOptions& options) {
  if (!options.fanout.empty()) throw UserError("--fanout", "GraphSAINT draws a whole subgraph", "use --budget");
  if (options.layers < 1) throw UserError("--layers", "must be at least 1");
  if (options.weighted) throw UserError("--sample-weighted", "GraphSAINT has chances of its own");
  if (options.replace) throw UserError("--replace", "GraphSAINT always draws with replacement");
  if (options.budget < 1) throw UserError("--budget", "must be at least 1");
  if (options.budget > INT64_C(0xFFFFFFFF)) throw UserError("--budget", "more than 4,294,967,295 draws");
  if (options.walk_length < 1 || options.walk_length > kLongestWalk) {
    throw UserError("--walk-length", "must lie between 1 and " + std::to_string(kLongestWalk));
  }
  if (options.sampler == "saint-walk" && options.budget * (options.walk_length + 1) > INT64_C(0xFFFFFFFF)) {
    throw UserError("--walk-length", "the walks of a batch (--budget) would take more than 4,294,967,295 steps",
                    "use shorter walks, or fewer of them");
  }
  if (options.norm_samples < 1 || options.norm_samples > 65535) {
    throw UserError("--norm-samples", "must lie between 1 and 65,535");
  }
  return options.layers;
}

}  // namespace

int check_options(const Graph& graph, const SampleOptions& options) {
  if (graph.num_src() != graph.num_dst()) throw UserError("sampling", "the graph is itself a block");
  for (int64_t v = 0; v < graph.num_nodes(); ++v) {
    if (graph.in_degree(v) > INT64_C(0xFFFFFFFF)) throw UserError("sampling", "a vertex has 2^32 in-edges or more");
  }
  if (options.weighted) check_weights(graph);
  if (!options.type_fanout.empty()) check_types(graph, options);
  if (sampler_info(options.sampler).draws_subgraph) return check_subgraph(options);
  if (options.budget != 0) throw UserError("--budget", "only GraphSAINT has a budget", "use --fanout");
  const std::vector<int>& fanout = options.fanout;
  if (std::any_of(fanout.begin(), fanout.end(), [](int k) { return k < 1 && k != -1; })) {
    throw UserError("--fanout", "a fan-out must be at least 1", "-1 takes all");
  }
  const size_t hops = options.type_fanout.empty() ? fanout.size() : options.type_fanout.size();
  const char* flag = "--fanout";
  if (hops == 0) throw UserError(flag, "no fan-outs given", "one for each layer, as 15,10,5");
  if (options.layers != 0 && options.layers != static_cast<int>(hops)) {
    throw UserError(flag, std::to_string(hops) + " fan-outs for " + std::to_string(options.layers) + " layers");
  }
  return static_cast<int>(hops);
}

}  // namespace nacre
