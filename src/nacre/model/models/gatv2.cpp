// GATv2 (Brody et al., 2022): l = x·W_l + b_l, r = x·W_r + b_r in heads; α_ij = softmax_j
// a·leaky_relu(l_j + r_i); y_i = b + Σ_j α_ij · l_j. Unlike GAT's, this attention depends on both
// ends together.
#include "nacre/model/attention.h"
#include "nacre/model/builtin.h"

namespace nacre {

namespace {

Value build_gatv2(Napa& net, const ModelOptions& options) {
  return stack_layers(net, options, [&](Value x, int64_t out, bool last) {
    const int64_t heads = last ? options.out_heads : options.heads;
    const int64_t width = last ? out * heads : out;
    const Value l = net.split_heads(net.linear(x, "lin_l", width), heads);
    const Value r = net.split_heads(net.linear(net.self(x), "lin_r", width), heads);
    const Value score = net.neighbor_apply(
        l, r, [&](Value s, Value d) { return net.dot(net.leaky_relu(s + d, kAttentionSlope), "att"); });
    return attend(net, options, l, score, last);
  });
}

}  // namespace

std::vector<ModelEntry> models_in_gatv2() {
  return {{{.name = "gatv2",
            .about = "graph attention that weighs both ends of an edge together",
            .needs_self_loops = true,
            .heads = 4,
            .activation = "elu"},
           build_gatv2}};
}

}  // namespace nacre
