// LightGCN (He et al., 2020): x⁽ˡ⁺¹⁾_i = Σ_j 1/√(d_out(j) · d_in(i)) · x⁽ˡ⁾_j over the
// in-neighbours j, without self loops, weights or activations. The embedding is the mean of x over
// all layers, the first included. x⁽⁰⁾ are the learned rows, or the features mapped to width
// `hidden`. For classification, one linear map follows.
#include "nacre/base/error.h"
#include "nacre/model/builtin.h"

namespace nacre {

namespace {

void check(const ModelOptions& options) {
  if (options.activation != "none" || options.norm != "none" || options.residual) {
    throw UserError("model lightgcn",
                    "its layers only propagate, so --activation, --norm and --residual have no effect",
                    "leave them out, or use ngcf");
  }
}

Value build_lightgcn(Napa& net, const ModelOptions& options) {
  check(options);
  Value x = net.dropout(net.features(options.in_dim), options.input_dropout);
  if (options.kinds.empty()) x = net.linear(x, "input", options.hidden);
  Value sum = x;
  for (int l = 0; l < options.layers; ++l) {
    if (l > 0) x = net.dropout(x, options.dropout);
    x = net.pull(x, Aggregate::sum, net.edge_dropout(net.symmetric_norm(x), options.knobs.at("edge-dropout")));
    // The sum over the layers so far lives at the sources of this block, so it is moved to the
    // destinations, where x lives now.
    sum = net.self(sum) + x;
  }
  const Value mean = (1.0 / (options.layers + 1)) * sum;
  if (options.embeddings) net.output("embedding", mean);
  return net.linear(mean, "classify", options.out_dim);
}

}  // namespace

std::vector<ModelEntry> models_in_lightgcn() {
  return {{{.name = "lightgcn",
            .about = "propagation without weights, mean of all layers; for recommendation",
            .supports_edge_weight = true,
            .activation = "none",
            .knobs = {edge_dropout_knob()}},
           build_lightgcn}};
}

}  // namespace nacre
