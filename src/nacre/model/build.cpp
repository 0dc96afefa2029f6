#include "nacre/base/error.h"
#include "nacre/model/registry.h"

namespace nacre {

namespace {

void check_logits(const ModelOptions& options, Value logits) {
  const ValueType type = logits.type();
  if (type.space.kind != SpaceKind::vertex || type.dims != Dims{options.out_dim}) {
    throw UserError("model " + options.model, "gives " + type_text(type) + " as logits",
                    "give a vertex value of width out_dim = " + std::to_string(options.out_dim));
  }
}

// Throws UserError if the model says that it supports edge weights and does not read them in every
// block.
void check_edge_weights(const ModelOptions& options, const Dfg& dfg) {
  if (!options.edge_weighted) return;
  for (int l = 0; l < dfg.num_layers(); ++l) {
    if (dfg.find_leaf("edge_weight." + std::to_string(l)) < 0) {
      throw UserError("model " + options.model, "does not use the edge weights of layer " + std::to_string(l),
                      "read Napa::edge_weight there, or do not set supports_edge_weight");
    }
  }
}

Value add_loss(Napa& net, const ModelOptions& options, Value logits) {
  const Space space = logits.type().space;
  // With weighted_bce, every pair of a vertex and a class has a weight of its own.
  const bool of_each = options.loss == "weighted_bce";
  const Value weight = net.input("loss_weight", {space, of_each ? Dims{options.out_dim} : Dims{}});
  if (options.loss == "bce" || of_each) {
    const Value target = net.input("target", {space, {options.out_dim}, DType::u8});
    return net.add(Op::bce, {logits, target, weight}, Attr::none, options.label_smoothing);
  }
  const Value label = net.input("label", {space, {}, DType::i32});
  const Value lp = net.add(Op::log_softmax, {logits});
  return net.add(Op::nll, {lp, label, weight}, Attr::none, options.label_smoothing);
}

}  // namespace

Dfg build_model(const ModelOptions& options) {
  const ModelOptions complete = complete_options(options);
  Dfg dfg(complete.model);
  Napa net(dfg, {.training = complete.training,
                 .edge_weighted = complete.edge_weighted,
                 .kinds = complete.kinds,
                 .sampling = complete.sampling});
  const Value logits = find_model(complete.model).build(net, complete);
  check_logits(complete, logits);
  check_edge_weights(complete, dfg);
  dfg.set_output("logits", logits.node());
  if (complete.loss != "none") dfg.set_output("loss", add_loss(net, complete, logits).node());
  return dfg;
}

}  // namespace nacre
