// Compares the typed kernels with plain loops in double.
#include "nacre/kernel/cpu/typed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nacre/base/parallel.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normal_values(test::Rng& rng, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>(rng.normal());
  return values;
}

// Sums in double, and for each of them the sum of the magnitudes of its terms, which bounds the
// rounding error of any order of summation.
struct Sums {
  std::vector<double> value, magnitude;
  explicit Sums(int64_t count) : value(static_cast<size_t>(count)), magnitude(static_cast<size_t>(count)) {}
  void add(int64_t at, double term) {
    value[static_cast<size_t>(at)] += term;
    magnitude[static_cast<size_t>(at)] += std::abs(term);
  }
};

void expect_close(const std::vector<float>& got, const Sums& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.value.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - want.value[i]), 4e-6 * want.magnitude[i])
        << what << " at " << i << ": " << got[i] << " instead of " << want.value[i];
  }
}

// A graph with random operands for the typed kernels.
struct Problem {
  Graph graph;
  int64_t k, n;
  std::vector<float> x, w, g, scale;  // scale may be empty
  std::shared_ptr<const TypedView> by_dst, by_src;

  Problem(const Graph& from, int64_t k_, int64_t n_, bool scaled, uint64_t seed) : graph(from), k(k_), n(n_) {
    test::Rng rng(seed);
    x = normal_values(rng, graph.num_src() * k);
    w = normal_values(rng, graph.num_edge_types() * k * n);
    g = normal_values(rng, graph.num_dst() * n);
    if (scaled) scale = normal_values(rng, graph.num_edges());
    by_dst = make_typed_view(make_row_view(graph, Direction::by_dst));
    by_src = make_typed_view(make_row_view(graph, Direction::by_src));
  }

  int type(int64_t edge) const { return graph.typed() ? graph.edge_type()[edge] : 0; }
  const float* scale_data() const { return scale.empty() ? nullptr : scale.data(); }
  std::vector<float> scratch() const {
    return std::vector<float>(static_cast<size_t>(num_threads() * typed_scratch_floats(k, n)), kNan);
  }

  std::vector<float> matmul(bool transpose, bool packed = true) const {
    const TypedView& view = transpose ? *by_src : *by_dst;
    std::vector<float> out(static_cast<size_t>(view.view->rows * (transpose ? k : n)), kNan);
    std::vector<float> space(static_cast<size_t>(typed_matmul_workspace(view, k, n)), kNan);
    std::vector<float> memory = scratch();
    TypedMatmulArgs args{&view, transpose ? g.data() : x.data(), w.data(), scale_data(), k, n, transpose, out.data()};
    args.scratch = {memory.data(), typed_scratch_floats(k, n)};
    args.workspace = packed ? space.data() : nullptr;
    typed_matmul_reduce(args);
    return out;
  }

  std::vector<float> weight_grad(Direction direction) const {
    const TypedView& view = direction == Direction::by_dst ? *by_dst : *by_src;
    std::vector<float> dw(w.size(), kNan);
    std::vector<float> space(static_cast<size_t>(typed_weight_grad_workspace(view, k, n)), kNan);
    std::vector<float> memory = scratch();
    TypedWeightGradArgs args{&view, x.data(), g.data(), scale_data(), k, n, dw.data(), space.data()};
    args.scratch = {memory.data(), typed_scratch_floats(k, n)};
    typed_weight_grad(args);
    return dw;
  }

  // Calls term() for every edge and every element of its type's matrix, with the places of the
  // elements of x, g and w that are multiplied, and the scale of the edge.
  template <class F>
  void for_terms(const F& term) const {
    for (int64_t e = 0; e < graph.num_edges(); ++e) {
      const int64_t src = graph.col_idx()[e];
      const int64_t dst = graph.edge_dst()[e];
      const double s = scale.empty() ? 1.0 : scale[static_cast<size_t>(e)];
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j < n; ++j) term(src * k + i, dst * n + j, (type(e) * k + i) * n + j, s);
      }
    }
  }

  void check(const std::string& name) const {
    const auto at = [](const std::vector<float>& v, int64_t i) {
      return static_cast<double>(v[static_cast<size_t>(i)]);
    };
    Sums forward(graph.num_dst() * n);
    Sums backward(graph.num_src() * k);
    Sums dw(static_cast<int64_t>(w.size()));
    for_terms([&](int64_t xi, int64_t gi, int64_t wi, double s) {
      forward.add(gi, s * at(x, xi) * at(w, wi));
      backward.add(xi, s * at(g, gi) * at(w, wi));
      dw.add(wi, s * at(x, xi) * at(g, gi));
    });
    expect_close(matmul(false), forward, name + " forward");
    expect_close(matmul(true), backward, name + " transposed");
    expect_close(weight_grad(Direction::by_dst), dw, name + " weights by destination");
    expect_close(weight_grad(Direction::by_src), dw, name + " weights by source");
  }
};

// Returns random edges of `types` types, the last of which has none, and `hub` more in-edges of
// vertex 0.
Graph large_graph(int64_t nodes, int64_t edges, int64_t hub, int types) {
  test::Rng rng(7);
  EdgeList list;
  list.num_nodes = nodes;
  list.num_types = types;
  for (int64_t i = 0; i < edges + hub; ++i) {
    const double skewed = rng.uniform() * rng.uniform();
    list.src.push_back(static_cast<NodeId>(skewed * static_cast<double>(nodes)));
    list.dst.push_back(i < edges ? static_cast<NodeId>(rng.below(nodes)) : 0);
    list.type.push_back(static_cast<uint16_t>(rng.below(types - 1)));
  }
  return build_graph(std::move(list), "large graph");
}

TEST(Typed, AwkwardGraphs) {
  for (const auto& [name, graph] : test::random_graphs(3, 40)) {
    for (const bool scaled : {false, true}) Problem(graph, 17, 8, scaled, 1).check(name);
  }
  for (const auto& [name, layers] : test::random_blocks(4, 1, 30)) {
    for (const bool scaled : {false, true}) Problem(layers[0], 8, 17, scaled, 2).check(name);
  }
}

TEST(Typed, AwkwardShapes) {
  const Graph graph = large_graph(90, 400, 70, 5);
  const int64_t sizes[] = {1, 3, 8, 17, 64, 100};
  for (const int64_t k : sizes) {
    for (const int64_t n : sizes)
      Problem(graph, k, n, (k + n) % 2 == 0, 3).check(std::to_string(k) + "x" + std::to_string(n));
  }
}

TEST(Typed, ManyBlocksAndALongRow) {
  const Graph graph = large_graph(6000, 20000, 40000, 8);
  const Problem problem(graph, 8, 3, true, 4);
  EXPECT_GT(problem.by_dst->blocks.size(), 8u);
  EXPECT_GT(problem.by_dst->num_partials, 0);
  problem.check("long row");
}

TEST(Typed, ManyTypes) { Problem(large_graph(500, 3000, 100, 1000), 3, 8, false, 5).check("many types"); }

TEST(Typed, PairsCoverEveryEntryOnce) {
  const Graph graph = large_graph(3000, 12000, 500, 7);
  for (const Direction direction : {Direction::by_dst, Direction::by_src}) {
    const auto view = make_typed_view(make_row_view(graph, direction));
    std::vector<int> seen(static_cast<size_t>(graph.num_edges()));
    int64_t row = 0;
    for (const TypedView::Block& block : view->blocks) {
      EXPECT_EQ(block.row_begin, row);
      row = block.row_end;
      for (int64_t i = block.group_begin; i < block.group_end; ++i) {
        const auto& group = view->groups[static_cast<size_t>(i)];
        for (int64_t p = group.pair_begin; p < group.pair_end; ++p) {
          const NodeId pair_row = view->pair_row[p];
          EXPECT_TRUE(pair_row >= block.row_begin && pair_row < block.row_end);
          EXPECT_TRUE(p == group.pair_begin || pair_row > view->pair_row[p - 1]);
          for (int64_t e = view->pair_ptr[p]; e < view->pair_ptr[p + 1]; ++e) {
            const EdgeId edge = view->edge_id[e];
            ++seen[edge];
            EXPECT_EQ(graph.edge_type()[edge], group.type);
            const bool by_dst = direction == Direction::by_dst;
            EXPECT_EQ(by_dst ? graph.edge_dst()[edge] : graph.col_idx()[edge], pair_row);
            EXPECT_EQ(by_dst ? graph.col_idx()[edge] : graph.edge_dst()[edge], view->col[e]);
          }
        }
      }
    }
    EXPECT_EQ(row, 3000);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), graph.num_edges());
    EXPECT_EQ(view->pair_ptr[view->num_pairs], graph.num_edges());
  }
}

TEST(Typed, SameBitsOnAnyThreadCountAndWithoutPacking) {
  const int before = num_threads();
  const Graph graph = large_graph(4000, 16000, 3000, 7);
  const Problem problem(graph, 17, 33, true, 6);
  set_num_threads(1);
  const auto forward = problem.matmul(false);
  const auto backward = problem.matmul(true);
  const auto dw_dst = problem.weight_grad(Direction::by_dst);
  const auto dw_src = problem.weight_grad(Direction::by_src);
  EXPECT_EQ(problem.matmul(false, false), forward);
  EXPECT_EQ(problem.matmul(true, false), backward);
  for (const int threads : {2, 4}) {
    set_num_threads(threads);
    EXPECT_EQ(problem.matmul(false), forward);
    EXPECT_EQ(problem.matmul(true), backward);
    EXPECT_EQ(problem.weight_grad(Direction::by_dst), dw_dst);
    EXPECT_EQ(problem.weight_grad(Direction::by_src), dw_src);
    EXPECT_EQ(Problem(graph, 17, 33, true, 6).matmul(false), forward);
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace nacre::cpu
