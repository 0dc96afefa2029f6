// Compares the LSTM kernels with plain loops in double.
#include "nacre/kernel/cpu/lstm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nacre/base/parallel.h"
#include "support/random_graphs.h"
#include "support/rng.h"

namespace nacre::cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normal_values(test::Rng& rng, int64_t count, double scale) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>(scale * rng.normal());
  return values;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

using Row = std::vector<double>;

// Computes one sequence at a time and keeps all states.
class Reference {
 public:
  Reference(const Graph& graph, int64_t hidden, const std::vector<float>& z, const std::vector<float>& w,
            bool on_edges = false)
      : graph_(graph),
        on_edges_(on_edges),
        h_(static_cast<size_t>(hidden)),
        z_(z),
        w_(w),
        out(graph.num_dst() * hidden),
        dz(z.size()),
        dw(w.size()) {}

  void run(const std::vector<float>& g) {
    for (int64_t v = 0; v < graph_.num_dst(); ++v) {
      const Row last = forward(v);
      std::copy(last.begin(), last.end(), out.begin() + v * static_cast<int64_t>(h_));
      backward(v, g);
    }
  }

 private:
  struct State {
    Row gates, c, h;
  };
  // Returns the row of z that a step reads.
  size_t source(int64_t v, size_t step) const {
    const int64_t edge = graph_.row_ptr()[v] + static_cast<int64_t>(step);
    return on_edges_ ? static_cast<size_t>(edge) : graph_.col_idx()[edge];
  }

  Row forward(int64_t v) {
    states_.assign(1, {Row(), Row(h_), Row(h_)});
    for (size_t t = 0; t < static_cast<size_t>(graph_.in_degree(v)); ++t) {
      const State& before = states_.back();
      State now = {Row(4 * h_), Row(h_), Row(h_)};
      for (size_t j = 0; j < 4 * h_; ++j) {
        double sum = z_[source(v, t) * 4 * h_ + j];
        for (size_t i = 0; i < h_; ++i) sum += before.h[i] * w_[i * 4 * h_ + j];
        now.gates[j] = j / h_ == 2 ? std::tanh(sum) : sigmoid(sum);
      }
      for (size_t j = 0; j < h_; ++j) {
        now.c[j] = now.gates[h_ + j] * before.c[j] + now.gates[j] * now.gates[2 * h_ + j];
        now.h[j] = now.gates[3 * h_ + j] * std::tanh(now.c[j]);
      }
      states_.push_back(std::move(now));
    }
    return states_.back().h;
  }

  void backward(int64_t v, const std::vector<float>& g) {
    const auto first = g.begin() + v * static_cast<int64_t>(h_);
    Row dh(first, first + static_cast<int64_t>(h_));
    Row dc(h_);
    for (size_t t = states_.size() - 1; t-- > 0;) {
      const State& now = states_[t + 1];
      const State& before = states_[t];
      Row dgates(4 * h_);
      for (size_t j = 0; j < h_; ++j) {
        const double i = now.gates[j], f = now.gates[h_ + j], u = now.gates[2 * h_ + j], o = now.gates[3 * h_ + j];
        const double th = std::tanh(now.c[j]);
        const double d = dc[j] + dh[j] * o * (1 - th * th);
        dgates[j] = d * u * i * (1 - i);
        dgates[h_ + j] = d * before.c[j] * f * (1 - f);
        dgates[2 * h_ + j] = d * i * (1 - u * u);
        dgates[3 * h_ + j] = dh[j] * th * o * (1 - o);
        dc[j] = d * f;
      }
      for (size_t i = 0; i < h_; ++i) {
        dh[i] = 0;
        for (size_t j = 0; j < 4 * h_; ++j) {
          dh[i] += dgates[j] * w_[i * 4 * h_ + j];
          dw[i * 4 * h_ + j] += before.h[i] * dgates[j];
        }
      }
      for (size_t j = 0; j < 4 * h_; ++j) dz[source(v, t) * 4 * h_ + j] += dgates[j];
    }
  }

  const Graph& graph_;
  bool on_edges_;
  size_t h_;
  const std::vector<float>& z_;
  const std::vector<float>& w_;
  std::vector<State> states_;

 public:
  Row out, dz, dw;
};

void expect_close(const std::vector<float>& got, const Row& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (const double v : want) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - want[i]), tolerance * largest)
        << what << " at " << i << ": " << got[i] << " instead of " << want[i];
  }
}

struct Problem {
  Graph graph;
  int64_t hidden;
  std::vector<float> z, w, g;
  std::shared_ptr<const LstmView> view;

  Problem(const Graph& from, int64_t h, uint64_t seed, const LstmOptions& options = {}) : graph(from), hidden(h) {
    test::Rng rng(seed);
    view = make_lstm_view(make_row_view(graph, Direction::by_dst), options);
    z = normal_values(rng, view->z_rows() * 4 * hidden, 1);
    w = normal_values(rng, hidden * 4 * hidden, 1 / std::sqrt(static_cast<double>(hidden)));
    g = normal_values(rng, graph.num_dst() * hidden, 1);
  }

  std::vector<float> forward(bool packed = true, float* gates = nullptr) const {
    std::vector<float> out(static_cast<size_t>(graph.num_dst() * hidden), kNan);
    const int64_t per_thread = lstm_scratch_floats(*view, hidden);
    std::vector<float> memory(static_cast<size_t>(num_threads() * per_thread), kNan);
    std::vector<float> space(static_cast<size_t>(lstm_forward_workspace(hidden)), kNan);
    lstm_forward({view.get(),
                  hidden,
                  z.data(),
                  w.data(),
                  out.data(),
                  {memory.data(), per_thread},
                  packed ? space.data() : nullptr,
                  gates});
    return out;
  }

  // By edge: the gates that the forward pass keeps, the gradients of the gates, and the states
  // before each step.
  struct Kept {
    std::vector<float> gates, grads, states;
    bool operator==(const Kept&) const = default;
  };
  Kept backward_kept() const {
    const auto edges = static_cast<size_t>(graph.num_edges());
    const auto h = static_cast<size_t>(hidden);
    Kept kept = {std::vector<float>(edges * 4 * h, kNan), std::vector<float>(edges * 4 * h, kNan),
                 std::vector<float>(edges * h, kNan)};
    EXPECT_EQ(forward(true, kept.gates.data()), forward());
    const int64_t per_thread = lstm_gates_grad_scratch(*view, hidden);
    std::vector<float> memory(static_cast<size_t>(num_threads() * per_thread), kNan);
    std::vector<float> space(static_cast<size_t>(lstm_gates_grad_workspace(hidden)), kNan);
    lstm_gates_backward({view.get(),
                         hidden,
                         kept.gates.data(),
                         w.data(),
                         g.data(),
                         kept.grads.data(),
                         kept.states.data(),
                         space.data(),
                         {memory.data(), per_thread}});
    return kept;
  }

  void check_kept(const std::string& name) const {
    Reference want(graph, hidden, z, w, view->options.on_edges);
    want.run(g);
    const Kept kept = backward_kept();
    std::vector<double> dz(z.size());
    std::vector<double> dw(w.size());
    const auto h = static_cast<size_t>(hidden);
    for (size_t e = 0; e < static_cast<size_t>(graph.num_edges()); ++e) {
      const size_t row = view->options.on_edges ? e : graph.col_idx()[static_cast<int64_t>(e)];
      for (size_t j = 0; j < 4 * h; ++j) {
        const double d = kept.grads[e * 4 * h + j];
        dz[row * 4 * h + j] += d;
        for (size_t i = 0; i < h; ++i) dw[i * 4 * h + j] += kept.states[e * h + i] * d;
      }
    }
    expect_close(forward(), want.out, 4e-6, name + " forward");
    expect_close({dz.begin(), dz.end()}, want.dz, 1e-5, name + " dz");
    expect_close({dw.begin(), dw.end()}, want.dw, 1e-5, name + " dw");
  }

  struct Gradients {
    std::vector<float> dz, dw;
    bool operator==(const Gradients&) const = default;
  };
  Gradients backward(bool want_dz = true, bool want_dw = true) const {
    Gradients grad;
    if (want_dz) grad.dz.assign(z.size(), kNan);
    if (want_dw) grad.dw.assign(w.size(), kNan);
    std::vector<float> space(static_cast<size_t>(lstm_grad_workspace(*view, hidden)), kNan);
    lstm_backward({view.get(), hidden, z.data(), w.data(), g.data(), want_dz ? grad.dz.data() : nullptr,
                   want_dw ? grad.dw.data() : nullptr, space.data()});
    return grad;
  }

  void check(const std::string& name) const {
    Reference want(graph, hidden, z, w, view->options.on_edges);
    want.run(g);
    const Gradients grad = backward();
    expect_close(forward(), want.out, 4e-6, name + " forward");
    expect_close(grad.dz, want.dz, 1e-5, name + " dz");
    expect_close(grad.dw, want.dw, 1e-5, name + " dw");
  }
};

// Returns a graph in which vertex v has about length(v) in-edges from random sources.
template <class F>
Graph graph_of_lengths(int64_t nodes, const F& length) {
  test::Rng rng(9);
  EdgeList list;
  list.num_nodes = nodes;
  for (int64_t v = 0; v < nodes; ++v) {
    for (int64_t i = length(v); i > 0; --i) {
      list.src.push_back(static_cast<NodeId>(rng.below(nodes)));
      list.dst.push_back(static_cast<NodeId>(v));
    }
  }
  return build_graph(std::move(list), "lengths");
}

// Lengths go from 0 to a few hundred and most are short, which gives many batches, some of several
// segments.
Graph skewed_graph() {
  return graph_of_lengths(900, [](int64_t v) { return v % 11 == 0 ? 0 : 2 + 4000 / (v + 10); });
}

TEST(Lstm, AwkwardGraphs) {
  for (const auto& [name, graph] : test::random_graphs(5, 40)) {
    for (const int64_t hidden : {1, 4, 16, 33}) Problem(graph, hidden, 1).check(name);
  }
  for (const auto& [name, layers] : test::random_blocks(6, 1, 30)) Problem(layers[0], 17, 2).check(name);
}

TEST(Lstm, KeptGates) {
  for (const auto& [name, graph] : test::random_graphs(5, 40)) {
    for (const int64_t hidden : {1, 16, 33}) Problem(graph, hidden, 1, {.one_pass = true}).check_kept(name);
  }
  for (const auto& [name, layers] : test::random_blocks(6, 1, 30)) {
    Problem(layers[0], 17, 2, {.one_pass = true}).check_kept(name);
  }
  const Graph skewed = skewed_graph();
  for (const int64_t batch_rows : {7, 1000}) {
    for (const bool on_edges : {false, true}) {
      const Problem problem(skewed, 9, 11, {batch_rows, on_edges, on_edges, true});
      EXPECT_TRUE(problem.view->segments.empty());
      problem.check_kept("skewed" + std::to_string(batch_rows));
    }
  }
}

TEST(Lstm, KeptGatesSameBitsOnAnyThreadCountAndInAnyBatch) {
  const int before = num_threads();
  set_num_threads(1);
  const Problem problem(skewed_graph(), 17, 13, {.one_pass = true});
  const auto kept = problem.backward_kept();
  for (const int threads : {2, 4}) {
    set_num_threads(threads);
    EXPECT_TRUE(problem.backward_kept() == kept);
    EXPECT_TRUE(Problem(problem.graph, 17, 13, {.batch_rows = 5, .one_pass = true}).backward_kept() == kept);
    EXPECT_TRUE(Problem(problem.graph, 17, 13, {.pad = true, .one_pass = true}).backward_kept() == kept);
  }
  set_num_threads(before);
}

TEST(Lstm, ManyBatchesAndSegments) {
  const Problem problem(skewed_graph(), 8, 3);
  EXPECT_GT(problem.view->segments.size(), problem.view->batches.size());
  EXPECT_GT(static_cast<int64_t>(problem.view->batches.size()), problem.view->workers / 2);
  problem.check("skewed");
}

TEST(Lstm, EqualLongRows) {
  const Problem problem(graph_of_lengths(200, [](int64_t v) { return v < 100 ? 150 : 0; }), 16, 4);
  EXPECT_GT(problem.view->segments.size(), 4u);
  problem.check("equal long rows");
}

TEST(Lstm, VeryLongRowInBoundedMemory) {
  const Problem problem(graph_of_lengths(50, [](int64_t v) { return v == 3 ? 100000 : v % 3; }), 4, 5);
  const auto floats = lstm_grad_workspace(*problem.view, 4);
  EXPECT_LT(floats, 1 << 19);
  problem.check("very long row");
}

std::string options_text(const LstmOptions& options) {
  return " in batches of " + std::to_string(options.batch_rows) + (options.on_edges ? ", z on edges" : "") +
         (options.pad ? ", padded" : "");
}

TEST(Lstm, EveryWayOfRunning) {
  auto graphs = test::random_graphs(7, 40);
  graphs.push_back({"skewed", skewed_graph()});
  for (const int64_t batch_rows : {1, 7, 128, 1000}) {
    for (const bool on_edges : {false, true}) {
      for (const bool pad : {false, true}) {
        const LstmOptions options = {batch_rows, on_edges, pad};
        for (const auto& [name, graph] : graphs) {
          const Problem problem(graph, 9, 11, options);
          for (const auto& batch : problem.view->batches) ASSERT_LE(batch.end - batch.begin, batch_rows);
          problem.check(name + options_text(options));
        }
      }
    }
  }
}

// Padding computes more and changes nothing; gathering z by edge equals gathering it by source.
TEST(Lstm, WaysOfRunningAgreeExactly) {
  const Graph graph = skewed_graph();
  const Problem plain(graph, 16, 12);
  const Problem padded(graph, 16, 12, {128, false, true});
  EXPECT_EQ(padded.forward(), plain.forward());
  EXPECT_TRUE(padded.backward() == plain.backward());
  Problem on_edges(graph, 16, 12, {128, true, false});
  for (int64_t e = 0; e < graph.num_edges(); ++e) {
    std::copy_n(plain.z.begin() + graph.col_idx()[e] * int64_t{64}, 64, on_edges.z.begin() + e * 64);
  }
  on_edges.w = plain.w;
  on_edges.g = plain.g;
  EXPECT_EQ(on_edges.forward(), plain.forward());
  EXPECT_EQ(on_edges.backward().dw, plain.backward().dw);
  const Problem alone(graph, 16, 12, {1, false, false});
  EXPECT_EQ(alone.forward(), plain.forward());
}

TEST(Lstm, EveryWaySameBitsOnAnyThreadCount) {
  const int before = num_threads();
  for (const LstmOptions& options : {LstmOptions{1, true, false}, LstmOptions{40, false, true}}) {
    const Problem problem(skewed_graph(), 17, 13, options);
    set_num_threads(1);
    const auto out = problem.forward();
    const auto grad = problem.backward();
    for (const int threads : {2, 4}) {
      set_num_threads(threads);
      EXPECT_EQ(problem.forward(), out) << options_text(options);
      EXPECT_TRUE(problem.backward() == grad) << options_text(options);
    }
  }
  set_num_threads(before);
}

TEST(Lstm, OneGradientOnly) {
  const Problem problem(skewed_graph(), 16, 6);
  const auto both = problem.backward();
  EXPECT_EQ(problem.backward(true, false).dz, both.dz);
  EXPECT_EQ(problem.backward(false, true).dw, both.dw);
}

TEST(Lstm, SameBitsOnAnyThreadCountAndWithoutPacking) {
  const int before = num_threads();
  const Problem problem(skewed_graph(), 33, 7);
  set_num_threads(1);
  const auto out = problem.forward();
  const auto grad = problem.backward();
  EXPECT_EQ(problem.forward(false), out);
  for (const int threads : {2, 4}) {
    set_num_threads(threads);
    EXPECT_EQ(problem.forward(), out);
    EXPECT_TRUE(problem.backward() == grad);
    EXPECT_TRUE(Problem(problem.graph, 33, 7).backward() == grad);
  }
  set_num_threads(before);
}

TEST(Lstm, ExtremeGatesSaturateAndNanComesThrough) {
  Problem problem(graph_of_lengths(6, [](int64_t) { return 3; }), 17, 8);
  for (size_t i = 0; i < problem.z.size(); ++i) problem.z[i] *= i % 2 == 0 ? 1e4f : 300.0f;
  Reference want(problem.graph, 17, problem.z, problem.w);
  want.run(problem.g);
  expect_close(problem.forward(), want.out, 4e-6, "saturated");
  std::fill(problem.z.begin(), problem.z.end(), kNan);
  for (const float v : problem.forward()) EXPECT_TRUE(std::isnan(v));
}

}  // namespace
}  // namespace nacre::cpu
