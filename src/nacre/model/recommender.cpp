#include "nacre/model/recommender.h"

#include <array>

#include "nacre/base/error.h"
#include "nacre/model/registry.h"

namespace nacre {

namespace {

// Returns a DFG with only the node `output`, which is named `name`, and the nodes it needs. The
// model's last layer and its parameters are dropped.
Dfg only(const Dfg& dfg, const std::string& name, NodeRef output) {
  Dfg copy(dfg.name());
  for (const Node& node : dfg.nodes()) copy.add(node);
  for (const auto& [state, node] : dfg.updates()) copy.set_update(state, node);
  copy.set_output(name, output);
  return prune(copy);
}

// Returns the first embedding of the model (what the model starts from), at the vertices that x
// lives at.
Value first_embedding(Napa& net, const ModelOptions& options, Value x) {
  Value first = net.features(options.in_dim);
  while (first.layer() < x.layer()) first = net.self(first);
  return first;
}

// Returns u·(p − n) of every triple. The dot product of rows that lie side by side is the sum of
// the dot products of their parts, so the parts are not concatenated.
Value margin_of(Napa& net, Value x) {
  const Node& node = net.dfg()[x.node()];
  if (node.op == Op::concat) {
    const std::array<NodeRef, 2> pieces = {node.inputs[0], node.inputs[1]};
    const Value first = margin_of(net, {&net, pieces[0]});
    return first + margin_of(net, {&net, pieces[1]});
  }
  const Space edges = Space::edge(x.layer());
  const Value user = net.pull(x, Aggregate::sum, net.input("user_share", {edges, {}}));
  const Value difference = net.pull(x, Aggregate::sum, net.input("item_share", {edges, {}}));
  return net.row_sum(user * difference, 0);
}

Value bpr_loss(Napa& net, const ModelOptions& options, Value x, double decay) {
  const Space triples = Space::vertex(x.layer() + 1);
  const Value margin = net.reshape(margin_of(net, x), {1});
  const Value weight = net.input("loss_weight", {triples, {}});
  const Value loss = net.add(Op::bce, {margin, net.input("target", {triples, {1}, DType::u8}), weight});
  if (decay == 0) return loss;
  const Value first = net.src(first_embedding(net, options, x));
  const Value squares = net.pull(net.row_sum(first * first, 0), Aggregate::sum);
  return loss + (decay / 2) * net.add(Op::column_sum, {squares * weight});
}

}  // namespace

Dfg build_recommender(const ModelOptions& options, double embedding_decay) {
  ModelOptions given = options;
  given.loss = "none";
  given.out_dim = 1;
  given.embeddings = true;
  const ModelOptions complete = complete_options(given);
  Dfg dfg(complete.model);
  Napa net(dfg, {.training = complete.training, .edge_weighted = complete.edge_weighted, .kinds = complete.kinds});
  find_model(complete.model).build(net, complete);
  const NodeRef embedding = dfg.find_output("embedding");
  if (embedding < 0) {
    throw UserError("model " + complete.model,
                    "has no hidden layer whose values could be the embeddings of users and items",
                    "use --layers 2 or more, or --model lightgcn or ngcf");
  }
  if (!complete.training) return only(dfg, "embedding", embedding);
  const Value loss = bpr_loss(net, complete, {&net, embedding}, embedding_decay);
  return only(dfg, "loss", loss.node());
}

}  // namespace nacre
