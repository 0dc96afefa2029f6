#include "nacre/sample/options.h"

#include <algorithm>

#include "nacre/base/error.h"

namespace nacre {
namespace {

// The walk length has a limit, because after so many steps the position of a walk hardly depends on
// its root, and a batch of such walks contains most of the graph.
constexpr int kLongestWalk = 10'000;

void check_types(const Graph& graph, const SampleOptions& options) {
  if (!sampler_info(options.sampler).type_fanout) {
    throw UserError("--fanout", "only --sampler neighbor has numbers by edge type",
                    "give one number for each layer, such as 15,10");
  }
  if (!options.fanout.empty())
    throw UserError("--fanout", "holds numbers by edge type and others for all edges", "give one kind of numbers");
  if (!graph.typed())
    throw UserError("--fanout", "has numbers by edge type, but the graph has no edge types",
                    "give one number for each layer, such as 15,10");
  for (const std::vector<int>& hop : options.type_fanout) {
    if (static_cast<int>(hop.size()) != graph.num_edge_types()) {
      throw UserError("--fanout",
                      "has " + std::to_string(hop.size()) + " numbers for " + std::to_string(graph.num_edge_types()) +
                          " edge types",
                      "give one number for each type");
    }
    if (std::any_of(hop.begin(), hop.end(), [](int k) { return k < -1; })) {
      throw UserError("--fanout", "holds a number below -1", "-1 takes all edges of a type, 0 takes none");
    }
  }
}

void check_weights(const Graph& graph) {
  if (!graph.weighted() && graph.num_edges() > 0) {
    throw UserError("--sample-weighted", "the graph has no edge weights", "leave it out");
  }
  for (const float weight : graph.edge_weight()) {
    if (!(weight >= 0 && weight <= 3.0e38f)) {
      throw UserError("--sample-weighted", "needs edge weights that are finite and not negative",
                      "leave it out, or change the weights");
    }
  }
}

int check_subgraph(const SampleOptions& options) {
  if (!options.fanout.empty())
    throw UserError("--fanout", "has no effect on GraphSAINT, which draws a whole subgraph", "use --budget");
  if (options.layers < 1) throw UserError("--layers", "must be at least 1");
  if (options.weighted)
    throw UserError("--sample-weighted", "has no effect on GraphSAINT, which has its own probabilities",
                    "leave it out");
  if (options.replace)
    throw UserError("--replace", "has no effect on GraphSAINT, which always draws with replacement", "leave it out");
  if (options.budget < 1) throw UserError("--budget", "must be at least 1");
  if (options.budget > INT64_C(0xFFFFFFFF)) throw UserError("--budget", "must be at most 4,294,967,295");
  if (options.walk_length < 1 || options.walk_length > kLongestWalk) {
    throw UserError("--walk-length", "must be between 1 and " + std::to_string(kLongestWalk));
  }
  if (options.sampler == "saint-walk" && options.budget * (options.walk_length + 1) > INT64_C(0xFFFFFFFF)) {
    throw UserError("--walk-length", "the walks of a batch (--budget) would take more than 4,294,967,295 steps",
                    "use shorter walks, or fewer of them");
  }
  if (options.norm_samples < 1 || options.norm_samples > 65535) {
    throw UserError("--norm-samples", "must be between 1 and 65,535");
  }
  return options.layers;
}

}  // namespace

int check_options(const Graph& graph, const SampleOptions& options) {
  if (graph.num_src() != graph.num_dst()) throw UserError("sampling", "the graph is itself a block");
  for (int64_t v = 0; v < graph.num_nodes(); ++v) {
    if (graph.in_degree(v) > INT64_C(0xFFFFFFFF)) {
      throw UserError("sampling",
                      "node " + std::to_string(v) +
                          " has more than 4,294,967,295 edges that lead to it, which samplers cannot count",
                      "remove repeated edges");
    }
  }
  if (options.weighted) check_weights(graph);
  if (!options.type_fanout.empty()) check_types(graph, options);
  if (sampler_info(options.sampler).draws_subgraph) return check_subgraph(options);
  if (options.budget != 0)
    throw UserError("--budget", "is for the GraphSAINT samplers", "use --fanout, or add --sampler saint-vertex");
  const std::vector<int>& fanout = options.fanout;
  if (std::any_of(fanout.begin(), fanout.end(), [](int k) { return k < 1 && k != -1; })) {
    throw UserError("--fanout", "numbers must be at least 1", "-1 takes all neighbours");
  }
  const size_t hops = options.type_fanout.empty() ? fanout.size() : options.type_fanout.size();
  const char* flag = "--fanout";
  if (hops == 0) throw UserError(flag, "is required", "give one number for each layer, such as 15,10,5");
  if (options.layers != 0 && options.layers != static_cast<int>(hops)) {
    throw UserError(flag, std::to_string(hops) + " numbers are given for " + std::to_string(options.layers) + " layers",
                    "give one number for each layer");
  }
  return static_cast<int>(hops);
}

}  // namespace nacre
