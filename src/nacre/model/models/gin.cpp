// GIN (Xu et al., 2019): y_i = MLP((1 + ε)·x_i + Σ_j x_j) with a trained ε and an MLP of two linear
// maps. If the first map makes rows shorter, it is applied before the sum, which gives the same
// function.
#include "nacre/model/builtin.h"
#include "nacre/model/stack.h"

namespace nacre {

namespace {

// Returns (1 + ε)·x_i + Σ_j x_j.
Value with_neighbours(Napa& net, Value x) {
  const Value own = net.self(x);
  const Value boosted = own + own * net.param("eps", {}, Init::zeros);
  return net.pull(x, Aggregate::sum) + boosted;
}

Value build_gin(Napa& net, const ModelOptions& options) {
  return stack_layers(net, options, [&](Value x, int64_t out, bool) {
    const int64_t hidden = options.hidden;
    const Value y = hidden < x.width() ? with_neighbours(net, net.linear(x, "nn.0", hidden, false))
                                       : net.linear(with_neighbours(net, x), "nn.0", hidden, false);
    const Value h = net.activation(net.add_bias(y, "nn.0.bias"), options.activation);
    return net.linear(h, "nn.1", out);
  });
}

}  // namespace

std::vector<ModelEntry> models_in_gin() {
  return {{{.name = "gin", .about = "graph isomorphism network: sums, then an MLP"}, build_gin}};
}

}  // namespace nacre
