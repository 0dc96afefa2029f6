// Compares NGCF and LightGCN, and the loss that recommenders are trained with, with plain loops in
// double and central differences.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/cases.h"
#include "nacre/base/error.h"
#include "nacre/dfg/random.h"
#include "nacre/model/recommender.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

using Row = std::vector<double>;
using Matrix = std::vector<Row>;
constexpr StepContext kStep{5, 3};

Matrix matrix(const Row& flat, size_t width) {
  Matrix rows;
  for (size_t k = 0; k + width <= flat.size(); k += width)
    rows.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(k),
                      flat.begin() + static_cast<std::ptrdiff_t>(k + width));
  return rows;
}

Row times(const Row& x, const Row& weight, size_t out) {
  Row y(out, 0.0);
  for (size_t k = 0; k < x.size(); ++k) {
    for (size_t n = 0; n < out; ++n) y[n] += x[k] * weight[k * out + n];
  }
  return y;
}

double knob(const ModelOptions& options, const std::string& name) {
  return options.knobs.contains(name) ? options.knobs.at(name) : 0;
}

// The dropout of edges is the first of the model's dropouts.
void drop_edges(Row& c, double share) {
  const DropoutStream stream(kStep.seed, 1, kStep.step);
  for (size_t e = 0; e < c.size() && share > 0; ++e)
    c[e] = dropout_keep(stream, e, dropout_threshold(share)) ? c[e] / (1 - share) : 0;
}

// Returns c_ij of block l for each edge, by weighted degrees if the weights of the graph count.
Row coefficients(const Blocks& blocks, int l, const ref::Bindings& bindings, const ModelOptions& options) {
  const Graph& g = blocks.layer(l);
  Row in(static_cast<size_t>(g.num_dst()), 0.0), out(static_cast<size_t>(g.num_src()), 0.0);
  Row c(static_cast<size_t>(g.num_edges()), 1.0);
  if (options.edge_weighted) c = bindings.at("edge_weight." + std::to_string(l));
  for (int64_t i = 0; i < g.num_dst(); ++i) {
    for (int64_t e = g.row_ptr()[i]; e < g.row_ptr()[i + 1]; ++e) {
      in[static_cast<size_t>(i)] += c[static_cast<size_t>(e)];
      out[g.col_idx()[e]] += c[static_cast<size_t>(e)];
    }
  }
  for (int64_t i = 0; i < g.num_dst(); ++i) {
    for (int64_t e = g.row_ptr()[i]; e < g.row_ptr()[i + 1]; ++e)
      c[static_cast<size_t>(e)] /= std::sqrt(in[static_cast<size_t>(i)] * out[g.col_idx()[e]]);
  }
  if (options.training) drop_edges(c, knob(options, "edge-dropout"));
  return c;
}

// The equations of the papers, message by message.
class Plain {
 public:
  Plain(const ModelOptions& options, const Blocks& blocks, const ref::Bindings& bindings)
      : o_(options), blocks_(blocks), bindings_(bindings) {}

  Matrix embedding(Matrix x) const {
    Matrix all = x;
    for (int l = 0; l < o_.layers; ++l) {
      const Matrix y = o_.model == "ngcf" ? ngcf_layer(l, x) : lightgcn_layer(l, x);
      all.resize(y.size());
      for (size_t i = 0; i < y.size(); ++i) {
        double squares = 0;
        for (const double v : y[i]) squares += v * v;
        const bool shorten = knob(o_, "normalize") != 0;
        for (size_t k = 0; k < y[i].size(); ++k) {
          if (o_.model == "ngcf") all[i].push_back(shorten ? y[i][k] / std::sqrt(squares + 1e-12) : y[i][k]);
          if (o_.model == "lightgcn") all[i][k] += y[i][k];
        }
      }
      x = y;
    }
    for (Row& row : all) {
      for (double& v : row) v /= o_.model == "lightgcn" ? o_.layers + 1 : 1;
    }
    return all;
  }

 private:
  Matrix lightgcn_layer(int l, const Matrix& x) const {
    const Row c = coefficients(blocks_, l, bindings_, o_);
    Matrix y(static_cast<size_t>(blocks_.layer(l).num_dst()), Row(x[0].size(), 0.0));
    each_edge(l, [&](size_t i, size_t e, size_t j) {
      for (size_t k = 0; k < x[j].size(); ++k) y[i][k] += c[e] * x[j][k];
    });
    return y;
  }

  Matrix ngcf_layer(int l, const Matrix& x) const {
    const Row c = coefficients(blocks_, l, bindings_, o_);
    const Row& w1 = bindings_.at("layers." + std::to_string(l) + ".w1.weight");
    const Row& w2 = bindings_.at("layers." + std::to_string(l) + ".w2.weight");
    const auto out = static_cast<size_t>(o_.hidden);
    Matrix y;
    for (int64_t i = 0; i < blocks_.layer(l).num_dst(); ++i) y.push_back(times(x[static_cast<size_t>(i)], w1, out));
    each_edge(l, [&](size_t i, size_t e, size_t j) {
      Row product = x[j];
      for (size_t k = 0; k < product.size(); ++k) product[k] *= x[i][k];
      const Row a = times(x[j], w1, out), b = times(product, w2, out);
      for (size_t n = 0; n < out; ++n) y[i][n] += c[e] * (a[n] + b[n]);
    });
    for (Row& row : y) {
      for (double& v : row) v = v > 0 ? v : 0.2 * v;
    }
    return y;
  }

  template <class F>
  void each_edge(int l, F f) const {
    const Graph& g = blocks_.layer(l);
    for (int64_t i = 0; i < g.num_dst(); ++i) {
      for (int64_t e = g.row_ptr()[i]; e < g.row_ptr()[i + 1]; ++e)
        f(static_cast<size_t>(i), static_cast<size_t>(e), g.col_idx()[e]);
    }
  }

  const ModelOptions& o_;
  const Blocks& blocks_;
  const ref::Bindings& bindings_;
};

ModelOptions options_of(const std::string& model, int layers, bool weighted = false) {
  ModelOptions o;
  o.model = model;
  o.layers = layers;
  o.in_dim = 5;
  o.hidden = 4;
  o.out_dim = 3;
  o.edge_weighted = weighted;
  return o;
}

std::vector<ModelOptions> cases() {
  ModelOptions normalized = options_of("ngcf", 2);
  normalized.knobs["normalize"] = 1;
  ModelOptions light = options_of("lightgcn", 3), dropped = options_of("ngcf", 2, true);
  for (ModelOptions* o : {&light, &dropped}) o->knobs["edge-dropout"] = 0.4;
  return {options_of("lightgcn", 3),
          options_of("lightgcn", 1, true),
          options_of("ngcf", 2),
          options_of("ngcf", 1, true),
          normalized,
          light,
          dropped};
}

TEST(Ngcf, and_lightgcn_match_their_formulas) {
  for (const ModelOptions& given : cases()) {
    for (const BlocksInput& input : block_inputs(11, given.layers)) {
      SCOPED_TRACE(given.model + " on " + input.name);
      const ModelOptions options = options_for(given, input.blocks);
      const Dfg dfg = build_model(options);
      const ref::Bindings bindings = model_bindings(dfg, input.blocks, 7);
      ref::Interpreter interpreter(dfg, input.blocks);
      interpreter.run(bindings, kStep);
      Matrix x = matrix(bindings.at("x"), 5);
      if (options.model == "lightgcn") {
        for (Row& row : x) {
          row = times(row, bindings.at("input.weight"), 4);
          for (size_t n = 0; n < 4; ++n) row[n] += bindings.at("input.bias")[n];
        }
      }
      const Matrix all = Plain(options, input.blocks, bindings).embedding(x);
      const Row logits = interpreter.value(dfg.output("logits"));
      ASSERT_EQ(logits.size(), all.size() * 3);
      for (size_t i = 0; i < all.size(); ++i) {
        const Row row = times(all[i], bindings.at("classify.weight"), 3);
        for (size_t n = 0; n < 3; ++n)
          ASSERT_NEAR(logits[3 * i + n], row[n] + bindings.at("classify.bias")[n], 1e-9 * (1 + std::abs(row[n])));
      }
    }
  }
}

// Three triples over a graph of users 0 … 3 and items 4 … 8. User 3 and item 8 have no edges. The
// third triple fills up the batch.
struct Recommendation {
  Blocks blocks;
  ModelOptions options;
  std::vector<NodeId> triples = {0, 4, 7, 2, 6, 4, 0, 0, 0};

  explicit Recommendation(const std::string& model, int layers) : blocks({}) {
    EdgeList edges;
    edges.num_nodes = 9;
    for (const auto& [user, item] : {std::pair<NodeId, NodeId>{0, 4}, {0, 5}, {1, 5}, {1, 6}, {1, 7}, {2, 6}, {2, 6}}) {
      edges.src.insert(edges.src.end(), {user, item});
      edges.dst.insert(edges.dst.end(), {item, user});
    }
    std::vector<Graph> all(static_cast<size_t>(layers), build_graph(edges, "test"));
    GraphArrays block;
    block.num_src = 9;
    block.num_dst = 3;
    block.row_ptr = std::vector<int64_t>{0, 3, 6, 9};
    block.col_idx = triples;
    all.emplace_back(block, "triples");
    blocks = Blocks(all);
    options = options_of(model, layers);
    options.in_dim = 0;
    options.kinds = {{"user", 4, 0}, {"item", 5, 0}};
  }

  ref::Bindings bindings(const Dfg& dfg) const {
    ref::Bindings values = model_bindings(dfg, blocks, 3);
    values["user_share"] = {1, 0, 0, 1, 0, 0, 1, 0, 0};
    values["item_share"] = {0, 1, -1, 0, 1, -1, 0, 1, -1};
    values["target"] = {1, 1, 1};
    values["loss_weight"] = {0.5, 0.5, 0};
    return values;
  }
};

TEST(Recommender, loss_is_bpr_with_decay_of_the_first_embeddings) {
  constexpr double kDecay = 0.3;
  for (const char* model : {"lightgcn", "ngcf"}) {
    for (const int layers : {1, 2, 3}) {
      SCOPED_TRACE(std::string(model) + " of " + std::to_string(layers));
      const Recommendation r(model, layers);
      const Dfg dfg = build_recommender(r.options, kDecay);
      EXPECT_EQ(dfg.num_layers(), layers + 1);
      EXPECT_EQ(parse_dfg(print_dfg(dfg)), dfg);
      EXPECT_LT(dfg.find_leaf("classify.weight"), 0);
      const ref::Bindings bindings = r.bindings(dfg);
      ref::Interpreter interpreter(dfg, r.blocks);
      interpreter.run(bindings, kStep);

      Matrix first = matrix(bindings.at("embedding.user.weight"), 4);
      for (const Row& row : matrix(bindings.at("embedding.item.weight"), 4)) first.push_back(row);
      ModelOptions complete = r.options;
      complete.in_dim = 4;
      const Matrix x = Plain(complete, r.blocks, bindings).embedding(first);
      double want = 0;
      for (size_t t = 0; t < 2; ++t) {
        const NodeId* triple = r.triples.data() + 3 * t;
        double margin = 0, squares = 0;
        for (size_t k = 0; k < x[0].size(); ++k) margin += x[triple[0]][k] * (x[triple[1]][k] - x[triple[2]][k]);
        for (int end = 0; end < 3; ++end) {
          for (const double v : first[triple[end]]) squares += v * v;
        }
        want += 0.5 * (-std::log(1 / (1 + std::exp(-margin))) + kDecay / 2 * squares);
      }
      EXPECT_NEAR(interpreter.scalar(dfg.output("loss")), want, 1e-9);

      ModelOptions forward = r.options;
      forward.training = false;
      const Dfg embed = build_recommender(forward, 0);
      EXPECT_EQ(embed.num_layers(), layers);
      ref::Interpreter embedded(embed, Blocks::full(r.blocks.layer(0), layers));
      embedded.run(bindings, kStep);
      const Row got = embedded.value(embed.output("embedding"));
      for (size_t i = 0; i < x.size(); ++i) {
        for (size_t k = 0; k < x[i].size(); ++k) EXPECT_NEAR(got[i * x[i].size() + k], x[i][k], 1e-9);
      }
    }
  }
}

double loss_at(const Dfg& dfg, const Blocks& blocks, const ref::Bindings& bindings) {
  ref::Interpreter interpreter(dfg, blocks);
  interpreter.run(bindings, kStep);
  return interpreter.scalar(dfg.output("loss"));
}

// Checks along one random direction of every parameter, with a step of `of_layers` for those of
// layers. Dropout is a fixed mask.
void expect_gradients(const Dfg& forward, const Blocks& blocks, const ref::Bindings& bindings,
                      double of_layers = 1e-6) {
  Dfg backward = forward;
  differentiate(backward);
  ref::Interpreter interpreter(backward, blocks);
  interpreter.run(bindings, kStep);
  Rng rng(9);
  for (const Node& node : forward.nodes()) {
    if (node.op != Op::param || node.state) continue;
    ASSERT_GE(backward.find_output("grad:" + node.name), 0) << node.name;
    const Row gradient = interpreter.value(backward.output("grad:" + node.name));
    ref::Bindings ahead = bindings, behind = bindings;
    const double distance = node.name.starts_with("layers.") ? of_layers : 1e-6;
    double analytic = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double d = rng.uniform(-1, 1);
      ahead[node.name][i] += distance * d;
      behind[node.name][i] -= distance * d;
      analytic += gradient[i] * d;
    }
    const double numeric = (loss_at(forward, blocks, ahead) - loss_at(forward, blocks, behind)) / (2 * distance);
    EXPECT_NEAR(analytic, numeric, 1e-5 * std::max({std::abs(analytic), std::abs(numeric), 1e-2})) << node.name;
  }
}

TEST(Ngcf, and_lightgcn_have_the_gradients_of_central_differences) {
  for (const ModelOptions& given : cases()) {
    for (const BlocksInput& input : block_inputs(31, given.layers)) {
      SCOPED_TRACE(given.model + " on " + input.name);
      ModelOptions options = options_for(given, input.blocks);
      options.dropout = 0.4;
      const Dfg dfg = build_model(options);
      expect_gradients(dfg, input.blocks, model_bindings(dfg, input.blocks, 23));
    }
  }
}

// Some rows are divided by their lengths, which are nearly zero. The gradient is large there, but
// finite.
TEST(Ngcf, has_the_gradients_of_central_differences_where_rows_are_next_to_zero) {
  ModelOptions given = options_of("ngcf", 1);
  given.knobs["normalize"] = 1;
  given.activation = "none";
  for (const BlocksInput& input : block_inputs(31, given.layers)) {
    SCOPED_TRACE(input.name);
    const Dfg dfg = build_model(options_for(given, input.blocks));
    for (const double scale : {1e-5, 1e-7, 0.0}) {
      ref::Bindings bindings = model_bindings(dfg, input.blocks, 23);
      for (const char* name : {"layers.0.w1.weight", "layers.0.w2.weight"}) {
        for (double& w : bindings[name]) w *= scale;
      }
      expect_gradients(dfg, input.blocks, bindings, 1e-10);
    }
  }
}

TEST(Recommender, gradients_match_central_differences) {
  for (const char* model : {"lightgcn", "ngcf", "sage", "gcn"}) {
    for (const int layers : {2, 3}) {
      SCOPED_TRACE(model);
      // Models of stacked layers leave out their last one.
      const bool stacked = std::string(model) == "sage" || std::string(model) == "gcn";
      Recommendation r(model, stacked ? layers - 1 : layers);
      r.options.layers = layers;
      r.options.dropout = 0.2;
      const Dfg dfg = build_recommender(r.options, 0.1);
      expect_gradients(dfg, r.blocks, r.bindings(dfg));
    }
  }
}

// Only the coefficients of edges are dropped, for the same edges in all layers, independently of
// what other dropouts draw.
TEST(Recommender, edges_are_dropped_by_their_weights_and_in_training_alone) {
  for (const char* model : {"lightgcn", "ngcf"}) {
    for (const bool authors : {false, true}) {
      ModelOptions options = Recommendation(model, 3).options;
      if (authors && options.model == "lightgcn") continue;
      if (authors) options.knobs["authors"] = 1;
      options.knobs["edge-dropout"] = 0.1;
      options.dropout = 0.2;
      std::set<uint64_t> edge_salts, other_salts;
      int edges = 0;
      Dfg dfg = build_recommender(options, 0.1);
      differentiate(dfg);
      for (const Node& node : dfg.nodes()) {
        if (node.op != Op::dropout) continue;
        const bool on_edges = node.type.space.kind == SpaceKind::edge;
        edges += on_edges ? 1 : 0;
        EXPECT_TRUE(!on_edges || node.type.dims.empty());
        (on_edges ? edge_salts : other_salts).insert(node.salt);
      }
      // The backward pass has none, because it reads those of the forward pass.
      EXPECT_EQ(edges, 3);
      EXPECT_EQ(edge_salts.size(), 1u);
      EXPECT_FALSE(other_salts.contains(*edge_salts.begin()));
      options.training = false;
      const Dfg embed = build_recommender(options, 0);
      for (const Node& node : embed.nodes()) EXPECT_NE(node.op, Op::dropout);
    }
  }
}

TEST(Recommender, what_does_not_apply_is_refused) {
  ModelOptions options = Recommendation("lightgcn", 2).options;
  options.activation = "relu";
  EXPECT_THROW(build_recommender(options, 0), UserError);
  options = Recommendation("gcn", 1).options;  // with one layer, there is no embedding before it
  EXPECT_THROW(build_recommender(options, 0), UserError);
}

}  // namespace
}  // namespace nacre::test
