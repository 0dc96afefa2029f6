// Compares typed products on tensor cores with sums in double precision, and compiles their sources
// for every architecture.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/gpu.h"
#include "nacre/kernel/cuda/typed.h"
#include "nacre/kernel/cuda/typed_mma.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

constexpr int64_t kTypes = 3;
constexpr double kTolerance = 2e-3;  // tf32
constexpr int64_t kShared = 227 << 10;

std::vector<float> random_floats(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>(rng.below(2001) - 1000) * 1e-3F;
  return values;
}

// Returns matrices [types, n, k] whose rows are as long as the kernels read them, filled up with
// zeros.
std::vector<float> with_long_rows(const std::vector<float>& w, int64_t k) {
  const auto rows = static_cast<int64_t>(w.size()) / k, ld = cuda::matrix_ld(k);
  std::vector<float> result(static_cast<size_t>(rows * ld), 0.0F);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(w.begin() + r * k, k, result.begin() + r * ld);
  return result;
}

double relative_error(const std::vector<float>& got, const std::vector<double>& want) {
  double off = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    off += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(off / size);
}

// Returns Σ got · want / Σ want², which must be 1: rounding must not make results smaller or larger
// as a whole.
double relative_size(const std::vector<float>& got, const std::vector<double>& want) {
  double along = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    along += got[i] * want[i];
    size += want[i] * want[i];
  }
  return along / size;
}

void expect_agreement(const std::vector<float>& got, const std::vector<double>& want) {
  EXPECT_LT(relative_error(got, want), kTolerance);
  EXPECT_NEAR(relative_size(got, want), 1, 2e-4);
}

class TypedMmaTest : public GpuTest {
 protected:
  void run(const cuda::Source& source, int64_t blocks, cuda::LaunchParams params) {
    cuda::check_params(source, params);
    device_->launch(function(*device_, source.text, source.name), {blocks, source.threads, source.shared_bytes},
                    params.pointers());
  }

  // Checks rows that are read through a map, one type after another. If the matrix stays in shared
  // memory, each type has one run.
  void check_product(int64_t k, int64_t n, bool resident) {
    SCOPED_TRACE(testing::Message() << k << " to " << n << (resident ? ", resident" : ""));
    const int64_t vertices = 97, positions = 333;
    const cuda::TypedProduct what{k, n, 0, device_->info().shared_bytes, resident};
    ASSERT_TRUE(cuda::fits(what));
    const auto x = random_floats(vertices * k, 1), w = random_floats(kTypes * n * k, 2);
    Rng rng(3);
    std::vector<uint32_t> map(positions);
    for (uint32_t& row : map) row = static_cast<uint32_t>(rng.below(vertices));
    std::vector<cuda::MmaRun> runs;  // no position has type 1
    const auto tile = static_cast<uint32_t>(resident ? positions : cuda::tile_of(what).rows());
    for (uint32_t b = 0; b < 200; b += tile) runs.push_back({0, b, std::min(b + tile, 200U), 0});
    for (uint32_t b = 200; b < positions; b += tile) {
      runs.push_back({2, b, std::min(b + tile, static_cast<uint32_t>(positions)), 0});
    }
    std::vector<double> want(static_cast<size_t>(positions * n), 0);
    for (int64_t p = 0; p < positions; ++p) {
      for (int64_t c = 0; c < n; ++c) {
        for (int64_t i = 0; i < k; ++i) {
          want[static_cast<size_t>(p * n + c)] +=
              double{x[map[static_cast<size_t>(p)] * static_cast<size_t>(k) + static_cast<size_t>(i)]} *
              w[static_cast<size_t>(((p < 200 ? 0 : 2) * n + c) * k + i)];
        }
      }
    }
    const cuda::Source source = cuda::typed_product(what);
    const DeviceArray<float> dx(*device_, x), dw(*device_, with_long_rows(w, k)), out(*device_, positions * n);
    const DeviceArray<uint32_t> dmap(*device_, map);
    const DeviceArray<cuda::MmaRun> druns(*device_, runs);
    device_->fill(out.data(), 0xff, positions * n * 4);
    run(source, static_cast<int64_t>(runs.size()) * cuda::column_blocks(what),
        cuda::TypedProductParams{.x = dx.data(),
                                 .map_in = dmap.data(),
                                 .w = dw.data(),
                                 .out = out.data(),
                                 .map_out = nullptr,
                                 .runs = druns.data()});
    expect_agreement(out.values(), want);
  }

  // Checks rows of cells, some of which are empty (in the second run all), summed over the types.
  void check_cells(int64_t k, int64_t n) {
    SCOPED_TRACE(testing::Message() << k << " to " << n);
    const cuda::TypedProduct what{k, n, kTypes, device_->info().shared_bytes};
    const int64_t tile = cuda::tile_of(what).rows(), vertices = 2 * tile + 70;
    Rng rng(5);
    std::vector<uint32_t> cells(static_cast<size_t>(vertices * kTypes), cuda::kNoRow);
    uint32_t pairs = 0;
    for (int64_t s = 0; s < vertices * kTypes; ++s) {
      if (s / kTypes / tile != 1 && rng.below(2) == 0) cells[static_cast<size_t>(s)] = pairs++;
    }
    std::vector<cuda::MmaRun> runs;
    for (int64_t b = 0; b < vertices; b += tile) {
      cuda::MmaRun run{0, static_cast<uint32_t>(b), static_cast<uint32_t>(std::min(b + tile, vertices)), 0};
      for (size_t s = run.begin * kTypes; s < run.end * kTypes; ++s) {
        if (cells[s] != cuda::kNoRow) run.types |= 1U << s % kTypes;
      }
      runs.push_back(run);
    }
    const auto x = random_floats(pairs * k, 1), w = random_floats(kTypes * n * k, 2);
    std::vector<double> want(static_cast<size_t>(vertices * n), 0);
    for (int64_t s = 0; s < vertices * kTypes; ++s) {
      const uint32_t row = cells[static_cast<size_t>(s)];
      if (row == cuda::kNoRow) continue;
      for (int64_t c = 0; c < n; ++c) {
        for (int64_t i = 0; i < k; ++i) {
          want[static_cast<size_t>(s / kTypes * n + c)] +=
              double{x[static_cast<size_t>(row * k + i)]} * w[static_cast<size_t>((s % kTypes * n + c) * k + i)];
        }
      }
    }
    const cuda::Source source = cuda::typed_product(what);
    const DeviceArray<float> dx(*device_, x), dw(*device_, with_long_rows(w, k)), out(*device_, vertices * n);
    const DeviceArray<uint32_t> dcells(*device_, cells);
    const DeviceArray<cuda::MmaRun> druns(*device_, runs);
    device_->fill(out.data(), 0xff, vertices * n * 4);
    run(source, static_cast<int64_t>(runs.size()) * cuda::column_blocks(what),
        cuda::TypedProductParams{.x = dx.data(),
                                 .map_in = dcells.data(),
                                 .w = dw.data(),
                                 .out = out.data(),
                                 .map_out = nullptr,
                                 .runs = druns.data()});
    expect_agreement(out.values(), want);
  }

  void check_grad(int64_t k, int64_t n) {
    SCOPED_TRACE(testing::Message() << k << " and " << n);
    const int64_t vertices = 70, positions = 401;
    const cuda::TypedGrad what{k, n, device_->info().shared_bytes};
    ASSERT_TRUE(cuda::fits(what));
    const auto x = random_floats(vertices * k, 1), g = random_floats(positions * n, 2);
    Rng rng(3);
    std::vector<uint32_t> map(positions);
    for (uint32_t& row : map) row = static_cast<uint32_t>(rng.below(vertices));
    // Type 0 has two runs, type 1 has none, and type 2 has one position less than a slice.
    const std::vector<cuda::MmaRun> runs = {{0, 0, 130, 0}, {0, 130, 370, 0}, {2, 370, 401, 0}};
    const std::vector<int32_t> first = {0, 2, 2, 3};
    std::vector<double> want(static_cast<size_t>(kTypes * k * n), 0);
    for (int64_t p = 0; p < positions; ++p) {
      const int64_t row = map[static_cast<size_t>(p)];
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t c = 0; c < n; ++c) {
          want[static_cast<size_t>(((p < 370 ? 0 : 2) * k + i) * n + c)] +=
              double{x[static_cast<size_t>(row * k + i)]} * g[static_cast<size_t>(p * n + c)];
        }
      }
    }
    const DeviceArray<float> dx(*device_, x), dg(*device_, g), partials(*device_, 3 * k * n),
        dw(*device_, kTypes * k * n);
    const DeviceArray<uint32_t> dmap(*device_, map);
    const DeviceArray<cuda::MmaRun> druns(*device_, runs);
    const DeviceArray<int32_t> dfirst(*device_, first);
    device_->fill(dw.data(), 0xff, kTypes * k * n * 4);
    const cuda::Source source = cuda::typed_grad(what), total = cuda::typed_grad_total(what, kTypes);
    run(source, 3 * cuda::blocks_of_run(what),
        cuda::TypedGradParams{.x = dx.data(),
                              .map_x = dmap.data(),
                              .g = dg.data(),
                              .map_g = nullptr,
                              .runs = druns.data(),
                              .partials = partials.data()});
    run(total, (kTypes * k * n + total.threads - 1) / total.threads,
        cuda::TypedGradTotalParams{.partials = partials.data(), .first = dfirst.data(), .dw = dw.data()});
    expect_agreement(dw.values(), want);
  }
};

TEST_F(TypedMmaTest, ProductsAgree) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{64, 256}, {32, 40}, {33, 130}, {7, 5}, {50, 300}}) {
    for (const bool resident : {false, true}) check_product(k, n, resident);
  }
}

TEST_F(TypedMmaTest, ProductsOfCellsAgree) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{64, 256}, {40, 48}, {13, 130}}) check_cells(k, n);
}

TEST_F(TypedMmaTest, GradientsAgree) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{128, 256}, {200, 40}, {33, 130}, {7, 5}, {130, 260}})
    check_grad(k, n);
}

TEST(TypedMma, SmallMemoryIsNotEnough) {
  EXPECT_FALSE(cuda::fits(cuda::TypedProduct{256, 256, 7, 32 << 10}));
  EXPECT_FALSE(cuda::fits(cuda::TypedGrad{256, 256, 64 << 10}));
  for (const int64_t shared : {int64_t{100} << 10, int64_t{164} << 10, kShared}) {
    EXPECT_LE(cuda::tile_of(cuda::TypedProduct{256, 256, 7, shared}).shared_bytes, shared);
    EXPECT_LE(cuda::tile_of(cuda::TypedGrad{256, 256, shared}).shared_bytes, shared);
  }
}

class TypedMmaSources : public PluginTest {};

TEST_F(TypedMmaSources, Compile) {
  if (plugin_ == nullptr) return;
  for (const cuda::Source& source :
       {cuda::typed_product({100, 256, 7, kShared}), cuda::typed_product({256, 47, 0, kShared}),
        cuda::typed_grad({128, 256, kShared}), cuda::typed_grad({256, 47, kShared}),
        cuda::typed_grad_total({256, 47, kShared}, 7)}) {
    for (const int arch : {80, 90}) EXPECT_FALSE(plugin_->compile(source.text, source.name, arch).empty());
  }
}

}  // namespace
}  // namespace nacre::test
