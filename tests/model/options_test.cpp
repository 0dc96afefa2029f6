// Options that do not fit are refused in one clear line, and the registry accepts a user's models.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "nacre/base/error.h"
#include "nacre/model/model.h"

namespace nacre::test {
namespace {

ModelOptions good(const std::string& model = "gcn") {
  ModelOptions o;
  o.model = model;
  o.in_dim = 5;
  o.hidden = 8;
  o.out_dim = 3;
  o.num_edge_types = 4;
  return o;
}

std::string refusal(const ModelOptions& options) {
  try {
    build_model(options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

struct BadCase {
  std::string name;
  std::string model;
  std::function<void(ModelOptions&)> change;
  std::string message;  // a part of the message
};

const std::vector<BadCase>& bad_cases() {
  static const std::vector<BadCase> cases = {
      {"misspelt_model", "gcnn", [](ModelOptions&) {}, "did you mean 'gcn'?"},
      {"unknown_model", "transformer9000", [](ModelOptions&) {}, "choose gat, "},
      {"empty_model", "", [](ModelOptions&) {}, "unknown model ''"},
      {"no_layers", "gcn", [](ModelOptions& o) { o.layers = 0; }, "layers: 0 is out of range"},
      {"negative_layers", "gcn", [](ModelOptions& o) { o.layers = -2; }, "layers"},
      {"no_in_dim", "gcn", [](ModelOptions& o) { o.in_dim = 0; }, "in_dim"},
      {"kinds_alike", "gcn",
       [](ModelOptions& o) {
         o.kinds = {{"a", 3, 2}, {"a", 4, 2}};
       },
       "two kinds"},
      {"kind_of_negative_width", "gcn",
       [](ModelOptions& o) {
         o.kinds = {{"a", 3, -2}};
       },
       "features of a kind"},
      {"kind_of_negative_size", "gcn",
       [](ModelOptions& o) {
         o.kinds = {{"a", -3, 2}};
       },
       "nodes of a kind"},
      {"no_out_dim", "gcn", [](ModelOptions& o) { o.out_dim = 0; }, "out_dim"},
      {"negative_hidden", "gcn", [](ModelOptions& o) { o.hidden = -1; }, "hidden"},
      {"enormous_hidden", "gcn", [](ModelOptions& o) { o.hidden = int64_t{1} << 60; }, "hidden"},
      {"dropout_one", "gcn", [](ModelOptions& o) { o.dropout = 1; }, "dropout"},
      {"dropout_nan", "gcn", [](ModelOptions& o) { o.dropout = std::nan(""); }, "dropout"},
      {"input_dropout_negative", "gcn", [](ModelOptions& o) { o.input_dropout = -0.1; }, "input_dropout"},
      {"activation", "gcn", [](ModelOptions& o) { o.activation = "rleu"; }, "did you mean 'relu'?"},
      {"norm", "gcn", [](ModelOptions& o) { o.norm = "bach"; }, "did you mean 'batch'?"},
      {"loss", "gcn", [](ModelOptions& o) { o.loss = "mse"; }, "loss: unknown loss 'mse'"},
      {"heads_without_attention", "gcn", [](ModelOptions& o) { o.heads = 4; }, "has no attention"},
      {"aggregator_without_choice", "gcn", [](ModelOptions& o) { o.aggregator = "max"; }, "no choice of aggregator"},
      {"aggregator", "sage", [](ModelOptions& o) { o.aggregator = "men"; }, "did you mean 'mean'?"},
      {"lstm_only", "sage-lstm", [](ModelOptions& o) { o.aggregator = "mean"; }, "aggregator"},
      {"uneven_heads", "gat", [](ModelOptions& o) { o.heads = 3; }, "hidden 8 cannot be divided among 3 heads"},
      {"negative_heads", "gat", [](ModelOptions& o) { o.heads = -1; }, "heads: -1 is out of range"},
      {"no_out_heads", "gat", [](ModelOptions& o) { o.out_heads = 0; }, "out_heads"},
      {"weights_gat", "gat", [](ModelOptions& o) { o.edge_weighted = true; }, "does not use edge weights"},
      {"weights_rgcn", "rgcn", [](ModelOptions& o) { o.edge_weighted = true; }, "does not use edge weights"},
      {"weights_gin", "gin", [](ModelOptions& o) { o.edge_weighted = true; }, "does not use edge weights"},
      {"weights_mlp", "mlp", [](ModelOptions& o) { o.edge_weighted = true; }, "does not use edge weights"},
      {"weights_sage_lstm", "sage-lstm", [](ModelOptions& o) { o.edge_weighted = true; }, "does not use edge weights"},
      {"weights_max", "sage",
       [](ModelOptions& o) {
         o.edge_weighted = true;
         o.aggregator = "max";
       },
       "the aggregator 'max' does not use edge weights"},
      {"untyped", "rgcn", [](ModelOptions& o) { o.num_edge_types = 0; }, "needs edge types"},
      {"too_many_bases", "rgcn", [](ModelOptions& o) { o.num_bases = 5; }, "num_bases 5 is out of range"},
      {"bases_without_types", "gcn", [](ModelOptions& o) { o.num_bases = 2; }, "--num-bases has no effect"},
      {"edge_dropout_one", "lightgcn", [](ModelOptions& o) { o.knobs["edge-dropout"] = 1; },
       "edge-dropout: 1 is not a share"},
      {"edge_dropout_negative", "ngcf", [](ModelOptions& o) { o.knobs["edge-dropout"] = -0.1; },
       "edge-dropout: -0.1 is not a share"},
      {"knob_spelling", "ngcf", [](ModelOptions& o) { o.knobs["edge_dropout"] = 0.1; }, "did you mean 'edge-dropout'?"},
      {"unknown_knob", "gcn", [](ModelOptions& o) { o.knobs["alpha"] = 1; }, "has no setting 'alpha'"},
  };
  return cases;
}

TEST(Options, bad_ones_are_refused_in_one_line) {
  for (const BadCase& bad : bad_cases()) {
    SCOPED_TRACE(bad.name);
    ModelOptions options = good(bad.model);
    bad.change(options);
    const std::string message = refusal(options);
    EXPECT_NE(message.find(bad.message), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(Options, every_model_builds_with_its_defaults) {
  EXPECT_EQ(model_list().size() >= 8, true);
  for (const ModelInfo* info : model_list()) {
    if (info->name.starts_with("test-")) continue;
    EXPECT_EQ(refusal(good(info->name)), "accepted") << info->name;
    EXPECT_FALSE(info->about.empty());
  }
}

TEST(Options, defaults_are_filled_in) {
  const ModelOptions gat = complete_options(good("gat"));
  EXPECT_EQ(gat.heads, 4);
  EXPECT_EQ(gat.activation, "elu");
  EXPECT_EQ(complete_options(good("sage")).aggregator, "mean");
  EXPECT_EQ(complete_options(good("sage-lstm")).aggregator, "lstm");
  EXPECT_EQ(complete_options(good("gcn")).heads, 1);
}

// ---- A user's own models.

Value one_pull(Napa& net, const ModelOptions& o) {
  const Value x = net.features(o.in_dim);
  return net.linear(o.knobs.at("gain") * net.pull(x, Aggregate::sum), "lin", o.out_dim);
}

const RegisterModel registered{{.name = "test-own",
                                .about = "one sum",
                                .supports_edge_weight = true,
                                .knobs = {{"gain", 2.5, "factor of the sum"}}},
                               one_pull};

TEST(Registry, own_model_is_found_and_built) {
  ModelOptions options = good("test-own");
  options.layers = 1;
  const Dfg dfg = build_model(options);
  EXPECT_GE(dfg.find_leaf("lin.weight"), 0);
  bool scaled = false;
  for (const Node& node : dfg.nodes()) scaled = scaled || (node.op == Op::scale && node.alpha == 2.5);
  EXPECT_TRUE(scaled);
  options.knobs["gian"] = 1;
  EXPECT_NE(refusal(options).find("did you mean 'gain'?"), std::string::npos);
}

TEST(Registry, own_model_that_drops_edge_weights_is_refused) {
  ModelOptions options = good("test-own");
  options.edge_weighted = true;
  EXPECT_NE(refusal(options).find("does not use the edge weights of layer 0"), std::string::npos);
}

TEST(Registry, wrong_logits_are_refused) {
  register_model({.name = "test-wrong", .about = "gives features"},
                 [](Napa& net, const ModelOptions& o) { return net.src(net.features(o.in_dim)); });
  EXPECT_NE(refusal(good("test-wrong")).find("gives e0[5] as logits"), std::string::npos);
}

TEST(Registry, misuse_of_the_builder_is_explained) {
  register_model({.name = "test-empty", .about = "uses an empty value"},
                 [](Napa& net, const ModelOptions& o) { return net.features(o.in_dim) + Value(); });
  EXPECT_NE(refusal(good("test-empty")).find("empty value"), std::string::npos);
  register_model({.name = "test-twice", .about = "asks for the degrees of edges"},
                 [](Napa& net, const ModelOptions& o) { return net.in_degree(net.src(net.features(o.in_dim))); });
  EXPECT_NE(refusal(good("test-twice")).find("a vertex value is expected, not e0[5]"), std::string::npos);
}

TEST(Registry, names_are_unique) {
  EXPECT_THROW(register_model({.name = "gcn"}, one_pull), UserError);
  EXPECT_THROW(register_model({.name = ""}, one_pull), UserError);
}

}  // namespace
}  // namespace nacre::test
