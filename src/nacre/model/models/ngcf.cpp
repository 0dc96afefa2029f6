// NGCF (Wang et al., 2019): y_i = act(x_i·W1 + Σ_j c_ij · (x_j·W1 + (x_j ⊙ x_i)·W2)), c_ij =
// 1/√(d_out(j) · d_in(i)), over the in-neighbours j, without self loops. The embedding is the input
// and the y of all layers, side by side; for classification, one linear map follows. Both sums over
// neighbours can be computed from one sum s_i = Σ_j c_ij · x_j before the maps: y_i = act((s_i +
// x_i)·W1 + (s_i ⊙ x_i)·W2). So nothing wider than c_ij lives on edges.
//
// The authors' program, which gave the published scores, has different layers (knob `authors`): m_i
// is the mean of x_i and all x_j, and y_i = act(m_i·W1 + b1) + act((m_i ⊙ x_i)·W2 + b2).
#include <vector>

#include "nacre/model/builtin.h"

namespace nacre {

namespace {

constexpr double kSlope = 0.2;
// This is added to the squared length of a row before the row is divided by its length. Without it,
// a row much shorter than a millionth would have a gradient beyond the range of floats.
constexpr double kTinySquare = 1e-12;

Value activate(Napa& net, Value y, const std::string& name) {
  return name == "leaky_relu" ? net.leaky_relu(y, kSlope) : net.activation(y, name);
}

// Returns what a layer adds to the embedding. With the knob `normalize`, rows get length 1, as in
// the authors' program (the paper does not say so); rows of zeros stay as they are.
Value piece(Napa& net, Value y, const ModelOptions& options) {
  if (options.knobs.at("normalize") == 0) return y;
  return y * net.inv_sqrt(net.row_sum(y * y, 0) + net.constant(kTinySquare));
}

// Returns Σ_j c_ij · x_j or, with the knob `authors`, the mean of x_i and all x_j.
Value weighted_sum(Napa& net, Value x, const ModelOptions& options) {
  const double dropped = options.knobs.at("edge-dropout");
  if (options.knobs.at("authors") == 0)
    return net.pull(x, Aggregate::sum, net.edge_dropout(net.symmetric_norm(x), dropped));
  const Value share = net.inv(net.in_weight(x) + net.constant(1));
  Value weight = net.dst(share);
  if (const Value given = net.edge_weight(x)) weight = given * weight;
  return net.pull(x, Aggregate::sum, net.edge_dropout(weight, dropped)) + net.self(x) * share;
}

// Applies one linear map of the authors' program, whose bias is drawn like its weights.
Value map_of_authors(Napa& net, Value x, const std::string& name, const ModelOptions& options) {
  const Value y = net.linear(x, name, options.hidden, false);
  return activate(net, y + net.param(name + ".bias", y.dims(), Init::glorot), options.activation);
}

Value combine(Napa& net, Value sum, Value own, const ModelOptions& options) {
  if (options.knobs.at("authors") == 0) {
    const Value y =
        net.linear(sum + own, "w1", options.hidden, false) + net.linear(sum * own, "w2", options.hidden, false);
    return activate(net, net.norm(y, "norm", options.norm), options.activation);
  }
  const Value first = map_of_authors(net, sum, "w1", options);
  const Value second = map_of_authors(net, sum * own, "w2", options);
  return net.norm(first + second, "norm", options.norm);
}

Value build_ngcf(Napa& net, const ModelOptions& options) {
  Value x = net.dropout(net.features(options.in_dim), options.input_dropout);
  std::vector<Value> outputs = {x};
  for (int l = 0; l < options.layers; ++l) {
    net.begin_layer(l);
    const Value sum = weighted_sum(net, x, options);
    for (Value& earlier : outputs) earlier = net.self(earlier);
    const Value own = net.self(x);
    Value y = combine(net, sum, own, options);
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

std::vector<ModelEntry> models_in_ngcf() {
  return {{{.name = "ngcf",
            .about = "neural graph collaborative filtering: neighbours and their products with the node itself",
            .supports_edge_weight = true,
            .activation = "leaky_relu",
            .knobs = {{"normalize", 0.0, "1: layers' results enter the embedding as rows of length 1"},
                      {"authors", 0.0, "1: layers of the authors' program: means, biases, both maps activated apart"},
                      edge_dropout_knob()}},
           build_ngcf}};
}

}  // namespace nacre
