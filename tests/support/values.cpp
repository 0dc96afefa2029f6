#include "support/values.h"

#include <cmath>

#include "support/rng.h"

namespace nacre::test {
namespace {

enum class Role { plain, label, target, loss_weight, moments, edge_weight };

struct Use {
  Role role = Role::plain;
  int64_t classes = 2;
};

Use use_of(const Dfg& dfg, NodeRef leaf) {
  const Node& node = dfg[leaf];
  for (const Node& user : dfg.nodes()) {
    for (size_t i = 0; i < user.inputs.size(); ++i) {
      if (user.inputs[i] != leaf) continue;
      if (user.op == Op::nll && i == 1) return {Role::label, dfg[user.inputs[0]].type.row_size()};
      if ((user.op == Op::nll || user.op == Op::bce) && i == 2) return {Role::loss_weight};
      if (user.op == Op::standardize && i == 1) return {Role::moments};
    }
  }
  if (node.type.dtype == DType::i32) return {Role::label};
  if (node.type.dtype == DType::u8) return {Role::target};
  if (node.name.starts_with("edge_weight") && node.type.space.kind == SpaceKind::edge) return {Role::edge_weight};
  return {};
}

double normal_with_gap(Rng& rng, const ValueOptions& options) {
  const double x = options.scale * rng.normal();
  return x + std::copysign(options.gap, x);
}

// Returns the weights of edges: those of the graph, or random ones. They are the same in every
// layer, because blocks of one graph share its weights.
std::vector<double> edge_weights(uint64_t seed, const Graph& graph, size_t n) {
  if (graph.weighted() && n == static_cast<size_t>(graph.num_edges())) {
    return {graph.edge_weight().begin(), graph.edge_weight().end()};
  }
  Rng rng(mix_key(seed, 0x77));
  std::vector<double> weights(n);
  for (double& w : weights) w = rng.uniform(0.25, 2);
  return weights;
}

}  // namespace

ref::Bindings random_bindings(const Dfg& dfg, const Blocks& blocks, uint64_t seed, const ValueOptions& options) {
  ref::Bindings bindings;
  for (NodeRef leaf = 0; leaf < dfg.size(); ++leaf) {
    const Node& node = dfg[leaf];
    if (node.op != Op::input && node.op != Op::param) continue;
    Rng rng(mix_key(seed, static_cast<uint64_t>(leaf)));
    const Use use = use_of(dfg, leaf);
    std::vector<double> values(static_cast<size_t>(blocks.rows(node.type.space) * node.type.row_size()));
    for (size_t i = 0; i < values.size(); ++i) {
      switch (use.role) {
        case Role::label:
          values[i] = rng.uniform() < 0.125 ? -1 : static_cast<double>(rng.below(use.classes));
          break;
        case Role::target:
          values[i] = static_cast<double>(rng.below(2));
          break;
        case Role::loss_weight:
          values[i] = rng.uniform() < 0.25 ? 0 : rng.uniform(0.1, 1);
          break;
        case Role::moments:
          values[i] = 2 * i < values.size() ? rng.normal() : rng.uniform(0.5, 2);
          break;
        case Role::edge_weight:
        case Role::plain:
          values[i] = normal_with_gap(rng, options);
      }
    }
    if (use.role == Role::edge_weight) values = edge_weights(seed, blocks.layer(node.type.space.layer), values.size());
    bindings[node.name] = std::move(values);
  }
  return bindings;
}

}  // namespace nacre::test
