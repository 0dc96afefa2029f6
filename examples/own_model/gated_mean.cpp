// A model of one's own in one file. It averages the neighbours, each through a gate that is
// computed
// on its edge:
//   z = x·W
//   g_ij = w_ij · σ(sharpness · (a_src·z_j + a_dst·z_i))
//   y_i = Σ_j g_ij·z_j / Σ_j g_ij + x_i·W_root + b
#include "nacre/model/stack.h"

namespace {

using nacre::Aggregate;
using nacre::ModelOptions;
using nacre::Napa;
using nacre::Value;

Value gated_layer(Napa& net, Value x, int64_t out, double sharpness) {
  // Apply: dense work at the vertices.
  const Value z = net.linear(x, "lin", out, false);
  const Value at_src = net.dot(z, "gate_src");
  const Value at_dst = net.dot(z, "gate_dst");
  // NeighborApply: one number for each edge, computed from the edge's two ends.
  Value gate = net.neighbor_apply(at_src, at_dst,
                                  [&](Value s, Value d) { return net.activation(sharpness * (s + d), "sigmoid"); });
  if (const Value weight = net.edge_weight(x)) gate = gate * weight;
  // Pull: every destination takes the weighted mean of its neighbours.
  const Value mean = net.pull(z, Aggregate::mean, gate);
  return mean + net.linear(net.self(x), "root", out);
}

Value gated_mean(Napa& net, const ModelOptions& options) {
  return nacre::stack_layers(net, options, [&](Value x, int64_t out, bool) {
    return gated_layer(net, x, out, options.knobs.at("sharpness"));
  });
}

const nacre::RegisterModel registered{{.name = "gated-mean",
                                       .about = "mean of the neighbours, each through a trained gate",
                                       .supports_edge_weight = true,
                                       .knobs = {{"sharpness", 1.0, "factor of the gate's score"}}},
                                      gated_mean};

}  // namespace
