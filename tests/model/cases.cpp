#include "model/cases.h"

#include <algorithm>
#include <cmath>

namespace nacre::test {
namespace {

// The widths are 5 → hidden → 3.
ModelOptions base(const std::string& model, int layers, int64_t hidden) {
  ModelOptions o;
  o.model = model;
  o.layers = layers;
  o.in_dim = 5;
  o.hidden = hidden;
  o.out_dim = 3;
  return o;
}

ModelCase with(const std::string& name, ModelOptions options, const std::function<void(ModelOptions&)>& change) {
  change(options);
  return {name, options};
}

void add_attention(std::vector<ModelCase>& cases, const std::string& model) {
  cases.push_back({model, base(model, 2, 8)});
  cases.push_back(with(model + "_out_heads", base(model, 2, 6), [](ModelOptions& o) { o.heads = 2, o.out_heads = 3; }));
  cases.push_back(with(model + "_one_layer", base(model, 1, 7), [](ModelOptions& o) { o.heads = 2; }));
}

}  // namespace

std::vector<ModelCase> model_cases() {
  std::vector<ModelCase> cases;
  cases.push_back({"gcn", base("gcn", 2, 7)});
  cases.push_back({"gcn_narrow", base("gcn", 3, 2)});
  cases.push_back(with("gcn_weighted", base("gcn", 2, 4), [](ModelOptions& o) { o.edge_weighted = true; }));
  cases.push_back(with("gcn_layer_norm", base("gcn", 3, 5), [](ModelOptions& o) {
    o.norm = "layer";
    o.residual = true;
    o.activation = "tanh";
  }));
  cases.push_back(with("gcn_batch_norm", base("gcn", 3, 5), [](ModelOptions& o) { o.norm = "batch"; }));
  cases.push_back(with("gcn_bce", base("gcn", 2, 4), [](ModelOptions& o) { o.loss = "bce"; }));
  for (const char* loss : {"cross_entropy", "bce"}) {
    cases.push_back(with(std::string("gcn_smoothed_") + loss, base("gcn", 2, 4), [&](ModelOptions& o) {
      o.loss = loss;
      o.label_smoothing = 0.15;
    }));
  }
  for (const char* aggregator : {"mean", "sum", "max", "lstm"}) {
    cases.push_back(with(std::string("sage_") + aggregator, base("sage", 2, 6),
                         [&](ModelOptions& o) { o.aggregator = aggregator; }));
  }
  for (const char* aggregator : {"mean", "sum"}) {
    cases.push_back(with(std::string("sage_weighted_") + aggregator, base("sage", 2, 4), [&](ModelOptions& o) {
      o.aggregator = aggregator;
      o.edge_weighted = true;
    }));
  }
  cases.push_back({"sage_lstm_narrow", base("sage-lstm", 2, 3)});
  add_attention(cases, "gat");
  add_attention(cases, "gatv2");
  cases.push_back({"rgcn", base("rgcn", 2, 4)});
  cases.push_back(with("rgcn_bases", base("rgcn", 2, 6), [](ModelOptions& o) { o.num_bases = 1; }));
  cases.push_back({"gin", base("gin", 2, 7)});
  cases.push_back(with("gin_narrow", base("gin", 2, 4), [](ModelOptions& o) { o.activation = "leaky_relu"; }));
  cases.push_back({"lightgcn", base("lightgcn", 3, 4)});
  cases.push_back(with("lightgcn_weighted", base("lightgcn", 2, 6), [](ModelOptions& o) { o.edge_weighted = true; }));
  cases.push_back({"ngcf", base("ngcf", 2, 6)});
  cases.push_back(with("ngcf_normalized", base("ngcf", 2, 4), [](ModelOptions& o) {
    o.edge_weighted = true;
    o.knobs["normalize"] = 1;
  }));
  cases.push_back(with("ngcf_authors", base("ngcf", 2, 5), [](ModelOptions& o) {
    o.edge_weighted = true;
    o.knobs["authors"] = 1;
  }));
  cases.push_back(with("mlp", base("mlp", 3, 5), [](ModelOptions& o) {
    o.residual = true;
    o.activation = "sigmoid";
  }));
  return cases;
}

std::vector<BlocksInput> block_inputs(uint64_t seed, int layers) {
  std::vector<BlocksInput> inputs;
  for (const GraphCase& c : random_graphs(seed)) inputs.push_back({c.name, Blocks::full(c.graph, layers)});
  for (const BlocksCase& c : random_blocks(seed, layers)) inputs.push_back({c.name, Blocks(c.layers)});
  return inputs;
}

ModelOptions options_for(ModelOptions options, const Blocks& blocks) {
  options.num_edge_types = blocks.layer(0).num_edge_types();
  if (options.num_bases > 0) options.num_bases = std::max(1, options.num_edge_types - 1);
  return complete_options(options);
}

ModelOptions with_kinds(ModelOptions options, const Blocks& blocks) {
  const int64_t vertices = blocks.rows(Space::vertex(0));
  const int64_t first = (vertices + 1) / 2;
  const int64_t second = (vertices - first + 1) / 2;
  options.in_dim = 4;
  options.kinds = {{"paper", first, 3}, {"author", second, 0}, {"field", vertices - first - second, 2}};
  return options_for(options, blocks);
}

ref::Bindings model_bindings(const Dfg& dfg, const Blocks& blocks, uint64_t seed) {
  ref::Bindings bindings = random_bindings(dfg, blocks, seed, {.scale = 0.7, .gap = 0.01});
  for (auto& [name, values] : bindings) {
    if (!name.ends_with("running_var")) continue;
    for (double& v : values) v = 0.5 + std::abs(v);
  }
  return bindings;
}

}  // namespace nacre::test
