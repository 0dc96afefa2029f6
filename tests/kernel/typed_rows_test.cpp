// Compares products of rows with the matrix of their type, and the weight gradient, with sums in
// double.
#include "nacre/kernel/cpu/typed_rows.h"

#include <gtest/gtest.h>

#include "kernel/sparse_testing.h"
#include "support/big_graphs.h"
#include "support/random_graphs.h"

namespace nacre::testing {
namespace {

using cpu::RowsByType;

// The rows of one space of a graph, with the type of each.
struct Rows {
  std::string name;
  std::shared_ptr<const RowsByType> by_type;
  std::vector<int64_t> type;
};

std::vector<Rows> all_rows(const Graph& graph) {
  std::vector<Rows> all;
  Rows edges{"edges", cpu::edges_by_type(graph), {}};
  for (int64_t e = 0; e < graph.num_edges(); ++e) edges.type.push_back(graph.typed() ? graph.edge_type()[e] : 0);
  all.push_back(std::move(edges));
  for (const End end : {End::src, End::dst}) {
    Rows pairs{end == End::src ? "src pairs" : "dst pairs", cpu::pairs_by_type(graph, end), {}};
    const PairIndex& index = graph.pairs(end);
    pairs.type.assign(index.type.begin(), index.type.end());
    all.push_back(std::move(pairs));
  }
  return all;
}

std::vector<uint32_t> random_index(int64_t n, int64_t below, uint64_t seed) {
  std::vector<uint32_t> index;
  for (int64_t i = 0; i < n; ++i) {
    index.push_back(random_bits(seed, static_cast<uint64_t>(i)) % static_cast<uint32_t>(below));
  }
  return index;
}

struct Shape {
  int64_t k, n;
  bool gather;
  bool transpose;
};

class Problem {
 public:
  Problem(const Rows& rows, const Shape& shape) : rows_(rows), s_(shape), count_(rows.by_type->rows) {
    const int types = rows.by_type->num_types;
    table_ = s_.gather ? count_ / 2 + 3 : count_;
    index_ = random_index(count_, std::max<int64_t>(1, table_), 11);
    w_ = random_floats(types * s_.k * s_.n, 12);
    x_ = random_floats(table_ * s_.k, 13);
    g_ = random_floats(table_ * s_.n, 14);
  }

  std::vector<float> product() const {
    std::vector<float> out = unset(count_ * (s_.transpose ? s_.k : s_.n));
    std::vector<float> space = unset(cpu::typed_rows_workspace(*rows_.by_type, s_.k, s_.n));
    std::vector<float> memory = unset(num_threads() * cpu::typed_rows_scratch(s_.k, s_.n));
    cpu::TypedRowsArgs args;
    args.rows = rows_.by_type.get();
    args.x = s_.transpose ? g_.data() : x_.data();
    args.gather = s_.gather ? index_.data() : nullptr;
    args.w = w_.data();
    args.k = s_.k;
    args.n = s_.n;
    args.transpose = s_.transpose;
    args.out = out.data();
    args.workspace = space.data();
    args.scratch = {memory.data(), cpu::typed_rows_scratch(s_.k, s_.n)};
    cpu::typed_rows(args);
    return out;
  }

  // Gathers x if the shape says so, but never g, so that one run tests both ways of reading.
  std::vector<float> gradient() const {
    std::vector<float> dw = unset(static_cast<int64_t>(w_.size()));
    std::vector<float> space = unset(rows_.by_type->num_partials * s_.k * s_.n);
    std::vector<float> memory = unset(num_threads() * cpu::typed_rows_scratch(s_.k, s_.n));
    const std::vector<float> g = random_floats(count_ * s_.n, 15);
    cpu::TypedRowsGradArgs args;
    args.rows = rows_.by_type.get();
    args.x = x_.data();
    args.gather_x = s_.gather ? index_.data() : nullptr;
    args.g = s_.transpose ? g_.data() : g.data();
    args.gather_g = s_.gather && s_.transpose ? index_.data() : nullptr;
    args.k = s_.k;
    args.n = s_.n;
    args.dw = dw.data();
    args.workspace = space.data();
    args.scratch = {memory.data(), cpu::typed_rows_scratch(s_.k, s_.n)};
    cpu::typed_rows_grad(args);
    return dw;
  }

  void check() const {
    const std::vector<float> own_g = random_floats(count_ * s_.n, 15);
    std::vector<double> out(static_cast<size_t>(count_ * (s_.transpose ? s_.k : s_.n)), 0);
    std::vector<double> dw(w_.size(), 0);
    for (int64_t r = 0; r < count_; ++r) {
      const int64_t from = s_.gather ? index_[static_cast<size_t>(r)] : r;
      for (int64_t i = 0; i < s_.k; ++i) {
        for (int64_t j = 0; j < s_.n; ++j) {
          const auto wi = static_cast<size_t>((rows_.type[static_cast<size_t>(r)] * s_.k + i) * s_.n + j);
          const double x = x_[static_cast<size_t>(from * s_.k + i)];
          const double g = g_[static_cast<size_t>(from * s_.n + j)];
          if (s_.transpose) {
            out[static_cast<size_t>(r * s_.k + i)] += g * w_[wi];
          } else {
            out[static_cast<size_t>(r * s_.n + j)] += x * w_[wi];
          }
          dw[wi] += x * (s_.transpose ? g : static_cast<double>(own_g[static_cast<size_t>(r * s_.n + j)]));
        }
      }
    }
    const std::string name = rows_.name + " " + std::to_string(s_.k) + "x" + std::to_string(s_.n) +
                             (s_.gather ? " gathered" : "") + (s_.transpose ? " transposed" : "");
    expect_close(product(), out, 2e-5, name);
    // These are sums of many terms of either sign.
    expect_close(gradient(), dw, 2e-6 * (20 + std::sqrt(static_cast<double>(count_))), name + " weights");
  }

 private:
  const Rows& rows_;
  Shape s_;
  int64_t count_;
  int64_t table_ = 0;
  std::vector<uint32_t> index_;
  std::vector<float> w_, x_, g_;
};

void check_all(const Graph& graph, int64_t k, int64_t n) {
  for (const Rows& rows : all_rows(graph)) {
    for (const bool gather : {false, true}) {
      for (const bool transpose : {false, true}) Problem(rows, {k, n, gather, transpose}).check();
    }
  }
}

TEST(TypedRows, AwkwardGraphs) {
  for (const test::GraphCase& c : test::random_graphs(5, 40)) {
    SCOPED_TRACE(c.name);
    check_all(c.graph, 17, 8);
  }
  for (const test::BlocksCase& c : test::random_blocks(6, 1, 30)) {
    SCOPED_TRACE(c.name);
    check_all(c.layers[0], 3, 20);
  }
  for (const NamedGraph& c : awkward_graphs()) {
    SCOPED_TRACE(c.name);
    check_all(c.graph, 8, 5);
  }
}

TEST(TypedRows, AwkwardShapes) {
  const Graph graph = random_graph(90, 700, 8, 4);
  for (const int64_t k : {1, 7, 16, 64, 100}) {
    for (const int64_t n : {1, 3, 33, 64}) check_all(graph, k, n);
  }
}

// Tests runs longer than one task, gradients in several partial sums, and a type without rows.
TEST(TypedRows, ManyRowsOfOneType) {
  const Graph graph = test::typed_weighted_graph({.vertices = 3000, .edges = 40000, .hub_edges = 3000, .types = 3});
  EXPECT_GT(cpu::edges_by_type(graph)->num_partials, 2);
  check_all(graph, 6, 5);
}

TEST(TypedRows, ManyTypes) { check_all(random_graph(200, 3000, 9, 900), 4, 3); }

TEST(TypedRows, RunsCoverEveryRowOnceAndKeepTypesApart) {
  const Graph graph = test::typed_weighted_graph({.vertices = 2000, .edges = 30000, .hub_edges = 2000});
  for (const Rows& rows : all_rows(graph)) {
    const RowsByType& by_type = *rows.by_type;
    ASSERT_EQ(by_type.rows, static_cast<int64_t>(rows.type.size()));
    for (const auto* runs : {&by_type.runs, &by_type.grad_runs}) {
      std::vector<int> seen(rows.type.size(), 0);
      for (const RowsByType::Run& run : *runs) {
        EXPECT_LT(run.begin, run.end);
        for (int64_t i = run.begin; i < run.end; ++i) {
          const int64_t row = by_type.order == nullptr ? i : by_type.order[i];
          ++seen[static_cast<size_t>(row)];
          ASSERT_EQ(rows.type[static_cast<size_t>(row)], run.type) << rows.name;
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), by_type.rows) << rows.name;
    }
  }
}

TEST(TypedRows, SameBitsOnAnyNumberOfThreads) {
  const Graph graph = test::typed_weighted_graph({.vertices = 2500, .edges = 30000, .hub_edges = 4000});
  for (const Rows& rows : all_rows(graph)) {
    for (const bool transpose : {false, true}) {
      const Problem problem(rows, {9, 14, true, transpose});
      std::vector<float> result;
      run_on_threads(result, [&] { result = problem.product(); });
      run_on_threads(result, [&] { result = problem.gradient(); });
    }
  }
}

}  // namespace
}  // namespace nacre::testing
