// Tests the structure of the DFGs: text form, operations, names, the place of dense work.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/cases.h"

namespace nacre::test {
namespace {

int count(const Dfg& dfg, Op op) {
  return static_cast<int>(
      std::count_if(dfg.nodes().begin(), dfg.nodes().end(), [&](const Node& n) { return n.op == op; }));
}

std::vector<Node> params(const Dfg& dfg) {
  std::vector<Node> found;
  std::copy_if(dfg.nodes().begin(), dfg.nodes().end(), std::back_inserter(found),
               [](const Node& n) { return n.op == Op::param; });
  return found;
}

const Node& input_of(const Dfg& dfg, const Node& node, size_t i = 0) { return dfg[node.inputs.at(i)]; }

const Node& first(const Dfg& dfg, Op op, int skip = 0) {
  for (const Node& node : dfg.nodes()) {
    if (node.op == op && skip-- == 0) return node;
  }
  throw std::runtime_error("no such node");
}

ModelOptions options_of(const std::string& model, int64_t in, int64_t hidden, int64_t out) {
  ModelOptions o;
  o.model = model;
  o.in_dim = in;
  o.hidden = hidden;
  o.out_dim = out;
  o.num_edge_types = model_info(model).needs_types ? 3 : 0;
  return o;
}

class Structure : public testing::TestWithParam<ModelCase> {
 protected:
  ModelOptions options(bool training) const {
    ModelOptions o = GetParam().options;
    o.num_edge_types = 3;
    o.dropout = 0.5;
    o.input_dropout = 0.1;
    o.training = training;
    return o;
  }
};

TEST_P(Structure, text_form_reads_back) {
  Dfg dfg = build_model(options(true));
  EXPECT_EQ(parse_dfg(print_dfg(dfg)), dfg);
  differentiate(dfg);
  dfg.validate();
  EXPECT_EQ(parse_dfg(print_dfg(dfg)), dfg);
}

TEST_P(Structure, every_node_is_needed) {
  const Dfg dfg = build_model(options(true));
  EXPECT_EQ(prune(dfg), dfg);
}

TEST_P(Structure, evaluation_has_the_same_parameters_and_nothing_random) {
  const Dfg train = build_model(options(true));
  const Dfg eval = build_model(options(false));
  // NGCF also drops out what its last layer adds to the embedding.
  EXPECT_EQ(count(train, Op::dropout), GetParam().options.layers + (GetParam().options.model == "ngcf" ? 1 : 0));
  EXPECT_EQ(count(eval, Op::dropout), 0);
  EXPECT_EQ(count(eval, Op::column_moments), 0);
  EXPECT_TRUE(eval.updates().empty());
  EXPECT_EQ(params(train), params(eval));
}

TEST_P(Structure, dropouts_differ) {
  const Dfg dfg = build_model(options(true));
  std::set<uint64_t> salts;
  for (const Node& node : dfg.nodes()) {
    if (node.op != Op::dropout) continue;
    EXPECT_TRUE(salts.insert(node.salt).second);
  }
}

TEST_P(Structure, spans_one_block_per_layer) {
  const Dfg dfg = build_model(options(true));
  EXPECT_EQ(dfg.num_layers(), GetParam().options.model == "mlp" ? 0 : GetParam().options.layers);
  const ValueType logits = dfg[dfg.output("logits")].type;
  EXPECT_EQ(logits, (ValueType{Space::vertex(dfg.num_layers()), {3}}));
}

TEST_P(Structure, edge_weights_are_read_in_every_layer) {
  const Dfg dfg = build_model(options(true));
  for (int l = 0; l < dfg.num_layers(); ++l) {
    EXPECT_EQ(dfg.find_leaf("edge_weight." + std::to_string(l)) >= 0, GetParam().options.edge_weighted);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Structure, testing::ValuesIn(model_cases()),
                         [](const auto& of) { return of.param.name; });

// Which order is cheapest depends on widths, graph and machine, so the planner chooses
// (plan/sites.h).
TEST(Gcn, sums_before_it_multiplies_whatever_the_widths) {
  const Dfg dfg = build_model(options_of("gcn", 5, 8, 3));
  EXPECT_EQ(count(dfg, Op::matmul), 2);
  EXPECT_EQ(count(dfg, Op::index_add), 2);
  EXPECT_EQ(first(dfg, Op::index_add, 0).type.dims, Dims{5});
  EXPECT_EQ(first(dfg, Op::index_add, 1).type.dims, Dims{8});
  for (int l = 0; l < 2; ++l) EXPECT_EQ(input_of(dfg, first(dfg, Op::matmul, l)).op, Op::index_add);
}

TEST(Gcn, first_aggregation_depends_on_no_parameter) {
  const Dfg dfg = build_model(options_of("gcn", 5, 8, 3));
  std::vector<bool> trained;
  for (int i = 0; i < dfg.size(); ++i) {
    bool depends = dfg[i].op == Op::param;
    for (const NodeRef in : dfg[i].inputs) depends = depends || trained[static_cast<size_t>(in)];
    trained.push_back(depends);
    if (dfg[i].op == Op::index_add && dfg[i].type.space.layer == 1) {
      EXPECT_FALSE(depends);
    }
  }
}

TEST(Gcn, parameters_are_named_as_users_know_them) {
  std::vector<std::string> names;
  for (const Node& node : params(build_model(options_of("gcn", 5, 8, 3)))) {
    names.push_back(node.name + " " + type_text(node.type));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.lin.weight p[5,8]", "layers.0.lin.bias p[8]",
                                             "layers.1.lin.weight p[8,3]", "layers.1.lin.bias p[3]"}));
}

TEST(Sage, max_is_never_moved_behind_the_linear_map) {
  ModelOptions options = options_of("sage", 9, 4, 2);
  options.aggregator = "max";
  const Dfg dfg = build_model(options);
  EXPECT_EQ(first(dfg, Op::index_max).type.dims, Dims{9});
}

// As in the paper, the input of every step is projected, which is the same for all edges of a
// source.
TEST(Sage, the_lstm_projects_messages_on_edges) {
  const Dfg dfg = build_model(options_of("sage-lstm", 5, 8, 3));
  for (int l = 0; l < 2; ++l) {
    const Node& lstm = first(dfg, Op::lstm, l);
    EXPECT_EQ(input_of(dfg, lstm).type.space, Space::edge(l));
    const Node& product = input_of(dfg, input_of(dfg, lstm));
    EXPECT_EQ(product.op, Op::matmul);
    EXPECT_EQ(input_of(dfg, product).op, Op::index);
    EXPECT_EQ(input_of(dfg, product).attr, Attr::src);
  }
}

TEST(Gat, published_cora_setting) {
  ModelOptions options = options_of("gat", 1433, 64, 7);
  options.heads = 8;
  options.dropout = options.input_dropout = options.attention_dropout = 0.6;
  const Dfg dfg = build_model(options);
  EXPECT_EQ(dfg[dfg.find_leaf("layers.0.att_src")].type.dims, (Dims{8, 8}));
  EXPECT_EQ(dfg[dfg.find_leaf("layers.1.att_src")].type.dims, (Dims{1, 7}));
  EXPECT_EQ(dfg[dfg.find_leaf("layers.1.lin.weight")].type.dims, (Dims{64, 7}));
  EXPECT_EQ(count(dfg, Op::dropout), 4);
  EXPECT_EQ(count(dfg, Op::elu), 1);
  EXPECT_EQ(count(dfg, Op::edge_softmax), 2);
  EXPECT_EQ(first(dfg, Op::leaky_relu).alpha, 0.2);
}

TEST(Gat, wide_edge_values_are_messages_only) {
  const Dfg dfg = build_model(options_of("gat", 10, 64, 7));
  for (const Node& node : dfg.nodes()) {
    const bool message = node.op == Op::mul || (node.op == Op::index && node.attr == Attr::src);
    if (node.type.space.kind != SpaceKind::edge || message) continue;
    EXPECT_LE(node.type.row_size(), 4) << op_info(node.op).name;
  }
}

TEST(Rgcn, messages_are_index_typed_matmul_mul_index_add) {
  const Dfg dfg = build_model(options_of("rgcn", 5, 8, 3));
  for (int l = 0; l < 2; ++l) {
    const Node& sum = first(dfg, Op::index_add, l);
    const Node& scaled = input_of(dfg, sum);
    const Node& product = input_of(dfg, scaled);
    EXPECT_EQ(sum.attr, Attr::dst);
    EXPECT_EQ(scaled.op, Op::mul);
    EXPECT_EQ(input_of(dfg, scaled, 1).op, Op::inv);
    EXPECT_EQ(product.op, Op::typed_matmul);
    EXPECT_EQ(input_of(dfg, product).op, Op::index);
    EXPECT_EQ(input_of(dfg, product).attr, Attr::src);
  }
}

TEST(Rgcn, bases_share_weights_between_types) {
  ModelOptions options = options_of("rgcn", 5, 8, 3);
  options.num_bases = 2;
  const Dfg dfg = build_model(options);
  EXPECT_EQ(dfg[dfg.find_leaf("layers.0.weight")].type, (ValueType{Space::param(), {2, 5, 8}}));
  EXPECT_EQ(dfg[dfg.find_leaf("layers.0.comp")].type, (ValueType{Space::type(), {2}}));
}

TEST(Kinds, are_projected_or_learned_and_then_joined) {
  ModelOptions options = options_of("rgcn", 0, 8, 3);
  options.kinds = {{"paper", 10, 5}, {"author", 4, 0}, {"field", 6, 2}};
  Dfg dfg = build_model(options);
  std::vector<std::string> names;
  for (const Node& node : dfg.nodes()) {
    if (node.op == Op::input || node.op == Op::param) names.push_back(node.name + " " + type_text(node.type));
  }
  names.resize(7);
  EXPECT_EQ(names, (std::vector<std::string>{"x.paper r10[5]", "input.paper.weight p[5,8]", "input.paper.bias p[8]",
                                             "embedding.author.weight r4[8]", "x.field r6[2]",
                                             "input.field.weight p[2,8]", "input.field.bias p[8]"}));
  EXPECT_EQ(dfg.find_leaf("x"), -1);
  EXPECT_EQ(type_text(first(dfg, Op::join_rows).type), "v0[8]");
  EXPECT_EQ(dfg.num_layers(), 2);
  EXPECT_EQ(prune(dfg), dfg);
  options.training = false;
  EXPECT_EQ(params(build_model(options)), params(dfg));
  differentiate(dfg);
  dfg.validate();
  EXPECT_EQ(parse_dfg(print_dfg(dfg)), dfg);
  EXPECT_EQ(dfg[dfg.output("grad:embedding.author.weight")].ints, (std::vector<int64_t>{10, 4}));
}

TEST(Kinds, width_is_that_of_the_hidden_layers_unless_chosen) {
  ModelOptions options = options_of("gcn", 0, 8, 3);
  options.kinds = {{"a", 3, 2}, {"b", 3, 2}};
  EXPECT_EQ(complete_options(options).in_dim, 8);
  options.in_dim = 5;
  EXPECT_EQ(type_text(first(build_model(options), Op::join_rows).type), "v0[5]");
}

// The stage belongs to no layer, wherever a model asks for its features, and it exists once.
TEST(Kinds, features_are_made_once) {
  Dfg dfg;
  Napa net(dfg, {.kinds = {{"a", 3, 2}, {"b", 3, 0}}});
  net.begin_layer(1);
  const Value x = net.features(4);
  EXPECT_EQ(net.features(4).node(), x.node());
  EXPECT_GE(dfg.find_leaf("input.a.weight"), 0);
  net.linear(x, "lin", 2);
  EXPECT_GE(dfg.find_leaf("layers.1.lin.weight"), 0);
}

TEST(Names, tell_the_layer_of_a_parameter) {
  EXPECT_EQ(layer_of_parameter("layers.12.lin.weight"), 12);
  for (const char* other : {"input.a.weight", "layers.", "layers.x.lin.weight", ""})
    EXPECT_EQ(layer_of_parameter(other), std::nullopt) << other;
}

TEST(Loss, leaves_have_the_types_callers_bind) {
  ModelOptions options = options_of("gcn", 5, 8, 3);
  Dfg dfg = build_model(options);
  EXPECT_EQ(type_text(dfg[dfg.find_leaf("label")].type), "v2[]:i32");
  EXPECT_EQ(type_text(dfg[dfg.find_leaf("loss_weight")].type), "v2[]");
  options.loss = "bce";
  dfg = build_model(options);
  EXPECT_EQ(type_text(dfg[dfg.find_leaf("target")].type), "v2[3]:u8");
  options.loss = "none";
  dfg = build_model(options);
  EXPECT_EQ(dfg.find_output("loss"), -1);
  EXPECT_EQ(dfg.outputs().size(), 1u);
}

}  // namespace
}  // namespace nacre::test
