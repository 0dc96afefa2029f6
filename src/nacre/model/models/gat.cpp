// GAT (Veličković et al., 2018): z = x·W in heads; α_ij = softmax_j leaky_relu(a_src·z_j +
// a_dst·z_i); y_i = b + Σ_j α_ij · z_j. The heads are concatenated on hidden layers and averaged on
// the last layer. Since a_src·z_j and a_dst·z_i are computed at vertices, an edge carries only one
// number for each head.
#include "nacre/model/attention.h"
#include "nacre/model/builtin.h"

namespace nacre {

namespace {

Value build_gat(Napa& net, const ModelOptions& options) {
  return stack_layers(net, options, [&](Value x, int64_t out, bool last) {
    const int64_t heads = last ? options.out_heads : options.heads;
    const Value z = net.split_heads(net.linear(x, "lin", last ? out * heads : out, false), heads);
    const Value at_src = net.dot(z, "att_src");
    const Value at_dst = net.dot(z, "att_dst");
    const Value score =
        net.neighbor_apply(at_src, at_dst, [&](Value s, Value d) { return net.leaky_relu(s + d, kAttentionSlope); });
    return attend(net, options, z, score, last);
  });
}

}  // namespace

std::vector<ModelEntry> models_in_gat() {
  return {{{.name = "gat", .about = "graph attention", .needs_self_loops = true, .heads = 4, .activation = "elu"},
           build_gat}};
}

}  // namespace nacre
