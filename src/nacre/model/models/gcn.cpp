// GCN (Kipf and Welling, 2017): y_i = b + Σ_j w_ij / √(d_out(j) · d_in(i)) · x_j · W over the
// in-neighbours j, self loops included. The coefficients depend only on the graph, so they are
// computed once. On a directed graph the two degrees differ, which keeps the operator's norm at
// most 1.
#include "nacre/model/builtin.h"
#include "nacre/model/stack.h"

namespace nacre {

namespace {

Value build_gcn(Napa& net, const ModelOptions& options) {
  return stack_layers(net, options, [&](Value x, int64_t out, bool) {
    return net.pull_linear(x, "lin", out, {.weighting = net.symmetric_norm(x)});
  });
}

}  // namespace

std::vector<ModelEntry> models_in_gcn() {
  return {{{.name = "gcn",
            .about = "graph convolution with symmetric normalisation",
            .needs_self_loops = true,
            .supports_edge_weight = true},
           build_gcn}};
}

}  // namespace nacre
