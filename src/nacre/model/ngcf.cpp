// NGCF (Wang et al., 2019): y_i = act(x_i·W1 + Σ_j c_ij · (x_j·W1 + (x_j ⊙ x_i)·W2)), c_ij = 1/√(d_out(j) · d_in(i)),
// over the in-neighbours j, without self loops. The embedding is the input and all layers' y, side by side; for
// classification one linear map follows. Both sums over neighbours are the one s_i = Σ_j c_ij · x_j, taken before the
// maps: y_i = act((s_i + x_i)·W1 + (s_i ⊙ x_i)·W2), so nothing wider than c_ij lives on edges.
#include <vector>

#include "nacre/model/builtin.h"

namespace nacre {

namespace {

constexpr double kSlope = 0.2;

Value activate(Napa& net, Value y, const std::string& name) {
  return name == "leaky_relu" ? net.leaky_relu(y, kSlope) : net.activation(y, name);
}

// What a layer adds to the embedding: with knob `normalize` rows of length 1, as in the authors' program (the paper
// does not say so), and rows of zeros as they are.
Value piece(Napa& net, Value y, const ModelOptions& options) {
  if (options.knobs.at("normalize") == 0) return y;
  return y * net.inv_sqrt(net.row_sum(y * y, 0));
}

Value build(Napa& net, const ModelOptions& options) {
  Value x = net.dropout(net.features(options.in_dim), options.input_dropout);
  std::vector<Value> outputs = {x};
  for (int l = 0; l < options.layers; ++l) {
    net.begin_layer(l);
    const Value sum = net.pull(x, Aggregate::sum, net.symmetric_norm(x));
    for (Value& earlier : outputs) earlier = net.self(earlier);
    const Value own = net.self(x);
    Value y = net.linear(sum + own, "w1", options.hidden, false) + net.linear(sum * own, "w2", options.hidden, false);
    y = activate(net, net.norm(y, "norm", options.norm), options.activation);
    if (options.residual && own.dims() == y.dims()) y = y + own;
    x = net.dropout(y, options.dropout);
    outputs.push_back(piece(net, x, options));
  }
  net.end_layers();
  Value all = outputs[0];
  for (size_t k = 1; k < outputs.size(); ++k) all = net.concat(all, outputs[k]);
  if (options.embeddings) net.output("embedding", all);
  return net.linear(all, "classify", options.out_dim);
}

}  // namespace

ModelEntry ngcf_model() {
  return {{.name = "ngcf",
           .about = "neural graph collaborative filtering: neighbours and their products with the vertex itself",
           .supports_edge_weight = true,
           .activation = "leaky_relu",
           .knobs = {{"normalize", 0.0, "1: layers' results enter the embedding as rows of length 1"}}},
          build};
}

}  // namespace nacre
