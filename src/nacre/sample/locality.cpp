#include "nacre/sample/locality.h"

#include <algorithm>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/sample/hop_sampler.h"

namespace nacre {
namespace {

// Returns v A: for every destination, the sum of the values of its in-neighbours.
std::vector<double> times_adjacency(const Graph& graph, const std::vector<double>& values) {
  std::vector<double> result(values.size(), 0);
  parallel_for(graph.num_nodes(), 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      double sum = 0;
      for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) sum += values[graph.col_idx()[e]];
      result[static_cast<size_t>(v)] = sum;
    }
  });
  return result;
}

// Marks the `most` largest positive values.
std::vector<uint8_t> mark_largest(const std::vector<double>& values, int64_t most) {
  std::vector<NodeId> order;
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v] > 0) order.push_back(static_cast<NodeId>(v));
  }
  const auto count = std::min(static_cast<size_t>(std::max<int64_t>(0, most)), order.size());
  const auto before = [&](NodeId a, NodeId b) { return values[a] != values[b] ? values[a] > values[b] : a < b; };
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), before);
  std::vector<uint8_t> marks(values.size(), 0);
  for (size_t i = 0; i < count; ++i) marks[order[i]] = 1;
  return marks;
}

}  // namespace

Locality::Locality(const Graph& graph, std::span<const uint8_t> local, int hops, int64_t most) {
  NACRE_CHECK(static_cast<int64_t>(local.size()) == graph.num_nodes(), "there must be one mark for each vertex");
  NACRE_CHECK(hops > 0, "a sample has at least one hop");
  preferred_.resize(static_cast<size_t>(hops));
  std::vector<double> values(local.size());
  for (size_t v = 0; v < values.size(); ++v) values[v] = local[v] != 0 ? 1 : 0;
  preferred_.back().assign(local.begin(), local.end());
  for (size_t hop = preferred_.size() - 1; hop-- > 0;) {
    values = times_adjacency(graph, values);
    preferred_[hop] = mark_largest(values, most);
  }
}

MakeBatchSampler locality_sampler(const Sampler& sampler, std::shared_ptr<const Locality> locality) {
  NACRE_CHECK(locality->hops() == sampler.layers(), "locality has another number of hops than the sampler");
  const std::string& name = sampler.options().sampler;
  const bool layer = name == "layer";
  if (!layer && name != "neighbor")
    throw UserError("--locality", "the sampler " + name + " draws whole subgraphs, which have no near nodes",
                    "use --sampler neighbor or layer");
  return [&sampler, locality = std::move(locality), layer] {
    const auto make = layer ? make_layer_sampler : make_neighbor_sampler;
    return make(sampler.graph(), sampler.options(), sampler.layers(), kMaxDirectNodes, locality.get());
  };
}

void LocalityScale::after_epoch(double loading_share) {
  if (fixed) return;
  if (scale < most && loading_share > high) {
    before = scale;
    scale *= 2;
  } else if (scale < most && loading_share < low && scale != 1) {
    scale = (scale + before) / 2;
  } else {
    fixed = true;
  }
}

}  // namespace nacre
