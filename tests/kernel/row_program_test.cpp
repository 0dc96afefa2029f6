#include "nacre/dfg/random.h"

#include "kernel/sparse_testing.h"

namespace nacre {
namespace {

using testing::kWidths;
using testing::Program;
using testing::random_floats;
using testing::TestScratch;

const std::vector<int64_t> kRowCounts = {0, 1, 5, 300, 2100};

// Runs the program over `rows` vertices on 1, 2 and 4 threads; `result` is what it stores.
void run_rows(const Program& program, int64_t rows, std::vector<float>& result) {
  TestScratch scratch(cpu::scratch_floats(program.program()));
  const auto bound = program.bound();
  testing::run_on_threads(result, [&] { cpu::map_rows(bound, {0, rows}, scratch.scratch()); });
}

struct Function {
  MicroOp op;
  double (*value)(double a, double b, double alpha);
  bool binary = false;
  double tolerance = 1e-6;
};

const std::vector<Function> kFunctions = {
    {MicroOp::add, [](double a, double b, double) { return a + b; }, true},
    {MicroOp::sub, [](double a, double b, double) { return a - b; }, true},
    {MicroOp::mul, [](double a, double b, double) { return a * b; }, true},
    {MicroOp::scale, [](double a, double, double alpha) { return alpha * a; }},
    {MicroOp::relu, [](double a, double, double) { return std::max(a, 0.0); }},
    {MicroOp::leaky_relu, [](double a, double, double alpha) { return a > 0 ? a : alpha * a; }},
    {MicroOp::elu, [](double a, double, double alpha) { return a > 0 ? a : alpha * std::expm1(a); }},
    {MicroOp::sigmoid, [](double a, double, double) { return 1 / (1 + std::exp(-a)); }},
    {MicroOp::tanh, [](double a, double, double) { return std::tanh(a); }},
    {MicroOp::relu_grad, [](double g, double y, double) { return y > 0 ? g : 0; }, true},
    {MicroOp::leaky_relu_grad, [](double g, double y, double alpha) { return y > 0 ? g : alpha * g; }, true},
    {MicroOp::elu_grad, [](double g, double y, double alpha) { return y > 0 ? g : g * (y + alpha); }, true},
    {MicroOp::sigmoid_grad, [](double g, double y, double) { return g * y * (1 - y); }, true},
    {MicroOp::tanh_grad, [](double g, double y, double) { return g * (1 - y * y); }, true, 4e-6},
    {MicroOp::inv, [](double a, double, double) { return a == 0 ? 0 : 1 / a; }},
    {MicroOp::inv_sqrt, [](double a, double, double) { return a <= 0 ? 0 : 1 / std::sqrt(a); }},
};

// Returns values in [-4, 4], with zeros and a few large ones among them.
std::vector<float> mixed_floats(int64_t n, uint64_t seed) {
  auto values = random_floats(n, seed, -4, 4);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 13 == 3) values[i] = 0;
    if (i % 29 == 7) values[i] *= 60;
  }
  return values;
}

TEST(MapRows, ElementwiseFunctions) {
  for (const Function& f : kFunctions) {
    for (const int64_t width : kWidths) {
      for (const int64_t rows : kRowCounts) {
        if (rows * width > 200000) continue;
        const auto a = mixed_floats(rows * width, 1), b = mixed_floats(rows * width, 2);
        std::vector<float> out = testing::unset(rows * width);
        Program program(Space::vertex(0));
        Micro options;
        options.alpha = 0.3f;
        const int ra = program.load(MicroOp::load, a.data(), width);
        const int rb = f.binary ? program.load(MicroOp::load, b.data(), width) : -1;
        program.store(program.apply(f.op, width, ra, rb, options), out.data());
        run_rows(program, rows, out);
        std::vector<double> want(out.size());
        for (size_t i = 0; i < want.size(); ++i) want[i] = f.value(a[i], b[i], 0.3f);
        testing::expect_close(out, want, f.tolerance, program_text(program.program()));
      }
    }
  }
}

// Combines an operand of H elements with one of H · D, either way round, from its own rows or from
// a parameter.
TEST(MapRows, RepeatedOperands) {
  const int64_t rows = 333;
  for (const auto& [h, d] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 7}, {1, 256}, {3, 5}, {4, 64}, {8, 8}, {8, 16}, {2, 301}, {40, 2}}) {
    const int64_t width = h * d;
    for (const bool swap : {false, true}) {
      for (const MicroOp from : {MicroOp::load, MicroOp::load_row0}) {
        const auto wide = random_floats(rows * width, 1), narrow = random_floats(rows * h, 2);
        std::vector<float> out = testing::unset(rows * width);
        Program program(Space::vertex(0));
        const int rw = program.load(MicroOp::load, wide.data(), width);
        const int rn = program.load(from, narrow.data(), h);
        Micro options;
        (swap ? options.a_repeat : options.b_repeat) = static_cast<int>(d);
        program.store(program.apply(MicroOp::sub, width, swap ? rn : rw, swap ? rw : rn, options), out.data());
        run_rows(program, rows, out);
        std::vector<double> want(out.size());
        for (int64_t i = 0; i < rows * width; ++i) {
          const int64_t row = from == MicroOp::load ? i / width : 0;
          const double n = narrow[static_cast<size_t>(row * h + i % width / d)], w = wide[static_cast<size_t>(i)];
          want[static_cast<size_t>(i)] = swap ? n - w : w - n;
        }
        testing::expect_close(out, want, 1e-6, program_text(program.program()));
      }
    }
  }
}

TEST(MapRows, BothOperandsRepeated) {
  const int64_t rows = 9;
  const auto a = random_floats(rows * 4, 1), b = random_floats(rows * 2, 2);
  std::vector<float> out = testing::unset(rows * 12), sums = testing::unset(rows * 2);
  Program program(Space::vertex(0));
  const int ra = program.load(MicroOp::load, a.data(), 4), rb = program.load(MicroOp::load, b.data(), 2);
  Micro options;
  options.a_repeat = 3;
  options.b_repeat = 6;
  program.store(program.apply(MicroOp::mul, 12, ra, rb, options), out.data());
  program.store(program.apply(MicroOp::dot, 2, ra, rb, options), sums.data());
  run_rows(program, rows, out);
  std::vector<double> want(out.size()), want_sums(sums.size());
  for (size_t i = 0; i < want.size(); ++i) {
    want[i] = static_cast<double>(a[i / 3]) * b[i / 6];
    want_sums[i / 6] += want[i];
  }
  testing::expect_close(out, want, 1e-6, "mul");
  testing::expect_close(sums, want_sums, 1e-6, "dot");
}

// ---- Dropout.
std::vector<float> dropped(const std::vector<float>& x, const Program& program, uint64_t salt, float share) {
  const auto bound = program.bound();
  const DropoutStream stream(bound.step->seed, salt, bound.step->step);
  std::vector<float> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    out[i] = dropout_keep(stream, i, dropout_threshold(share)) ? x[i] * (1.0f / (1.0f - share)) : 0.0f;
  }
  return out;
}

TEST(MapRows, DropoutDrawsTheNumbersOfTheSpecification) {
  for (const int64_t width : kWidths) {
    for (const float share : {0.0f, 0.1f, 0.5f, 0.6f}) {
      const int64_t rows = 1111;
      const auto x = random_floats(rows * width, 3, 1, 2);
      std::vector<float> out = testing::unset(rows * width);
      Program program(Space::vertex(0));
      Micro options;
      options.alpha = share;
      options.salt = 0x1234567890ull;
      program.step() = {0xABCDEF0123456789ull, 0x700000003ull};
      const int loaded = program.load(MicroOp::load, x.data(), width);
      program.store(program.apply(MicroOp::dropout, width, loaded, -1, options), out.data());
      run_rows(program, rows, out);
      EXPECT_TRUE(testing::same_bytes(out, dropped(x, program, options.salt, share))) << "width " << width;
    }
  }
}

// Tests element numbers beyond 2^32 and rows that are not whole Philox blocks.
TEST(MapRows, DropoutFarFromZero) {
  const int64_t width = 3, first = 5000000001, rows = 40;
  const auto x = random_floats(rows * width, 3, 1, 2);
  std::vector<float> out = testing::unset(rows * width);
  Program program(Space::vertex(0));
  Micro options;
  options.alpha = 0.5f;
  options.salt = 9;
  program.store(program.apply(MicroOp::dropout, width, program.root(width), -1, options), out.data() - first * width);
  std::vector<float> scratch(static_cast<size_t>(cpu::scratch_floats(program.program())));
  cpu::map_rows_serial(program.bound(), first, first + rows, x.data(), scratch.data());
  const DropoutStream stream(11, 9, 4);
  for (size_t i = 0; i < x.size(); ++i) {
    const bool keep = dropout_keep(stream, static_cast<uint64_t>(first * width) + i, dropout_threshold(0.5));
    ASSERT_EQ(out[i], keep ? x[i] * 2 : 0.0f) << i;
  }
}

// ---- Row shapes and sums.
TEST(MapRows, RowSumAndDot) {
  const int64_t rows = 100;
  for (const int64_t groups : {1, 3, 4, 8}) {
    for (const int64_t size : kWidths) {
      const int64_t width = groups * size;
      const auto a = random_floats(rows * width, 1), b = random_floats(rows * width, 2);
      std::vector<float> sum = testing::unset(rows * groups), dot = testing::unset(rows * groups);
      Program program(Space::vertex(0));
      const int ra = program.load(MicroOp::load, a.data(), width), rb = program.load(MicroOp::load, b.data(), width);
      program.store(program.apply(MicroOp::row_sum, groups, ra), sum.data());
      program.store(program.apply(MicroOp::dot, groups, ra, rb), dot.data());
      run_rows(program, rows, sum);
      run_rows(program, rows, dot);
      std::vector<double> want_sum(sum.size()), want_dot(sum.size());
      for (size_t i = 0; i < a.size(); ++i) {
        want_sum[i / static_cast<size_t>(size)] += a[i];
        want_dot[i / static_cast<size_t>(size)] += static_cast<double>(a[i]) * b[i];
      }
      testing::expect_close(sum, want_sum, 1e-5, "row_sum");
      testing::expect_close(dot, want_dot, 1e-5, "dot");
    }
  }
}

TEST(MapRows, ConcatSlicePadExpand) {
  const int64_t rows = 77;
  for (const int groups : {1, 3}) {
    for (const auto& [p, q] : std::vector<std::pair<int, int>>{{1, 1}, {16, 16}, {5, 40}, {33, 2}, {256, 100}}) {
      const auto a = random_floats(rows * groups * p, 1), b = random_floats(rows * groups * q, 2);
      const int total = p + q;
      std::vector<float> joined = testing::unset(rows * groups * total), back = testing::unset(rows * groups * q),
                         padded = testing::unset(rows * groups * total), wide = testing::unset(rows * groups * p * 3);
      Program program(Space::vertex(0));
      Micro parts;
      parts.a_part = p;
      parts.b_part = q;
      const int ra = program.load(MicroOp::load, a.data(), groups * p);
      const int rb = program.load(MicroOp::load, b.data(), groups * q);
      const int rj = program.apply(MicroOp::concat, groups * total, ra, rb, parts);
      program.store(rj, joined.data());
      Micro cut;
      cut.begin = p;
      cut.a_part = total;
      const int rs = program.apply(MicroOp::slice, groups * q, rj, -1, cut);
      program.store(rs, back.data());
      Micro place;
      place.begin = p;
      place.a_part = q;
      program.store(program.apply(MicroOp::pad, groups * total, rs, -1, place), padded.data());
      Micro repeat;
      repeat.a_repeat = 3;
      program.store(program.apply(MicroOp::expand, groups * p * 3, ra, -1, repeat), wide.data());
      run_rows(program, rows, joined);
      EXPECT_EQ(back, b);
      for (int64_t g = 0; g < rows * groups; ++g) {
        for (int i = 0; i < total; ++i) {
          const auto at = static_cast<size_t>(g * total + i);
          ASSERT_EQ(joined[at], i < p ? a[static_cast<size_t>(g * p + i)] : b[static_cast<size_t>(g * q + i - p)]);
          ASSERT_EQ(padded[at], i < p ? 0.0f : joined[at]);
        }
      }
      for (size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(wide[i], a[i / 3]);
    }
  }
}

// ---- Normalisation.
struct RowOracle {
  std::vector<double> normalized, normalized_grad, log_softmax, log_softmax_grad, standardized;
};

RowOracle row_oracle(const float* x, const float* g, const float* moments, int64_t n, double epsilon) {
  RowOracle o;
  double mean = 0, variance = 0, g_mean = 0, gy_mean = 0, top = x[0], sum = 0, g_sum = 0;
  const auto count = static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) mean += x[i] / count;
  for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean) / count;
  const double s = 1 / std::sqrt(variance + epsilon);
  for (int64_t i = 0; i < n; ++i) {
    g_mean += g[i] / count;
    g_sum += g[i];
    gy_mean += g[i] * (x[i] - mean) * s / count;
    top = std::max(top, static_cast<double>(x[i]));
  }
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - top);
  for (int64_t i = 0; i < n; ++i) {
    const double y = (x[i] - mean) * s, lp = x[i] - top - std::log(sum);
    o.normalized.push_back(y);
    o.normalized_grad.push_back(s * (g[i] - g_mean - y * gy_mean));
    o.log_softmax.push_back(lp);
    o.log_softmax_grad.push_back(g[i] - std::exp(lp) * g_sum);
    o.standardized.push_back((x[i] - moments[i]) / std::sqrt(moments[n + i] + epsilon));
  }
  return o;
}

TEST(MapRows, Normalisation) {
  const int64_t rows = 61;
  for (const int64_t width : kWidths) {
    auto x = random_floats(rows * width, 1, -3, 5);
    const auto g = random_floats(rows * width, 2), moments = random_floats(2 * width, 3, 0.5, 2);
    std::vector<float> out[5];
    for (auto& o : out) o = testing::unset(rows * width);
    Program program(Space::vertex(0));
    Micro options;
    options.alpha = 1e-2f;
    const int rx = program.load(MicroOp::load, x.data(), width), rg = program.load(MicroOp::load, g.data(), width);
    program.store(program.apply(MicroOp::row_normalize, width, rx, -1, options), out[0].data());
    program.store(program.apply(MicroOp::row_normalize_grad, width, rg, rx, options), out[1].data());
    const int lp = program.apply(MicroOp::log_softmax, width, rx);
    program.store(lp, out[2].data());
    program.store(program.apply(MicroOp::log_softmax_grad, width, rg, lp), out[3].data());
    program.store(program.apply_with(MicroOp::standardize, width, rx, moments.data(), options), out[4].data());
    for (auto& o : out) run_rows(program, rows, o);
    for (int64_t r = 0; r < rows; ++r) {
      const auto o = row_oracle(x.data() + r * width, g.data() + r * width, moments.data(), width, 1e-2f);
      const auto row = [&](const std::vector<float>& all) {
        return std::vector<float>(all.begin() + r * width, all.begin() + (r + 1) * width);
      };
      testing::expect_close(row(out[0]), o.normalized, 1e-5, "row_normalize");
      testing::expect_close(row(out[1]), o.normalized_grad, 3e-5, "row_normalize_grad");
      testing::expect_close(row(out[2]), o.log_softmax, 1e-5, "log_softmax");
      testing::expect_close(row(out[3]), o.log_softmax_grad, 2e-5, "log_softmax_grad");
      testing::expect_close(row(out[4]), o.standardized, 1e-5, "standardize");
    }
  }
}

// ---- Matrix products. Returns out[r] = Σ over k of in[r, k] · element(r, k, n).
template <class F>
std::vector<double> product(const std::vector<double>& in, int64_t rows, int64_t k, int64_t n, const F& element) {
  std::vector<double> out(static_cast<size_t>(rows * n));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += in[static_cast<size_t>(r * k + i)] * element(r, i, j);
      out[static_cast<size_t>(r * n + j)] = sum;
    }
  }
  return out;
}

// Computes relu(x + p)·W, then relu of that times Wᵀ: consecutive products of rows read in place
// and of rows in slots.
TEST(MapRows, MatrixProducts) {
  for (const auto& [k, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 40}, {64, 7}, {100, 100}, {33, 257}}) {
    for (const int64_t rows : {0, 1, 5, 700}) {
      const auto x = random_floats(rows * k, 1), w = random_floats(k * n, 2), p = random_floats(k, 3);
      std::vector<float> direct = testing::unset(rows * n), there = testing::unset(rows * n),
                         back = testing::unset(rows * k), one = testing::unset(rows * n);
      Program program(Space::vertex(0));
      const int rx = program.load(MicroOp::load, x.data(), k), rp = program.load(MicroOp::load_row0, p.data(), k);
      program.store(program.apply_with(MicroOp::gemm, n, rx, w.data()), direct.data());
      const int sum = program.apply(MicroOp::relu, k, program.apply(MicroOp::add, k, rx, rp));
      const int rt = program.apply_with(MicroOp::gemm, n, sum, w.data());
      program.store(rt, there.data());
      program.store(program.apply_with(MicroOp::gemm_t, k, program.apply(MicroOp::relu, n, rt), w.data()), back.data());
      program.store(program.apply_with(MicroOp::gemm, n, rp, w.data()), one.data());
      run_rows(program, rows, back);
      const auto weight = [&, n = n](int64_t, int64_t i, int64_t j) {
        return double{w[static_cast<size_t>(i * n + j)]};
      };
      const auto weight_t = [&, n = n](int64_t, int64_t j, int64_t i) {
        return double{w[static_cast<size_t>(i * n + j)]};
      };
      std::vector<double> in(x.begin(), x.end()), ps;
      testing::expect_close(direct, product(in, rows, k, n, weight), 1e-5, "gemm of rows in place");
      for (size_t i = 0; i < in.size(); ++i) {
        ps.push_back(p[i % p.size()]);
        in[i] = std::max(0.0, in[i] + ps[i]);
      }
      auto middle = product(in, rows, k, n, weight);
      testing::expect_close(there, middle, 1e-5, "gemm");
      for (double& v : middle) v = std::max(0.0, v);
      testing::expect_close(back, product(middle, rows, n, k, weight_t), 4e-5, "gemm_t");
      testing::expect_close(one, product(ps, rows, k, n, weight), 1e-5, "gemm of a parameter");
    }
  }
}

TEST(MapEdges, TypedProductsInBothDirections) {
  for (const auto& [name, graph] : testing::awkward_graphs()) {
    for (const auto& [k, n] : std::vector<std::pair<int64_t, int64_t>>{{1, 4}, {17, 9}, {40, 64}}) {
      const auto x = random_floats(graph.num_src() * k, 1), w = random_floats(3 * k * n, 2);
      std::vector<float> there = testing::unset(graph.num_edges() * n), back = testing::unset(graph.num_edges() * k);
      Program program(Space::edge(0));
      const int rt = program.apply_with(MicroOp::typed_gemm, n, program.load(MicroOp::load_src, x.data(), k), w.data());
      program.store(rt, there.data());
      program.store(program.apply_with(MicroOp::typed_gemm_t, k, rt, w.data()), back.data());
      std::vector<double> in;
      for (const NodeId u : graph.col_idx()) in.insert(in.end(), x.begin() + u * k, x.begin() + (u + 1) * k);
      const auto weight = [&, graph = graph, k = k, n = n](int64_t e, int64_t i, int64_t j) {
        return double{w[static_cast<size_t>((graph.edge_type()[e] * k + i) * n + j)]};
      };
      const auto weight_t = [&](int64_t e, int64_t j, int64_t i) { return weight(e, i, j); };
      const auto want = product(in, graph.num_edges(), k, n, weight);
      TestScratch scratch(cpu::scratch_floats(program.program()));
      const auto bound = program.bound();
      for (const auto direction : {Direction::by_dst, Direction::by_src}) {
        const auto view = cpu::make_row_view(graph, direction);
        std::fill(there.begin(), there.end(), std::numeric_limits<float>::quiet_NaN());
        testing::run_on_threads(back, [&] { cpu::map_edges(bound, *view, scratch.scratch()); });
        testing::expect_close(there, want, 1e-5, name + " typed_gemm");
        testing::expect_close(back, product(want, graph.num_edges(), n, k, weight_t), 4e-5, name + " typed_gemm_t");
      }
    }
  }
}

TEST(ProgramText, NamesProducts) {
  Program program(Space::edge(0));
  program.apply_with(MicroOp::typed_gemm_t, 8, program.load(MicroOp::load_src, nullptr, 16), nullptr);
  EXPECT_EQ(program_text(program.program()), "program over e0\n  r0[16] = load_src %0\n  r1[8] = typed_gemm_t %1 r0\n");
}

// ---- Edges. The value of an edge is (x[src] + y[dst]) · t[type] + e[edge] + p, dropped. Positions
// name edges in both directions.
TEST(MapEdges, GathersFromEverySpaceInBothDirections) {
  for (const auto& [name, graph] : testing::awkward_graphs()) {
    for (const int64_t width : kWidths) {
      const int64_t edges = graph.num_edges();
      const auto x = random_floats(graph.num_src() * width, 1), y = random_floats(graph.num_dst() * width, 2),
                 t = random_floats(3 * width, 3), e = random_floats(edges * width, 4), p = random_floats(width, 5);
      std::vector<float> values = testing::unset(edges * width), kept = testing::unset(edges * width);
      Program program(Space::edge(0));
      const int sum = program.apply(MicroOp::add, width, program.load(MicroOp::load_src, x.data(), width),
                                    program.load(MicroOp::load_dst, y.data(), width));
      const int typed = program.apply(MicroOp::mul, width, sum, program.load(MicroOp::load_type, t.data(), width));
      const int own = program.apply(MicroOp::add, width, program.load(MicroOp::load, e.data(), width), typed);
      const int all = program.apply(MicroOp::add, width, own, program.load(MicroOp::load_row0, p.data(), width));
      Micro options;
      options.alpha = 0.4f;
      options.salt = 5;
      program.store(all, values.data());
      program.store(program.apply(MicroOp::dropout, width, all, -1, options), kept.data());
      std::vector<double> want(values.size());
      for (const auto& row : testing::edges_by(graph, Direction::by_dst)) {
        for (const auto& edge : row) {
          const int64_t type = graph.edge_type()[edge.position];
          for (int64_t i = 0; i < width; ++i) {
            const auto at = [&](const std::vector<float>& v, int64_t r) {
              return static_cast<double>(v[static_cast<size_t>(r * width + i)]);
            };
            want[static_cast<size_t>(edge.position * width + i)] =
                (at(x, edge.src) + at(y, edge.dst)) * at(t, type) + at(e, edge.position) + at(p, 0);
          }
        }
      }
      TestScratch scratch(cpu::scratch_floats(program.program()));
      const auto bound = program.bound();
      for (const auto direction : {Direction::by_dst, Direction::by_src}) {
        const auto view = cpu::make_row_view(graph, direction);
        std::fill(values.begin(), values.end(), std::numeric_limits<float>::quiet_NaN());
        std::fill(kept.begin(), kept.end(), std::numeric_limits<float>::quiet_NaN());
        testing::run_on_threads(kept, [&] { cpu::map_edges(bound, *view, scratch.scratch()); });
        testing::expect_close(values, want, 1e-6, name);
        EXPECT_TRUE(testing::same_bytes(kept, dropped(values, program, 5, 0.4f))) << name << " width " << width;
      }
    }
  }
}

TEST(MapEdges, TakeMaxAndGatheredDot) {
  const Graph& graph = testing::awkward_graphs().back().graph;
  for (const int64_t width : {1, 4, 33, 256}) {
    const auto g = random_floats(graph.num_dst() * width, 1), x = random_floats(graph.num_src() * width, 2);
    std::vector<int32_t> argmax(g.size());
    for (size_t i = 0; i < argmax.size(); ++i) {
      const auto v = static_cast<int64_t>(i) / width;
      const int64_t degree = graph.in_degree(v);
      argmax[i] = degree == 0 ? -1 : static_cast<int32_t>(graph.row_ptr()[v] + testing::random_bits(3, i) % degree);
    }
    std::vector<float> taken = testing::unset(graph.num_edges() * width), dot = testing::unset(graph.num_edges());
    Program program(Space::edge(0));
    const int rg = program.load(MicroOp::load_dst, g.data(), width);
    program.store(program.apply_with(MicroOp::take_max, width, rg, argmax.data()), taken.data());
    const int rx = program.load(MicroOp::load_src, x.data(), width);
    program.store(program.apply(MicroOp::dot, 1, rx, rg), dot.data());
    TestScratch scratch(cpu::scratch_floats(program.program()));
    const auto bound = program.bound();
    const auto view = cpu::make_row_view(graph, Direction::by_dst);
    testing::run_on_threads(taken, [&] { cpu::map_edges(bound, *view, scratch.scratch()); });
    for (const auto& row : testing::edges_by(graph, Direction::by_dst)) {
      for (const auto& e : row) {
        double sum = 0;
        for (int64_t i = 0; i < width; ++i) {
          const auto at = static_cast<size_t>(e.dst * width + i);
          ASSERT_EQ(taken[static_cast<size_t>(e.position * width + i)], argmax[at] == e.position ? g[at] : 0.0f);
          sum += static_cast<double>(g[at]) * x[static_cast<size_t>(e.src * width + i)];
        }
        ASSERT_NEAR(dot[static_cast<size_t>(e.position)], sum, 1e-4);
      }
    }
  }
}

// ---- Where registers live.
TEST(MapRows, UpdatesInPlace) {
  const int64_t rows = 1000, width = 33;
  const auto before = random_floats(rows * width, 1);
  auto x = before;
  std::vector<float> old = testing::unset(rows * width);
  Program program(Space::vertex(0));
  const int rx = program.load(MicroOp::load, x.data(), width);
  program.store(program.apply(MicroOp::add, width, rx, rx), x.data());
  program.store(rx, old.data());  // it is read after its memory has been overwritten
  TestScratch scratch(cpu::scratch_floats(program.program()));
  cpu::map_rows(program.bound(), {0, rows}, scratch.scratch());
  EXPECT_EQ(old, before);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], before[i] + before[i]);
}

// In random programs, every register must hold its value, whatever slots, aliases and early stores
// the planner chooses.
TEST(MapRows, RandomProgramsKeepTheirRegistersApart) {
  const int64_t rows = 150;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    uint64_t draw = 0;
    const auto pick = [&](uint32_t n) { return static_cast<int>(testing::random_bits(seed + 1000, draw++) % n); };
    const int64_t width = kWidths[static_cast<size_t>(pick(14))];
    std::vector<std::vector<float>> memory, stored;
    std::vector<std::vector<double>> value;
    std::vector<std::pair<size_t, int>> stores;
    memory.reserve(64);
    stored.reserve(64);
    Program program(Space::vertex(0));
    const int length = 5 + pick(40);
    for (int step = 0; step < length; ++step) {
      const int kind = step < 2 ? 0 : pick(8);
      const auto n = static_cast<uint32_t>(value.size());
      if (kind < 2) {
        memory.push_back(random_floats(rows * width, seed * 64 + static_cast<uint64_t>(step)));
        const bool param = kind == 1;
        program.load(param ? MicroOp::load_row0 : MicroOp::load, memory.back().data(), width);
        std::vector<double> v(memory.back().begin(), memory.back().end());
        for (size_t i = 0; param && i < v.size(); ++i) v[i] = v[i % static_cast<size_t>(width)];
        value.push_back(v);
      } else if (kind < 4) {
        stored.push_back(testing::unset(rows * width));
        const int reg = pick(n);
        program.store(reg, stored.back().data());
        stores.emplace_back(stored.size() - 1, reg);
      } else {
        const int a = pick(n), b = pick(n);
        const MicroOp op = kind == 4   ? MicroOp::relu
                           : kind == 5 ? MicroOp::scale
                           : kind == 6 ? MicroOp::add
                                       : MicroOp::sub;
        Micro options;
        options.alpha = 0.5f;
        program.apply(op, width, a, kind >= 6 ? b : -1, options);
        std::vector<double> v = value[static_cast<size_t>(a)];
        for (size_t i = 0; i < v.size(); ++i) {
          const double other = value[static_cast<size_t>(b)][i];
          v[i] = kind == 4 ? std::max(v[i], 0.0) : kind == 5 ? 0.5 * v[i] : kind == 6 ? v[i] + other : v[i] - other;
        }
        value.push_back(v);
      }
    }
    if (stored.empty()) continue;
    run_rows(program, rows, stored[0]);
    for (const auto& [memory_index, reg] : stores) {
      testing::expect_close(stored[memory_index], value[static_cast<size_t>(reg)], 1e-3,
                            "seed " + std::to_string(seed) + "\n" + program_text(program.program()));
    }
  }
}

TEST(ProgramText, OneMicroOpALine) {
  std::vector<float> x(4);
  Program program(Space::edge(1));
  const int a = program.load(MicroOp::load_src, x.data(), 256);
  const int b = program.load(MicroOp::load, x.data(), 4);
  Micro options;
  options.b_repeat = 64;
  const int c = program.apply(MicroOp::mul, 256, a, b, options);
  Micro drop;
  drop.alpha = 0.5f;
  drop.salt = 7;
  program.store(program.apply(MicroOp::dropout, 256, c, -1, drop), x.data());
  EXPECT_EQ(program_text(program.program()),
            "program over e1\n"
            "  r0[256] = load_src %0\n"
            "  r1[4] = load %1\n"
            "  r2[256] = mul r0 r1*64\n"
            "  r3[256] = dropout r2 alpha 0.5 salt 7\n"
            "  store %2 r3\n");
}

}  // namespace
}  // namespace nacre
