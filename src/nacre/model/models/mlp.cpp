// MLP: uses only the features. It is the baseline that a graph model has to beat.
#include "nacre/model/builtin.h"
#include "nacre/model/stack.h"

namespace nacre {

namespace {

Value build_mlp(Napa& net, const ModelOptions& options) {
  return stack_layers(net, options, [&](Value x, int64_t out, bool) { return net.linear(x, "lin", out); });
}

}  // namespace

std::vector<ModelEntry> models_in_mlp() {
  return {{{.name = "mlp", .about = "multi-layer perceptron, which ignores the edges"}, build_mlp}};
}

}  // namespace nacre
