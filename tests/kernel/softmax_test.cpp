#include "kernel/sparse_testing.h"

namespace nacre {
namespace {

using testing::edges_by;
using testing::Program;
using testing::random_floats;
using testing::TestScratch;

const std::vector<int64_t> kHeads = {1, 2, 3, 4, 8, 16, 17, 33};

// Scores leaky_relu(a[src] + b[dst]), as in attention.
struct Scores {
  Scores(const Graph& graph, int64_t heads, float range)
      : a(random_floats(graph.num_src() * heads, 1, -range, range)),
        b(random_floats(graph.num_dst() * heads, 2, -range, range)),
        program(Space::edge(0)) {
    const int src = program.load(MicroOp::load_src, a.data(), heads);
    const int dst = program.load(MicroOp::load_dst, b.data(), heads);
    Micro slope;
    slope.alpha = 0.2f;
    value = program.apply(MicroOp::leaky_relu, heads, program.apply(MicroOp::add, heads, src, dst), -1, slope);
  }
  std::vector<float> a, b;
  Program program;
  int value;
};

std::vector<double> expected_softmax(const Graph& graph, int64_t heads, const Scores& s) {
  std::vector<double> out(static_cast<size_t>(graph.num_edges() * heads));
  for (const auto& row : edges_by(graph, Direction::by_dst)) {
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> score;
      double top = -1e300, sum = 0;
      for (const auto& e : row) {
        const auto a = s.a[static_cast<size_t>(e.src * heads + h)], b = s.b[static_cast<size_t>(e.dst * heads + h)];
        const float x = a + b;
        score.push_back(x > 0 ? x : 0.2f * x);
        top = std::max(top, score.back());
      }
      for (double& x : score) sum += x = std::exp(x - top);
      for (size_t i = 0; i < row.size(); ++i) out[static_cast<size_t>(row[i].position * heads + h)] = score[i] / sum;
    }
  }
  return out;
}

std::vector<float> run_softmax(const Graph& graph, int64_t heads, const Scores& s) {
  const auto view = cpu::make_row_view(graph, Direction::by_dst);
  std::vector<float> out = testing::unset(graph.num_edges() * heads);
  TestScratch scratch(cpu::scratch_floats(s.program.program()));
  const cpu::SoftmaxArgs args = {view.get(), s.program.bound(), s.value, out.data(), scratch.scratch()};
  testing::run_on_threads(out, [&] { cpu::edge_softmax(args); });
  return out;
}

void check(const std::string& name, const Graph& graph, int64_t heads, float range) {
  const std::string what = name + " heads " + std::to_string(heads);
  const Scores s(graph, heads, range);
  const auto y = run_softmax(graph, heads, s);
  testing::expect_close(y, expected_softmax(graph, heads, s), 2e-6, what);

  // In the gradient, g is read from memory: a register that is nothing but a load.
  const auto g = random_floats(graph.num_edges() * heads, 3);
  Program program(Space::edge(0));
  const int value = program.load(MicroOp::load, g.data(), heads);
  const auto view = cpu::make_row_view(graph, Direction::by_dst);
  std::vector<float> out = testing::unset(graph.num_edges() * heads);
  TestScratch scratch(cpu::scratch_floats(program.program()));
  const cpu::SoftmaxGradArgs args = {view.get(), program.bound(), value, y.data(), out.data(), scratch.scratch()};
  testing::run_on_threads(out, [&] { cpu::edge_softmax_grad(args); });

  std::vector<double> want(out.size());
  for (const auto& row : edges_by(graph, Direction::by_dst)) {
    for (int64_t h = 0; h < heads; ++h) {
      double sum = 0;
      for (const auto& e : row) {
        const auto i = static_cast<size_t>(e.position * heads + h);
        sum += static_cast<double>(y[i]) * g[i];
      }
      for (const auto& e : row) {
        const auto i = static_cast<size_t>(e.position * heads + h);
        want[i] = y[i] * (g[i] - sum);
      }
    }
  }
  testing::expect_close(out, want, 3e-6, what + " gradient");
}

TEST(EdgeSoftmax, AwkwardGraphs) {
  for (const auto& [name, graph] : testing::awkward_graphs()) {
    for (const int64_t heads : kHeads) check(name, graph, heads, 2);
  }
}

TEST(EdgeSoftmax, LargeScoresDoNotOverflow) {
  for (const int64_t heads : {1, 3, 4}) check("large", testing::awkward_graphs().back().graph, heads, 400);
}

TEST(EdgeSoftmax, SplitRows) {
  const Graph graph = testing::hub_graph();
  for (const int64_t heads : {1, 3, 8}) check("hub", graph, heads, 2);
}

}  // namespace
}  // namespace nacre
