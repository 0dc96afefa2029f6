// A toy: y_i = mean_j(x_j) · W + sharpness · x_i · W_self.
#include "nacre/model/builtin.h"
#include "nacre/model/stack.h"

namespace nacre {

namespace {

Value build(Napa& net, const ModelOptions& options) {
  return stack_layers(net, options, [&](Value x, int64_t out, bool) {
    const Value own = net.linear(net.self(x), "self", out, false);
    return net.pull_linear(x, "lin", out, {.aggregate = Aggregate::mean}) + options.knobs.at("sharpness") * own;
  });
}

}  // namespace

std::vector<ModelEntry> models_in_toy() {
  return {{{.name = "toy",
            .about = "mean of the neighbours beside the vertex itself",
            .knobs = {{"sharpness", 1.0, "factor of the vertex itself"}}},
           build}};
}

}  // namespace nacre
