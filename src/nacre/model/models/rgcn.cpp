// RGCN (Schlichtkrull et al., 2018): y_i = x_i·W_root + b + Σ_r mean of x_j·W_r over the
// in-neighbours j with relation r. The mean is computed with the coefficient 1/(edges of the same
// destination and type) on each edge. With bases, W_r = Σ_b comp_rb · basis_b.
#include "nacre/model/builtin.h"
#include "nacre/model/stack.h"

namespace nacre {

namespace {

Value relation_weights(Napa& net, int64_t in, int64_t out, int bases) {
  if (bases == 0) return net.type_param("weight", {in, out}, Init::glorot);
  const Value basis = net.param("weight", {bases, in, out}, Init::glorot);
  const Value comp = net.type_param("comp", {bases}, Init::glorot);
  return net.reshape(net.matmul(comp, net.reshape(basis, {bases, in * out})), {in, out});
}

Value build_rgcn(Napa& net, const ModelOptions& options) {
  return stack_layers(net, options, [&](Value x, int64_t out, bool) {
    const Value weights = relation_weights(net, x.width(), out, options.num_bases);
    const Value message = net.typed_matmul(net.src(x), weights);
    const Value y = net.pull(message, Aggregate::mix, net.inv(net.typed_degree(x)));
    return y + net.linear(net.self(x), "root", out);
  });
}

}  // namespace

std::vector<ModelEntry> models_in_rgcn() {
  return {{{.name = "rgcn", .about = "relational graph convolution, one weight per edge type", .needs_types = true},
           build_rgcn}};
}

}  // namespace nacre
