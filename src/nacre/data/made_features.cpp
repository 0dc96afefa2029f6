#include "nacre/data/made_features.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"

namespace nacre {
namespace {

constexpr int64_t kDegreeSizes = 16;
constexpr int64_t kMostOneHot = 16'384;  // the features take 1 GiB then

Tensor degree_features(const Graph& graph) {
  const int64_t nodes = graph.num_nodes();
  std::vector<int64_t> out_degree(nodes, 0);
  for (const NodeId source : graph.col_idx()) ++out_degree[source];
  constexpr int64_t width = 2 + kDegreeSizes;
  Tensor features = Tensor::zeros(DType::f32, {nodes, width});
  parallel_for(nodes, 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      float* row = features.data<float>() + v * width;
      const auto in = static_cast<uint64_t>(graph.in_degree(v));
      row[0] = static_cast<float>(std::log1p(static_cast<double>(in)));
      row[1] = static_cast<float>(std::log1p(static_cast<double>(out_degree[v])));
      row[2 + std::min<int64_t>(std::bit_width(in), kDegreeSizes - 1)] = 1;
    }
  });
  return features;
}

Tensor one_hot_features(int64_t nodes) {
  if (nodes > kMostOneHot) {
    throw UserError("--features onehot",
                    "would take a column for each of the " + human_count(nodes) + " nodes; at most " +
                        human_count(kMostOneHot) + " are held",
                    "use --features learned, which learns a short row for each node, or --features degree");
  }
  Tensor features = Tensor::zeros(DType::f32, {nodes, nodes});
  for (int64_t v = 0; v < nodes; ++v) features.data<float>()[v * nodes + v] = 1;
  return features;
}

}  // namespace

bool is_made_features(const std::string& name) { return name == "learned" || name == "degree" || name == "onehot"; }

int64_t made_features_width(const std::string& name, int64_t nodes) {
  if (name == "degree") return 2 + kDegreeSizes;
  // A larger graph is refused by make_features(), which says why.
  return name == "onehot" && nodes <= kMostOneHot ? nodes : 0;
}

void make_features(const std::string& name, Dataset& data) {
  if (data.heterogeneous() && name != "learned") {
    throw UserError("--features " + name, "is for graphs with one kind of nodes",
                    "use --features learned, or leave it out: kinds without features have learned rows");
  }
  const bool replaced = data.features.defined() || !data.type_features.empty();
  data.features = {};
  data.type_features.clear();
  data.origins.features = {};
  data.origins.type_features.clear();
  if (name == "degree") data.features = degree_features(data.graph);
  if (name == "onehot") data.features = one_hot_features(data.num_nodes());
  const char* what = name == "degree"   ? "features are made from the degrees of the nodes"
                     : name == "onehot" ? "every node has a feature of its own"
                                        : "the features of every node are learned";
  data.notes.push_back(std::string(what) + (replaced ? "; those that the data bring are not used" : ""));
}

}  // namespace nacre
