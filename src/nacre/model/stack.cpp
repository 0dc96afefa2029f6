#include "nacre/model/stack.h"

namespace nacre {

Value stack_layers(Napa& net, const ModelOptions& options, const LayerFunction& layer) {
  Value x = net.dropout(net.features(options.in_dim), options.input_dropout);
  for (int l = 0; l < options.layers; ++l) {
    net.begin_layer(l);
    const bool last = l + 1 == options.layers;
    Value y = layer(x, options.width(l), last);
    if (!last) {
      y = net.activation(net.norm(y, "norm", options.norm), options.activation);
      if (options.residual && x.dims() == y.dims()) y = y + (x.layer() == y.layer() ? x : net.self(x));
      if (options.embeddings && l + 2 == options.layers) net.output("embedding", y);
      y = net.dropout(y, options.dropout);
    }
    x = y;
  }
  net.end_layers();
  return x;
}

}  // namespace nacre
