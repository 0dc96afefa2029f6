// GraphSAGE (Hamilton et al., 2017): y_i = AGG_j(x_j) · W_l + b + x_i · W_r. With edge weights w,
// the sum is Σ w·x and the mean Σ w·x / Σ w. The LSTM reads the neighbours in the order of their
// ids; its state is as wide as its input, but at most `hidden`.
#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/model/builtin.h"
#include "nacre/model/stack.h"

namespace nacre {

namespace {

Value neighbours(Napa& net, Value x, int64_t out, const ModelOptions& options) {
  if (options.aggregator == "lstm") {
    return net.linear(net.pull_lstm(x, "lstm", std::min(x.width(), options.hidden)), "lin_l", out);
  }
  PullOptions how;
  how.aggregate = options.aggregator == "sum"   ? Aggregate::sum
                  : options.aggregator == "max" ? Aggregate::max
                                                : Aggregate::mean;
  how.weighting = net.edge_weight(x);
  return net.pull_linear(x, "lin_l", out, how);
}

Value build_sage(Napa& net, const ModelOptions& options) {
  if (options.edge_weighted && options.aggregator != "sum" && options.aggregator != "mean") {
    throw UserError("model sage",
                    "the aggregator '" + options.aggregator + "' does not use edge weights, but the graph has them",
                    "use --aggr mean or sum, or add --ignore-edge-weights");
  }
  return stack_layers(net, options, [&](Value x, int64_t out, bool) {
    const Value root = net.linear(net.self(x), "lin_r", out, false);
    return neighbours(net, x, out, options) + root;
  });
}

}  // namespace

std::vector<ModelEntry> models_in_sage() {
  return {{{.name = "sage",
            .about = "GraphSAGE: adds products of the node's own row and of its aggregated neighbours",
            .supports_edge_weight = true,
            .aggregators = {"mean", "sum", "max", "lstm"}},
           build_sage},
          {{.name = "sage-lstm", .about = "GraphSAGE with an LSTM over the neighbours", .aggregators = {"lstm"}},
           build_sage}};
}

}  // namespace nacre
