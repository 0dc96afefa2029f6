#include "kernel/sparse_testing.h"

namespace nacre {
namespace {

using testing::edges_by;
using testing::kWidths;
using testing::Program;
using testing::random_floats;
using testing::TestScratch;

// Reduces relu(x[src] - y[dst]) + e[edge]. relu makes equal values, so that the first maximum
// matters.
class ReduceCheck {
 public:
  ReduceCheck(const Graph& graph, Direction direction, int64_t width)
      : graph_(graph),
        view_(cpu::make_row_view(graph, direction)),
        direction_(direction),
        width_(width),
        x_(random_floats(graph.num_src() * width, 1)),
        y_(random_floats(graph.num_dst() * width, 2)),
        e_(static_cast<size_t>(graph.num_edges() * width)),
        program_(Space::edge(0)) {
    for (size_t i = 0; i < e_.size(); ++i) e_[i] = static_cast<float>(testing::random_bits(3, i) % 3);
    const int a = program_.load(MicroOp::load_src, x_.data(), width);
    const int b = program_.load(MicroOp::load_dst, y_.data(), width);
    const int c = program_.load(MicroOp::load, e_.data(), width);
    const int relu = program_.apply(MicroOp::relu, width, program_.apply(MicroOp::sub, width, a, b));
    value_ = program_.apply(MicroOp::add, width, relu, c);
  }

  void check(ReduceOp reduce, double tolerance, const std::string& name) {
    const std::string what = name + " width " + std::to_string(width_) + " reduce " +
                             std::to_string(static_cast<int>(reduce)) +
                             (direction_ == Direction::by_dst ? " by_dst" : " by_src");
    const int64_t size = view_->rows * width_;
    std::vector<float> out = testing::unset(size), halved = testing::unset(size);
    std::vector<int32_t> argmax(static_cast<size_t>(size), -7);
    std::vector<float> partials = testing::unset(2 * view_->num_partials * width_);
    Program post(Space::vertex(1));
    Micro half;
    half.alpha = 0.5f;
    post.store(post.apply(MicroOp::scale, width_, post.root(width_), -1, half), halved.data());
    TestScratch scratch(cpu::reduce_scratch_floats(*view_, program_.program(), value_, &post.program()));
    cpu::ReduceArgs args;
    args.view = view_.get();
    args.program = program_.bound();
    args.value = value_;
    args.reduce = reduce;
    args.out = out.data();
    if (reduce == ReduceOp::max) args.argmax = argmax.data();
    args.partials = partials.data();
    args.scratch = scratch.scratch();
    testing::run_on_threads(out, [&] { cpu::reduce_rows(args); });
    expected(reduce);
    testing::expect_close(out, want_, tolerance, what);
    if (reduce == ReduceOp::max) {
      EXPECT_EQ(argmax, want_argmax_) << what;
    }

    args.argmax = nullptr;
    args.post = post.bound();
    std::vector<double> half_out(out.begin(), out.end());
    for (double& v : half_out) v *= 0.5;
    for (float* keep : {static_cast<float*>(nullptr), out.data()}) {
      args.out = keep;
      std::fill(halved.begin(), halved.end(), std::numeric_limits<float>::quiet_NaN());
      testing::run_on_threads(halved, [&] { cpu::reduce_rows(args); });
      testing::expect_close(halved, half_out, 0, what + " post");
    }
  }

 private:
  float edge_value(const testing::Edge& e, int64_t i) const {
    const float d = x_[static_cast<size_t>(e.src * width_ + i)] - y_[static_cast<size_t>(e.dst * width_ + i)];
    return std::max(0.0f, d) + e_[static_cast<size_t>(e.position * width_ + i)];
  }

  void expected(ReduceOp reduce) {
    want_.assign(static_cast<size_t>(view_->rows * width_), 0);
    want_argmax_.assign(want_.size(), -1);
    const auto rows = edges_by(graph_, direction_);
    for (size_t r = 0; r < rows.size(); ++r) {
      for (int64_t i = 0; i < width_; ++i) {
        const size_t at = r * static_cast<size_t>(width_) + static_cast<size_t>(i);
        for (const auto& e : rows[r]) {
          const float v = edge_value(e, i);
          if (reduce != ReduceOp::max) {
            want_[at] += v;
          } else if (want_argmax_[at] < 0 || v > want_[at]) {
            want_[at] = v;
            want_argmax_[at] = static_cast<int32_t>(e.position);
          }
        }
        if (reduce == ReduceOp::mean && !rows[r].empty()) want_[at] /= static_cast<double>(rows[r].size());
      }
    }
  }

  const Graph& graph_;
  std::shared_ptr<const cpu::RowView> view_;
  Direction direction_;
  int64_t width_;
  std::vector<float> x_, y_, e_;
  Program program_;
  int value_;
  std::vector<double> want_;
  std::vector<int32_t> want_argmax_;
};

TEST(ReduceRows, EveryWidth) {
  for (const auto& [name, graph] : testing::awkward_graphs()) {
    for (const int64_t width : kWidths) {
      for (const auto direction : {Direction::by_dst, Direction::by_src}) {
        ReduceCheck check(graph, direction, width);
        for (const ReduceOp reduce : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max}) check.check(reduce, 1e-5, name);
      }
    }
  }
}

TEST(ReduceRows, SplitsLongRows) {
  const Graph graph = testing::hub_graph();
  for (const int64_t width : {1, 3, 17}) {
    ReduceCheck check(graph, Direction::by_dst, width);
    for (const ReduceOp reduce : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max}) check.check(reduce, 2e-4, "hub");
  }
}

TEST(ColumnSum, EveryWidthAndLength) {
  for (const int64_t rows : {0, 1, 255, 256, 257, 5000, 100003}) {
    for (const int64_t width : kWidths) {
      if (rows * width > 2000000) continue;
      const auto x = random_floats(rows * width, 4);
      Program program(Space::vertex(0));
      const int value = program.apply(MicroOp::relu, width, program.load(MicroOp::load, x.data(), width));
      std::vector<float> out = testing::unset(width);
      std::vector<float> workspace = testing::unset(cpu::column_sum_workspace(rows, width));
      TestScratch scratch(cpu::scratch_floats(program.program()));
      cpu::ColumnSumArgs args;
      args.program = program.bound();
      args.value = value;
      args.rows = rows;
      args.out = out.data();
      args.workspace = workspace.data();
      args.scratch = scratch.scratch();
      testing::run_on_threads(out, [&] { cpu::column_sum(args); });
      std::vector<double> want(static_cast<size_t>(width));
      for (size_t i = 0; i < x.size(); ++i) want[i % want.size()] += std::max(0.0f, x[i]);
      testing::expect_close(out, want, 1e-5, std::to_string(rows) + " rows of " + std::to_string(width));
    }
  }
}

TEST(ColumnSum, OverEdges) {
  auto graphs = testing::awkward_graphs();
  graphs.push_back({"hub", testing::hub_graph()});
  for (const auto& [name, graph] : graphs) {
    for (const int64_t width : {1, 4, 17}) {
      const auto x = random_floats(graph.num_src() * width, 1), y = random_floats(graph.num_dst() * width, 2);
      Program program(Space::edge(0));
      const int value = program.apply(MicroOp::mul, width, program.load(MicroOp::load_src, x.data(), width),
                                      program.load(MicroOp::load_dst, y.data(), width));
      std::vector<float> out = testing::unset(width);
      std::vector<float> workspace = testing::unset(cpu::column_sum_workspace(graph.num_edges(), width));
      TestScratch scratch(cpu::scratch_floats(program.program()));
      const auto view = cpu::make_row_view(graph, Direction::by_dst);
      cpu::ColumnSumArgs args;
      args.program = program.bound();
      args.value = value;
      args.rows = graph.num_edges();
      args.edges = view.get();
      args.out = out.data();
      args.workspace = workspace.data();
      args.scratch = scratch.scratch();
      testing::run_on_threads(out, [&] { cpu::column_sum(args); });
      std::vector<double> want(static_cast<size_t>(width));
      for (const auto& row : edges_by(graph, Direction::by_dst)) {
        for (const auto& e : row) {
          for (int64_t i = 0; i < width; ++i) {
            want[static_cast<size_t>(i)] += static_cast<double>(x[static_cast<size_t>(e.src * width + i)]) *
                                            y[static_cast<size_t>(e.dst * width + i)];
          }
        }
      }
      testing::expect_close(out, want, 1e-3, name);
    }
  }
}

}  // namespace
}  // namespace nacre
