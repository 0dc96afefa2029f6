// Compares matrix products with a double reference on awkward sizes, and checks that bits are equal
// on any number of threads.
#include "nacre/kernel/cpu/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"
#include "nacre/kernel/cpu/gemm_kernels.h"

namespace nacre::cpu {
namespace {

constexpr int64_t kSizes[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 257};

enum class Kind { nn, nt, tn, tile_nn, tile_nt, tile_tn, packed_nn, packed_nt };
constexpr Kind kKinds[] = {Kind::nn,      Kind::nt,      Kind::tn,        Kind::tile_nn,
                           Kind::tile_nt, Kind::tile_tn, Kind::packed_nn, Kind::packed_nt};

bool a_transposed(Kind kind) { return kind == Kind::tn || kind == Kind::tile_tn; }
bool b_transposed(Kind kind) { return kind == Kind::nt || kind == Kind::tile_nt || kind == Kind::packed_nt; }

// A row-major matrix with a padded leading dimension that starts one float off any alignment. The
// padding is NaN, so reading it shows in the result, and padding_untouched() finds writes to it.
struct Matrix {
  Matrix(int64_t rows_in, int64_t cols_in, uint64_t seed) : rows(rows_in), cols(cols_in), ld(cols_in + 3) {
    store.assign(static_cast<size_t>(rows * ld + 1), std::numeric_limits<float>::quiet_NaN());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        at(r, c) = uniform01(philox(seed, 0, static_cast<uint64_t>(r * cols + c))[0]) - 0.5f;
      }
    }
  }
  float* data() { return store.data() + 1; }
  const float* data() const { return store.data() + 1; }
  float& at(int64_t r, int64_t c) { return store[static_cast<size_t>(1 + r * ld + c)]; }
  float at(int64_t r, int64_t c) const { return store[static_cast<size_t>(1 + r * ld + c)]; }
  bool padding_untouched() const {
    if (!std::isnan(store[0])) return false;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = cols; c < ld; ++c) {
        if (!std::isnan(at(r, c))) return false;
      }
    }
    return true;
  }
  bool same_bits(const Matrix& other) const {
    return store.size() == other.store.size() &&
           std::memcmp(store.data(), other.store.data(), store.size() * sizeof(float)) == 0;
  }

  int64_t rows, cols, ld;
  std::vector<float> store;
};

// Computes a product of depth `depth` into C[rows, cols]. For tn, the depth is the number of rows
// of A and B.
void multiply(Kind kind, int64_t depth, const Matrix& a, const Matrix& b, Matrix& c, const GemmEpilogue& e) {
  switch (kind) {
    case Kind::nn:
      return gemm_nn(c.rows, c.cols, depth, a.data(), a.ld, b.data(), b.ld, c.data(), c.ld, e);
    case Kind::nt:
      return gemm_nt(c.rows, c.cols, depth, a.data(), a.ld, b.data(), b.ld, c.data(), c.ld, e);
    case Kind::tile_nn:
      return gemm_tile_nn(c.rows, c.cols, depth, a.data(), a.ld, b.data(), b.ld, c.data(), c.ld, e);
    case Kind::tile_nt:
      return gemm_tile_nt(c.rows, c.cols, depth, a.data(), a.ld, b.data(), b.ld, c.data(), c.ld, e);
    case Kind::tile_tn:
      return gemm_tile_tn(depth, c.cols, c.rows, a.data(), a.ld, b.data(), b.ld, c.data(), c.ld, e.beta);
    case Kind::tn: {
      std::vector<char> workspace(static_cast<size_t>(gemm_tn_workspace(depth, c.rows, c.cols)));
      return gemm_tn(depth, c.cols, c.rows, a.data(), a.ld, b.data(), b.ld, c.data(), c.ld, workspace.data(), e.beta);
    }
    case Kind::packed_nn:
    case Kind::packed_nt: {
      std::vector<float> packed(static_cast<size_t>(gemm_packed_size(c.cols, depth)));
      (kind == Kind::packed_nn ? gemm_pack_nn : gemm_pack_nt)(c.cols, depth, b.data(), b.ld, packed.data());
      return gemm_tile_packed(c.rows, c.cols, depth, a.data(), a.ld, packed.data(), c.data(), c.ld, e);
    }
  }
}

struct Problem {
  Problem(Kind kind_in, int64_t rows, int64_t cols, int64_t depth_in)
      : kind(kind_in),
        depth(depth_in),
        a(a_transposed(kind) ? depth : rows, a_transposed(kind) ? rows : depth, 1),
        b(b_transposed(kind) ? cols : depth, b_transposed(kind) ? depth : cols, 2),
        c(rows, cols, 3) {}

  double reference(int64_t r, int64_t n, const GemmEpilogue& e, double& magnitude) const {
    double sum = 0;
    magnitude = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const double term = static_cast<double>(a_transposed(kind) ? a.at(k, r) : a.at(r, k)) *
                          static_cast<double>(b_transposed(kind) ? b.at(n, k) : b.at(k, n));
      sum += term;
      magnitude += std::abs(term);
    }
    if (e.beta != 0) sum += static_cast<double>(e.beta) * static_cast<double>(c.at(r, n));
    if (e.bias != nullptr) sum += static_cast<double>(e.bias[n]);
    return e.act == Activation::relu ? std::max(0.0, sum) : sum;
  }

  // Returns the largest error in units of what rounding may do to this sum. At most 1 is right.
  double worst_error(const GemmEpilogue& e) const {
    Matrix result = c;
    multiply(kind, depth, a, b, result, e);
    return error_of(result, e);
  }

  double error_of(const Matrix& result, const GemmEpilogue& e) const {
    if (!result.padding_untouched()) return std::numeric_limits<double>::infinity();
    double worst = 0;
    for (int64_t r = 0; r < c.rows; ++r) {
      for (int64_t n = 0; n < c.cols; ++n) {
        double magnitude = 0;
        const double expected = reference(r, n, e, magnitude);
        const double allowed = 6e-8 * (2 + std::sqrt(static_cast<double>(depth))) * (magnitude + 2);
        const double error = std::abs(static_cast<double>(result.at(r, n)) - expected) / allowed;
        if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
      }
    }
    return worst;
  }

  Kind kind;
  int64_t depth;
  Matrix a, b, c;
};

std::string describe(Kind kind, int64_t rows, int64_t cols, int64_t depth) {
  return "kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(rows) + " x " + std::to_string(cols) +
         ", depth " + std::to_string(depth);
}

TEST(Gemm, MatchesReferenceOnAwkwardSizes) {
  // Tests all pairs of awkward sizes; the third size walks through the list with them.
  size_t next = 0;
  for (const Kind kind : kKinds) {
    for (const int64_t x : kSizes) {
      for (const int64_t y : kSizes) {
        const int64_t z = kSizes[next++ % std::size(kSizes)];
        EXPECT_LE(Problem(kind, x, y, z).worst_error({}), 1) << describe(kind, x, y, z);
        EXPECT_LE(Problem(kind, z, x, y).worst_error({}), 1) << describe(kind, z, x, y);
      }
      ++next;  // without this, 16 and 16 would repeat the same third size
    }
  }
}

TEST(Gemm, EveryNumberOfRowsAndColumnsInATile) {
  for (const Kind kind : kKinds) {
    for (int64_t x = 1; x <= 50; ++x) {
      EXPECT_LE(Problem(kind, x, 33, 5).worst_error({}), 1) << describe(kind, x, 33, 5);
      EXPECT_LE(Problem(kind, 13, x, 5).worst_error({}), 1) << describe(kind, 13, x, 5);
    }
  }
}

TEST(Gemm, DeepProductsCrossDepthBlocks) {
  for (const Kind kind : kKinds) {
    for (const int64_t depth : {383, 384, 385, 769, 1433}) {
      EXPECT_LE(Problem(kind, 13, 41, depth).worst_error({nullptr, Activation::none, 1}), 1)
          << describe(kind, 13, 41, depth);
    }
  }
}

TEST(Gemm, EpilogueAddsOldValuesBiasAndActivation) {
  for (const Kind kind : kKinds) {
    for (const int64_t rows : {1, 12, 29, 100}) {
      for (const int64_t cols : {1, 8, 40, 47, 64}) {
        for (const int64_t depth : {0, 1, 19, 385}) {
          const Problem problem(kind, rows, cols, depth);
          // The bias is exactly `cols` long, so that an address sanitizer sees a read past the end.
          const std::vector<float> bias(static_cast<size_t>(cols), 0.25f);
          for (const float beta : {0.0f, 1.0f, 0.5f}) {
            const bool tn = a_transposed(kind);
            const GemmEpilogue plain = {tn ? nullptr : bias.data(), Activation::none, beta};
            const GemmEpilogue relu = {tn ? nullptr : bias.data(), tn ? Activation::none : Activation::relu, beta};
            EXPECT_LE(problem.worst_error(plain), 1) << describe(kind, rows, cols, depth) << " beta " << beta;
            EXPECT_LE(problem.worst_error(relu), 1) << describe(kind, rows, cols, depth) << " beta " << beta;
          }
        }
      }
    }
  }
}

TEST(Gemm, OverwriteDoesNotReadC) {
  for (const Kind kind : kKinds) {
    Problem problem(kind, 30, 41, 20);
    for (float& value : problem.c.store) value = std::numeric_limits<float>::quiet_NaN();
    EXPECT_LE(problem.worst_error({}), 1) << describe(kind, 30, 41, 20);
  }
}

TEST(Gemm, ZeroDepthLeavesAccumulatedValuesAlone) {
  for (const Kind kind : kKinds) {
    const Problem problem(kind, 30, 41, 0);
    Matrix kept = problem.c;
    multiply(kind, 0, problem.a, problem.b, kept, {nullptr, Activation::none, 1});
    EXPECT_TRUE(kept.same_bits(problem.c)) << describe(kind, 30, 41, 0);
  }
}

TEST(Gemm, ReluLetsNanThrough) {
  Problem problem(Kind::nn, 3, 5, 4);
  problem.a.at(1, 2) = std::numeric_limits<float>::quiet_NaN();
  multiply(Kind::nn, 4, problem.a, problem.b, problem.c, {nullptr, Activation::relu, 0});
  for (int64_t n = 0; n < 5; ++n) {
    EXPECT_FALSE(std::isnan(problem.c.at(0, n)));
    EXPECT_TRUE(std::isnan(problem.c.at(1, n)));
  }
}

class GemmThreads : public ::testing::Test {
 protected:
  ~GemmThreads() override { set_num_threads(before_); }
  int before_ = num_threads();
};

TEST_F(GemmThreads, SameBitsOnAnyNumberOfThreads) {
  for (const Kind kind : {Kind::nn, Kind::nt, Kind::tn}) {
    // The problems are tall; for tn there is also the case that cuts C because there are few rows.
    for (const auto& [rows, cols, depth] : {std::array<int64_t, 3>{3001, 47, 65}, {64, 40, 5003}, {257, 65, 257}}) {
      const Problem problem(kind, rows, cols, depth);
      const std::vector<float> bias(static_cast<size_t>(cols), 0.25f);
      const GemmEpilogue e = {a_transposed(kind) ? nullptr : bias.data(), Activation::none, 1};
      set_num_threads(1);
      Matrix one = problem.c;
      multiply(kind, depth, problem.a, problem.b, one, e);
      for (const int threads : {2, 4}) {
        set_num_threads(threads);
        Matrix many = problem.c;
        multiply(kind, depth, problem.a, problem.b, many, e);
        EXPECT_TRUE(many.same_bits(one)) << describe(kind, rows, cols, depth) << " on " << threads << " threads";
      }
    }
  }
}

TEST(Gemm, TilesAndWholeMatricesGiveTheSameBits) {
  for (const bool transposed : {false, true}) {
    // The second B is too large for the buffer that threads share.
    for (const auto& [rows, cols, depth] : {std::array<int64_t, 3>{1000, 47, 500}, {29, 1000, 1100}}) {
      const Problem problem(transposed ? Kind::nt : Kind::nn, rows, cols, depth);
      Matrix whole = problem.c;
      multiply(problem.kind, depth, problem.a, problem.b, whole, {});
      for (const Kind kind :
           {transposed ? Kind::tile_nt : Kind::tile_nn, transposed ? Kind::packed_nt : Kind::packed_nn}) {
        Matrix tiles = problem.c;
        multiply(kind, depth, problem.a, problem.b, tiles, {});
        EXPECT_TRUE(tiles.same_bits(whole)) << describe(kind, rows, cols, depth);
      }
    }
  }
}

// Returns the products of one kernel set in all layouts, one after the other, in one vector.
std::vector<float> all_products(const GemmKernels& set, int64_t rows, int64_t cols, int64_t depth, double& worst) {
  std::vector<float> values;
  const GemmEpilogue e = {nullptr, Activation::none, 1};
  for (const Kind kind : {Kind::tile_nn, Kind::tile_nt, Kind::tile_tn, Kind::packed_nn, Kind::packed_nt}) {
    const Problem p(kind, rows, cols, depth);
    const GemmOperand a = {p.a.data(), p.a.ld};
    const GemmOperand b = {p.b.data(), p.b.ld};
    Matrix c = p.c;
    std::vector<float> packed(static_cast<size_t>(set.packed_size(cols, depth)));
    if (kind == Kind::tile_nn) set.rows_nn(rows, cols, depth, a, b, c.data(), c.ld, e);
    if (kind == Kind::tile_nt) set.rows_nt(rows, cols, depth, a, b, c.data(), c.ld, e);
    if (kind == Kind::tile_tn) set.rows_tn(depth, cols, rows, a, b, c.data(), c.ld, e.beta);
    if (kind == Kind::packed_nn) set.pack_nn(cols, depth, b, packed.data());
    if (kind == Kind::packed_nt) set.pack_nt(cols, depth, b, packed.data());
    if (!packed.empty() && (kind == Kind::packed_nn || kind == Kind::packed_nt)) {
      set.rows_packed(rows, cols, depth, a, packed.data(), c.data(), c.ld, e);
    }
    worst = std::max(worst, p.error_of(c, e));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t n = 0; n < cols; ++n) values.push_back(c.at(r, n));
    }
  }
  return values;
}

TEST(Gemm, EveryInstructionSetIsRightAndFusedOnesAgreeExactly) {
  for (const auto& [rows, cols, depth] :
       {std::array<int64_t, 3>{37, 40, 19}, {25, 47, 400}, {13, 1, 130}, {50, 70, 3}, {1, 100, 257}}) {
    std::vector<float> first;
    for (const GemmKernels* set : gemm_all_kernels()) {
      double worst = 0;
      const std::vector<float> values = all_products(*set, rows, cols, depth, worst);
      EXPECT_LE(worst, 1) << set->name << ", " << describe(Kind::nn, rows, cols, depth);
      if (first.empty()) first = values;
      const bool fused = std::string(set->name).rfind("AVX", 0) == 0;
      EXPECT_TRUE(!fused || values == first) << set->name << ", " << describe(Kind::nn, rows, cols, depth);
    }
  }
}

TEST(Gemm, CallsInsideParallelLoopsGiveTheSameBits) {
  const Problem problem(Kind::nn, 700, 40, 64);
  Matrix expected = problem.c;
  multiply(Kind::nn, 64, problem.a, problem.b, expected, {});
  std::vector<Matrix> results(8, problem.c);
  parallel_tasks(8,
                 [&](int64_t i) { multiply(Kind::nn, 64, problem.a, problem.b, results[static_cast<size_t>(i)], {}); });
  for (const Matrix& result : results) EXPECT_TRUE(result.same_bits(expected));
}

TEST(Gemm, WorkspaceIsBoundedAndSymmetric) {
  for (const int64_t rows : {0, 1, 1000, 169343, 100000000}) {
    for (const int64_t k : {0, 1, 40, 256, 1433, 10000}) {
      for (const int64_t n : {0, 1, 16, 256, 602, 20000}) {
        EXPECT_LE(gemm_tn_workspace(rows, k, n), 32 << 20);
        EXPECT_EQ(gemm_tn_workspace(rows, k, n), gemm_tn_workspace(rows, n, k));
      }
    }
  }
}

TEST(Gemm, NamesItsKernel) {
  gemm_warm_up();
  EXPECT_FALSE(gemm_library().empty());
}

}  // namespace
}  // namespace nacre::cpu
