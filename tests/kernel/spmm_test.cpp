#include "kernel/sparse_testing.h"

namespace nacre {
namespace {

using cpu::SpmmArgs;
using testing::awkward_graphs;
using testing::edges_by;
using testing::kWidths;
using testing::Program;
using testing::random_floats;
using testing::TestScratch;

struct Case {
  int64_t width;
  int64_t heads = 1;
  bool weighted = false;
  bool mean = false;
};

class SpmmCheck {
 public:
  SpmmCheck(const Graph& graph, Direction direction, const Case& c)
      : graph_(graph), view_(cpu::make_row_view(graph, direction)), direction_(direction), case_(c) {
    const int64_t cols = direction == Direction::by_dst ? graph.num_src() : graph.num_dst();
    x_ = random_floats(cols * c.width, 21);
    weight_ = random_floats(graph.num_edges() * c.heads, 22);
  }

  // Returns the sums of the terms, or of their magnitudes.
  std::vector<double> expected(bool magnitudes) const {
    const int64_t d = case_.width / case_.heads;
    std::vector<double> out(static_cast<size_t>(view_->rows * case_.width));
    const auto rows = edges_by(graph_, direction_);
    for (size_t r = 0; r < rows.size(); ++r) {
      for (const auto& edge : rows[r]) {
        const int64_t col = direction_ == Direction::by_dst ? edge.src : edge.dst;
        for (int64_t i = 0; i < case_.width; ++i) {
          const double w = case_.weighted ? weight_[static_cast<size_t>(edge.position * case_.heads + i / d)] : 1.0;
          const double scale = case_.mean ? 1.0 / static_cast<double>(rows[r].size()) : 1.0;
          const double term = scale * w * x_[static_cast<size_t>(col * case_.width + i)];
          out[r * static_cast<size_t>(case_.width) + static_cast<size_t>(i)] += magnitudes ? std::abs(term) : term;
        }
      }
    }
    return out;
  }

  // Without `post`, the result is that of spmm; with it, it is what the post program stores (root +
  // root).
  std::vector<float> run(bool keep, bool with_post) {
    const int64_t size = view_->rows * case_.width;
    std::vector<float> out = testing::unset(size), doubled = testing::unset(size);
    std::vector<float> partials = testing::unset(view_->num_partials * case_.width);
    Program post(Space::vertex(1));
    const int root = post.root(case_.width);
    post.store(post.apply(MicroOp::add, case_.width, root, root), doubled.data());
    TestScratch scratch(cpu::spmm_scratch_floats(*view_, case_.width, with_post ? &post.program() : nullptr));
    SpmmArgs args;
    args.view = view_.get();
    args.x = x_.data();
    args.weight = case_.weighted ? weight_.data() : nullptr;
    args.width = case_.width;
    args.heads = case_.heads;
    args.mean = case_.mean;
    args.out = keep ? out.data() : nullptr;
    if (with_post) args.post = post.bound();
    args.partials = partials.data();
    args.scratch = scratch.scratch();
    std::vector<float>& result = with_post ? doubled : out;
    testing::run_on_threads(result, [&] { spmm(args); });
    return result;
  }

  void check(const std::string& what) {
    const std::string name = what + (direction_ == Direction::by_dst ? " by_dst" : " by_src") + " width " +
                             std::to_string(case_.width) + " heads " + std::to_string(case_.heads) +
                             (case_.weighted ? " weighted" : "") + (case_.mean ? " mean" : "");
    const auto want = expected(false), magnitude = expected(true);
    const auto plain = run(true, false);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_TRUE(std::abs(plain[i] - want[i]) <= 1e-6 * magnitude[i])
          << name << ": element " << i << " is " << plain[i] << ", not " << want[i];
    }
    std::vector<double> twice(plain.begin(), plain.end());
    for (double& v : twice) v *= 2;
    for (const bool keep : {false, true}) testing::expect_close(run(keep, true), twice, 0, name + " post");
  }

 private:
  const Graph& graph_;
  std::shared_ptr<const cpu::RowView> view_;
  Direction direction_;
  Case case_;
  std::vector<float> x_, weight_;
};

TEST(Spmm, EveryWidth) {
  for (const auto& [name, graph] : awkward_graphs()) {
    for (const int64_t width : kWidths) {
      for (const auto direction : {Direction::by_dst, Direction::by_src}) {
        SpmmCheck(graph, direction, {width}).check(name);
        SpmmCheck(graph, direction, {width, 1, true}).check(name);
        SpmmCheck(graph, direction, {width, 1, false, true}).check(name);
      }
    }
  }
}

TEST(Spmm, EveryHeadCount) {
  for (const auto& [name, graph] : awkward_graphs()) {
    for (const int64_t heads : {3, 4, 8}) {
      for (const int64_t d : {1, 5, 8, 16, 32, 40, 64}) {
        for (const auto direction : {Direction::by_dst, Direction::by_src}) {
          SpmmCheck(graph, direction, {heads * d, heads, true}).check(name);
        }
      }
    }
  }
}

TEST(Spmm, SplitsLongRows) {
  const Graph graph = testing::hub_graph();
  for (const auto direction : {Direction::by_dst, Direction::by_src}) {
    const auto view = cpu::make_row_view(graph, direction);
    EXPECT_GT(view->num_partials, 1);
    EXPECT_GE(view->longest_row, 100000);
    for (const int64_t width : {1, 7, 40}) {
      SpmmCheck(graph, direction, {width}).check("hub");
      SpmmCheck(graph, direction, {width, 1, true, true}).check("hub");
    }
    SpmmCheck(graph, direction, {12, 3, true}).check("hub");
    SpmmCheck(graph, direction, {64, 4, true}).check("hub");
  }
}

// Results larger than the caches are written around them if their rows are aligned; one float
// further, they are not.
TEST(Spmm, LargeResultsDoNotDependOnAlignment) {
  const int64_t nodes = 33000, width = 256;
  const Graph graph = testing::random_graph(nodes, 40000, 8);
  const auto view = cpu::make_row_view(graph, Direction::by_dst);
  const auto x = random_floats(nodes * width, 21), weight = random_floats(graph.num_edges() * 4, 22);
  Buffer<float> out(nodes * width + 16);
  TestScratch scratch(cpu::spmm_scratch_floats(*view, width, nullptr));
  for (const int64_t heads : {0, 1, 4}) {
    std::vector<float> results[2];
    for (const int64_t shift : {0, 1}) {
      std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
      SpmmArgs args;
      args.view = view.get();
      args.x = x.data();
      args.weight = heads == 0 ? nullptr : weight.data();
      args.width = width;
      args.heads = std::max<int64_t>(1, heads);
      args.out = out.data() + shift;
      args.scratch = scratch.scratch();
      spmm(args);
      results[shift].assign(args.out, args.out + nodes * width);
    }
    EXPECT_TRUE(testing::same_bytes(results[0], results[1])) << heads << " heads";
    for (const float v : results[0]) ASSERT_FALSE(std::isnan(v));
  }
}

TEST(RowView, ChunksCoverEveryRowAndEntryOnce) {
  auto graphs = awkward_graphs();
  graphs.push_back({"hub", testing::hub_graph()});
  for (const auto& [name, graph] : graphs) {
    for (const auto direction : {Direction::by_dst, Direction::by_src}) {
      const auto view = cpu::make_row_view(graph, direction);
      int64_t row = 0, entry = 0, partials = 0;
      for (const auto& chunk : view->chunks) {
        EXPECT_EQ(chunk.edge_begin, entry) << name;
        EXPECT_TRUE(chunk.row_begin == row || (chunk.partial > 0 && chunk.row_begin + 1 == row)) << name;
        if (chunk.partial >= 0) {
          EXPECT_EQ(chunk.partial, partials++) << name;
        }
        row = chunk.row_end;
        entry = chunk.edge_end;
      }
      EXPECT_EQ(row, view->rows) << name;
      EXPECT_EQ(entry, graph.num_edges()) << name;
      EXPECT_EQ(partials, view->num_partials) << name;
    }
  }
}

}  // namespace
}  // namespace nacre
