// Compares kernels over gTasks with plain loops in double, for every kind of table.
#include "nacre/kernel/cpu/gtask.h"

#include <map>

#include "kernel/sparse_testing.h"
#include "nacre/kernel/cpu/gtask_view.h"
#include "support/big_graphs.h"
#include "support/random_graphs.h"

namespace nacre {
namespace {

using testing::Program;
using testing::random_floats;
using testing::TestScratch;

const std::vector<std::string> kTables = {"",
                                          "dst-id=1",
                                          "dst-id=16",
                                          "src-id=1",
                                          "src-id=8",
                                          "edge-id=1",
                                          "edge-id=100",
                                          "dst-id=1,edge-id=3",
                                          "dst-id=1,edge-id=32",
                                          "src-id=4,dst-id=4",
                                          "src-id=64,dst-id=64",
                                          "edge-type=1",
                                          "src-id=64,edge-type=1",
                                          "dst-id=256,edge-type=1",
                                          "dst-id=1,edge-type=1",
                                          "dst-id=16,dst-degree=min",
                                          "src-id=8,src-degree=min"};

std::shared_ptr<const GTasks> gtasks(const Graph& graph, const std::string& table) {
  return std::make_shared<GTasks>(partition(graph, PartitionTable::parse(table)));
}

enum class Kind { gather, weighted, chain, gemm, gemm_t, typed_gemm, typed_gemm_t };
const std::map<Kind, std::string> kKinds = {{Kind::gather, "gather"},
                                            {Kind::weighted, "weighted"},
                                            {Kind::chain, "chain"},
                                            {Kind::gemm, "gemm"},
                                            {Kind::gemm_t, "gemm_t"},
                                            {Kind::typed_gemm, "typed_gemm"},
                                            {Kind::typed_gemm_t, "typed_gemm_t"}};

// A program over the edges of a graph, and the value of every edge computed by hand.
class EdgeProgram {
 public:
  EdgeProgram(const Graph& graph, Kind kind, int64_t in, int64_t out)
      : kind_(kind),
        in_(in),
        out_(kind <= Kind::chain ? in : out),
        x_(random_floats(graph.num_src() * in, 1)),
        y_(random_floats(graph.num_dst() * in, 2)),
        e_(random_floats(graph.num_edges(), 3, 0.25, 2)),
        t_(random_floats(graph.num_edge_types() * in, 4)),
        w_(random_floats(graph.num_edge_types() * in_ * out_, 5)),
        stored_(testing::unset(graph.num_edges() * in)),
        program_(Space::edge(0)) {
    build();
    expect(graph);
  }

  int64_t width() const { return out_; }
  int value() const { return value_; }
  Program& program() { return program_; }
  std::vector<float>& stored() { return stored_; }
  const std::vector<double>& want() const { return want_; }           // edges × width
  const std::vector<double>& want_stored() const { return before_; }  // edges × in

 private:
  void build() {
    const int x = program_.load(MicroOp::load_src, x_.data(), in_);
    Micro repeat;
    repeat.b_repeat = static_cast<int>(in_);
    int v = x;
    if (kind_ == Kind::chain) {
      v = program_.apply(MicroOp::sub, in_, x, program_.load(MicroOp::load_dst, y_.data(), in_));
      v = program_.apply(MicroOp::add, in_, program_.apply(MicroOp::relu, in_, v),
                         program_.load(MicroOp::load_type, t_.data(), in_));
    }
    if (kind_ != Kind::gather && kind_ != Kind::gemm && kind_ != Kind::typed_gemm) {
      v = program_.apply(MicroOp::mul, in_, v, program_.load(MicroOp::load, e_.data(), 1), repeat);
    }
    program_.store(v, stored_.data());
    const std::map<Kind, MicroOp> product = {{Kind::gemm, MicroOp::gemm},
                                             {Kind::gemm_t, MicroOp::gemm_t},
                                             {Kind::typed_gemm, MicroOp::typed_gemm},
                                             {Kind::typed_gemm_t, MicroOp::typed_gemm_t}};
    value_ = kind_ <= Kind::chain ? v : program_.apply_with(product.at(kind_), out_, v, w_.data());
  }

  void expect(const Graph& graph) {
    const bool typed = kind_ == Kind::typed_gemm || kind_ == Kind::typed_gemm_t;
    const bool transposed = kind_ == Kind::gemm_t || kind_ == Kind::typed_gemm_t;
    for (int64_t e = 0; e < graph.num_edges(); ++e) {
      const int64_t type = graph.typed() ? graph.edge_type()[e] : 0;
      const auto at = [](const std::vector<float>& v, int64_t i) { return double{v[static_cast<size_t>(i)]}; };
      std::vector<double> row;
      for (int64_t i = 0; i < in_; ++i) {
        double v = at(x_, graph.col_idx()[e] * in_ + i);
        if (kind_ == Kind::chain) v = std::max(0.0, v - at(y_, graph.edge_dst()[e] * in_ + i)) + at(t_, type * in_ + i);
        if (kind_ != Kind::gather && kind_ != Kind::gemm && kind_ != Kind::typed_gemm) v *= at(e_, e);
        row.push_back(v);
        before_.push_back(v);
      }
      for (int64_t j = 0; j < out_; ++j) {
        double v = kind_ <= Kind::chain ? row[static_cast<size_t>(j)] : 0;
        for (int64_t i = 0; i < in_ && kind_ > Kind::chain; ++i) {
          const int64_t element = transposed ? j * in_ + i : i * out_ + j;
          v += row[static_cast<size_t>(i)] * at(w_, (typed ? type : 0) * in_ * out_ + element);
        }
        want_.push_back(v);
      }
    }
  }

  Kind kind_;
  int64_t in_, out_;
  std::vector<float> x_, y_, e_, t_, w_, stored_;
  Program program_;
  int value_ = -1;
  std::vector<double> want_, before_;
};

// Sums or means of the edges' values computed by hand, and of their magnitudes, which measure
// rounding errors.
struct Sums {
  std::vector<double> value, size;
};
Sums reduced(const Graph& graph, const EdgeProgram& program, Direction direction, ReduceOp reduce) {
  const auto rows = testing::edges_by(graph, direction);
  const auto width = static_cast<size_t>(program.width());
  Sums sums = {std::vector<double>(rows.size() * width, 0), std::vector<double>(rows.size() * width, 0)};
  for (size_t r = 0; r < rows.size(); ++r) {
    const double share = reduce == ReduceOp::mean ? 1 / static_cast<double>(rows[r].size()) : 1;
    for (const auto& e : rows[r]) {
      for (size_t i = 0; i < width; ++i) {
        const double v = share * program.want()[static_cast<size_t>(e.position) * width + i];
        sums.value[r * width + i] += v;
        sums.size[r * width + i] += std::abs(v);
      }
    }
  }
  return sums;
}

void expect_sums(const std::vector<float>& got, const Sums& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.value.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    // The comparison is written so that NaN fails.
    ASSERT_TRUE(std::abs(got[i] - want.value[i]) <= 5e-5 * want.size[i] + 1e-5)
        << what << ": element " << i << " is " << got[i] << ", not " << want.value[i];
  }
}

// All runs share this scratch, because it is large and there are many runs.
cpu::Scratch shared_scratch(int64_t per_thread) {
  static std::vector<float> memory;
  if (memory.size() < static_cast<size_t>(4 * per_thread)) memory = testing::unset(4 * per_thread);
  return {memory.data(), per_thread};
}

// One way of running an edge program, with a post program that doubles the rows.
class GTaskRun {
 public:
  GTaskRun(const cpu::GTaskView& view, EdgeProgram& program, int64_t rows, ReduceOp reduce)
      : program_(program),
        out(testing::unset(rows * program.width())),
        doubled(out),
        argmax(out.size(), -7),
        post_(Space::vertex(1)) {
    Micro twice;
    twice.alpha = 2;
    const int64_t width = program.width();
    post_.store(post_.apply(MicroOp::scale, width, post_.root(width), -1, twice), doubled.data());
    args.view = &view;
    args.program = program.program().bound();
    args.value = program.value();
    args.reduce = reduce;
    args.out = out.data();
    args.argmax = reduce == ReduceOp::max ? argmax.data() : nullptr;
  }

  void run() {
    const bool stored = args.out != nullptr;
    const int64_t bytes =
        cpu::gtask_workspace(*args.view, program_.program().program(), args.value, args.reduce, stored);
    space_ = testing::unset(bytes / 4);
    args.workspace = space_.data();
    args.scratch = shared_scratch(cpu::gtask_scratch_floats(program_.program().program(), &post_.program()));
    cpu::run_gtasks(args);
  }
  void run_post(bool stored) {
    args.post = post_.bound();
    args.argmax = nullptr;
    args.out = stored ? out.data() : nullptr;
    run();
  }

 private:
  EdgeProgram& program_;

 public:
  cpu::GTaskArgs args;
  std::vector<float> out, doubled;
  std::vector<int32_t> argmax;

 private:
  Program post_;
  std::vector<float> space_;
};

struct Case {
  std::string name;
  const Graph& graph;
  std::string table;
  cpu::GTaskOptions options;
  Kind kind = Kind::gather;
  ReduceOp reduce = ReduceOp::sum;

  std::string text() const {
    return name + " \"" + table + "\" " + kKinds.at(kind) + " reduce " + std::to_string(static_cast<int>(reduce)) +
           (options.direction == Direction::by_dst ? " by_dst" : " by_src") +
           (options.split_outliers ? " outliers apart" : "") + (options.by_type ? "" : " by row");
  }
  int64_t rows() const { return options.direction == Direction::by_dst ? graph.num_dst() : graph.num_src(); }
};

// Compares with the result of reduce_rows. Maxima must agree exactly.
void expect_same_max(const Case& c, EdgeProgram& program, const GTaskRun& run) {
  const auto view = cpu::make_row_view(c.graph, c.options.direction);
  cpu::ReduceArgs args;
  std::vector<float> out = testing::unset(c.rows() * program.width());
  std::vector<int32_t> argmax(out.size(), -7);
  std::vector<float> partials = testing::unset(2 * view->num_partials * program.width());
  args.view = view.get();
  args.program = program.program().bound();
  args.value = program.value();
  args.reduce = ReduceOp::max;
  args.out = out.data();
  args.argmax = argmax.data();
  args.partials = partials.data();
  args.scratch =
      shared_scratch(cpu::reduce_scratch_floats(*view, program.program().program(), program.value(), nullptr));
  cpu::reduce_rows(args);
  EXPECT_TRUE(testing::same_bytes(run.out, out)) << c.text();
  EXPECT_EQ(run.argmax, argmax) << c.text();
}

void check(const Case& c, const cpu::GTaskView& view, EdgeProgram& program) {
  GTaskRun run(view, program, c.rows(), c.reduce);
  run.run();
  testing::expect_close(program.stored(), program.want_stored(), 1e-5, c.text() + " stored");
  if (c.reduce == ReduceOp::max) {
    expect_same_max(c, program, run);
  } else {
    expect_sums(run.out, reduced(c.graph, program, c.options.direction, c.reduce), c.text());
  }
  std::vector<double> doubled(run.out.begin(), run.out.end());
  for (double& v : doubled) v *= 2;
  for (const bool stored : {true, false}) {
    std::fill(run.doubled.begin(), run.doubled.end(), std::numeric_limits<float>::quiet_NaN());
    run.run_post(stored);
    testing::expect_close(run.doubled, doubled, 0, c.text() + " post");
  }
}

const std::vector<std::pair<Kind, ReduceOp>> kWork = {
    {Kind::gather, ReduceOp::sum},    {Kind::weighted, ReduceOp::mean},  {Kind::chain, ReduceOp::sum},
    {Kind::chain, ReduceOp::max},     {Kind::gemm, ReduceOp::sum},       {Kind::gemm_t, ReduceOp::mean},
    {Kind::gemm, ReduceOp::max},      {Kind::typed_gemm, ReduceOp::sum}, {Kind::typed_gemm_t, ReduceOp::sum},
    {Kind::typed_gemm, ReduceOp::max}};

// Checks every table × direction × way of running × work on one thread.
void check_everything(const std::string& name, const Graph& graph, int64_t in, int64_t out) {
  std::map<Kind, EdgeProgram> programs;
  for (const auto& [kind, text] : kKinds) programs.try_emplace(kind, graph, kind, in, out);
  for (const std::string& table : kTables) {
    const auto tasks = gtasks(graph, table);
    for (const Direction direction : {Direction::by_dst, Direction::by_src}) {
      for (const auto& [split_outliers, by_type] : {std::pair{false, true}, {true, true}, {true, false}}) {
        const cpu::GTaskOptions options = {direction, std::max(in, out), split_outliers, by_type};
        const auto view = cpu::make_gtask_view(tasks, options);
        EXPECT_GE(cpu::gtask_view_bytes(*view), 0);
        for (const auto& [kind, reduce] : kWork) {
          check({name, graph, table, options, kind, reduce}, *view, programs.at(kind));
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(GTaskKernel, SmallGraphs) {
  for (const auto& [name, graph] : testing::awkward_graphs()) check_everything(name, graph, 7, 12);
  for (const auto& [name, graph] : test::random_graphs(3, 40)) check_everything(name, graph, 20, 5);
  for (const auto& [name, layers] : test::random_blocks(4, 1, 30)) check_everything(name, layers[0], 17, 33);
}

Graph big_graph() {
  test::BigGraph how;
  how.vertices = 1500;
  how.edges = 6000;
  how.hub_edges = 2500;
  return test::typed_weighted_graph(how);
}

TEST(GTaskKernel, ManyUnits) { check_everything("big", big_graph(), 8, 24); }

// Rows are so wide that their partial sums need many windows.
TEST(GTaskKernel, ManyWindowsOnAnyNumberOfThreads) {
  const Graph graph = big_graph();
  std::map<Kind, EdgeProgram> programs;
  for (const Kind kind : {Kind::gather, Kind::chain, Kind::typed_gemm})
    programs.try_emplace(kind, graph, kind, 100, 200);
  for (const std::string table :
       {"dst-id=1", "src-id=8", "edge-id=1", "src-id=64,edge-type=1", "dst-id=1,edge-id=32"}) {
    const auto tasks = gtasks(graph, table);
    for (const bool split_outliers : {false, true}) {
      for (const Direction direction : {Direction::by_dst, Direction::by_src}) {
        const cpu::GTaskOptions options = {direction, 200, split_outliers, true};
        const auto view = cpu::make_gtask_view(tasks, options);
        if (table == "edge-id=1" && direction == Direction::by_src) {
          EXPECT_GT(view->windows.size(), 1u);
        }
        for (const auto& [kind, reduce] : {std::pair{Kind::gather, ReduceOp::sum},
                                           {Kind::chain, ReduceOp::max},
                                           {Kind::typed_gemm, ReduceOp::sum}}) {
          const Case c = {"big", graph, table, options, kind, reduce};
          GTaskRun run(*view, programs.at(kind), c.rows(), reduce);
          testing::run_on_threads(run.out, [&] { run.run(); });
          check(c, *view, programs.at(kind));
        }
      }
    }
  }
}

TEST(GTaskKernel, WorkspaceIsBounded) {
  const Graph graph = big_graph();
  const auto view = cpu::make_gtask_view(gtasks(graph, "edge-id=1"), {Direction::by_src, 512, false, true});
  EdgeProgram program(graph, Kind::gather, 512, 512);
  const int64_t bytes = cpu::gtask_workspace(*view, program.program().program(), program.value(), ReduceOp::sum, true);
  EXPECT_LE(bytes, 4 << 20);
}

TEST(GTaskKernel, OnlyStores) {
  for (const std::string table : {"", "dst-id=1", "src-id=8", "edge-id=1"}) {
    const Graph graph = big_graph();
    EdgeProgram program(graph, Kind::chain, 9, 9);
    const auto view = cpu::make_gtask_view(gtasks(graph, table), {});
    GTaskRun run(*view, program, graph.num_dst(), ReduceOp::sum);
    run.args.value = -1;
    run.args.out = nullptr;
    testing::run_on_threads(program.stored(), [&] { run.run(); });
    testing::expect_close(program.stored(), program.want_stored(), 1e-5, table);
  }
}

// ---- Weight gradients.
void check_weight_grad(const std::string& name, const Graph& graph, const std::string& table, bool split_outliers) {
  const int64_t k = 13, n = 20;
  const auto x = random_floats(graph.num_src() * k, 1), g = random_floats(graph.num_dst() * n, 2),
             e = random_floats(graph.num_edges(), 3);
  for (const bool typed : {false, true}) {
    Program program(Space::edge(0));
    Micro repeat;
    repeat.b_repeat = static_cast<int>(k);
    const int rx = program.apply(MicroOp::mul, k, program.load(MicroOp::load_src, x.data(), k),
                                 program.load(MicroOp::load, e.data(), 1), repeat);
    const int rg = program.load(MicroOp::load_dst, g.data(), n);
    const auto view = cpu::make_gtask_view(gtasks(graph, table), {Direction::by_dst, n, split_outliers, true});
    const int64_t matrices = typed ? graph.num_edge_types() : 1;
    std::vector<float> dw = testing::unset(matrices * k * n);
    std::vector<float> space =
        testing::unset(cpu::gtask_weight_grad_workspace(*view, program.program(), rx, rg, typed) / 4);
    TestScratch scratch(cpu::gtask_scratch_floats(program.program(), nullptr));
    const cpu::GTaskWeightGradArgs args = {view.get(), program.bound(), rx,           rg,
                                           typed,      dw.data(),       space.data(), scratch.scratch()};
    testing::run_on_threads(dw, [&] { cpu::gtask_weight_grad(args); });
    std::vector<double> want(dw.size(), 0);
    for (int64_t i = 0; i < graph.num_edges(); ++i) {
      const int64_t type = typed && graph.typed() ? graph.edge_type()[i] : 0;
      for (int64_t a = 0; a < k; ++a) {
        for (int64_t b = 0; b < n; ++b) {
          want[static_cast<size_t>((type * k + a) * n + b)] +=
              double{x[static_cast<size_t>(graph.col_idx()[i] * k + a)]} * e[static_cast<size_t>(i)] *
              g[static_cast<size_t>(graph.edge_dst()[i] * n + b)];
        }
      }
    }
    testing::expect_close(dw, want, 2e-4, name + " " + table + (typed ? " typed" : ""));
  }
}

TEST(GTaskWeightGrad, EveryTable) {
  auto graphs = testing::awkward_graphs();
  graphs.push_back({"big", big_graph()});
  for (const auto& [name, graph] : graphs) {
    for (const std::string& table : kTables) {
      for (const bool split_outliers : {false, true}) check_weight_grad(name, graph, table, split_outliers);
    }
  }
}

}  // namespace
}  // namespace nacre
