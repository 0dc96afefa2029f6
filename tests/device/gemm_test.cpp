// Compares matrix products with loops in double precision: every type, transposition and epilogue,
// odd sizes, gaps between rows, operands at odd addresses, batches, empty sizes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "device/gpu.h"
#include "nacre/base/error.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// A matrix of values that the element type holds exactly, as it lies in memory, with `gap` elements
// before the first row.
struct Operand {
  std::vector<float> values;
  bool bf16;
  int64_t gap;

  Operand(Rng& rng, int64_t size, bool is_bf16, int64_t gap_before)
      : values(static_cast<size_t>(size + gap_before)), bf16(is_bf16), gap(gap_before) {
    for (float& v : values) {
      v = static_cast<float>(rng.uniform(-1, 1));
      if (bf16) v = from_bf16(to_bf16(v));
    }
  }
  float at(int64_t i) const { return values[static_cast<size_t>(i + gap)]; }
  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> out(values.size() * (bf16 ? 2 : 4));
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t half = to_bf16(values[i]);
      if (bf16) {
        std::memcpy(&out[2 * i], &half, 2);
      } else {
        std::memcpy(&out[4 * i], &values[i], 4);
      }
    }
    return out;
  }
};

class GemmTest : public GpuTest {
 protected:
  static int64_t size_of(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride) {
    return rows == 0 || columns == 0 || batch == 0 ? 1 : (batch - 1) * stride + (rows - 1) * ld + columns;
  }

  // Returns the relative error allowed for one product, in units of Σ|a||b| + |beta c| + |bias|.
  static double tolerance(const GemmShape& s) {
    // The result is rounded twice if the bias comes after.
    const double out = s.bf16_out ? 1.0 / 128 : 0;
    return out + (s.type == GemmType::tf32 ? 2e-3 : 5e-6);
  }

  // Runs the product with operands `gap` elements after an aligned address, and compares every
  // element and every byte between rows.
  void check(GemmShape s, int64_t gap = 0, bool tune = false) {
    const bool bf16 = s.type == GemmType::bf16;
    const int64_t a_rows = s.transpose_a ? s.k : s.m;
    const int64_t a_columns = s.transpose_a ? s.m : s.k;
    const int64_t b_rows = s.transpose_b ? s.n : s.k;
    const int64_t b_columns = s.transpose_b ? s.k : s.n;
    if (s.lda == 0) s.lda = a_columns;
    if (s.ldb == 0) s.ldb = b_columns;
    if (s.ldc == 0) s.ldc = s.n;
    Rng rng(static_cast<uint64_t>(s.m * 1000 + s.n * 100 + s.k + gap));
    const Operand a(rng, size_of(a_rows, a_columns, s.lda, s.batch, s.stride_a), bf16, gap);
    const Operand b(rng, size_of(b_rows, b_columns, s.ldb, s.batch, s.stride_b), bf16, gap);
    const Operand c(rng, size_of(s.m, s.n, s.ldc, s.batch, s.stride_c), s.bf16_out, gap);
    const Operand bias(rng, std::max<int64_t>(s.n, 1), false, 0);
    const DeviceArray<uint8_t> a_there(*device_, a.bytes());
    const DeviceArray<uint8_t> b_there(*device_, b.bytes());
    const DeviceArray<uint8_t> c_there(*device_, c.bytes());
    const DeviceArray<uint8_t> bias_there(*device_, bias.bytes());

    const int handle = device_->prepare_gemm(s, tune ? 8 : 1);
    const DeviceArray<char> workspace(*device_, device_->gemm_workspace(handle));
    const int64_t in_bytes = bf16 ? 2 : 4;
    const int64_t out_bytes = s.bf16_out ? 2 : 4;
    device_->run_gemm(handle,
                      {a_there.data() + gap * in_bytes, b_there.data() + gap * in_bytes,
                       c_there.data() + gap * out_bytes, bias_there.data()},
                      workspace.data());
    compare(s, a, b, c, bias, c_there.values());
  }

  static void compare(const GemmShape& s, const Operand& a, const Operand& b, const Operand& c, const Operand& bias,
                      const std::vector<uint8_t>& bytes) {
    const bool with_bias = s.epilogue == GemmEpilogue::bias || s.epilogue == GemmEpilogue::relu_bias;
    const bool with_relu = s.epilogue == GemmEpilogue::relu || s.epilogue == GemmEpilogue::relu_bias;
    const auto got = [&](int64_t i) {
      const auto at = static_cast<size_t>(i + c.gap);
      if (!s.bf16_out) {
        float value = 0;
        std::memcpy(&value, &bytes[4 * at], 4);
        return value;
      }
      uint16_t half = 0;
      std::memcpy(&half, &bytes[2 * at], 2);
      return from_bf16(half);
    };
    std::vector<bool> written(c.values.size(), false);
    for (int64_t l = 0; l < s.batch; ++l) {
      for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < s.n; ++j) {
          double sum = 0;
          double size = 0;
          for (int64_t p = 0; p < s.k; ++p) {
            const double x = a.at(l * s.stride_a + (s.transpose_a ? p * s.lda + i : i * s.lda + p));
            const double y = b.at(l * s.stride_b + (s.transpose_b ? j * s.ldb + p : p * s.ldb + j));
            sum += x * y;
            size += std::abs(x * y);
          }
          const int64_t at = l * s.stride_c + i * s.ldc + j;
          const double old = s.beta == 0 ? 0 : s.beta * static_cast<double>(c.at(at));
          const double shift = with_bias ? bias.at(j) : 0;
          double expected = s.alpha * sum + old + shift;
          if (with_relu) expected = std::max(expected, 0.0);
          const double scale = std::abs(s.alpha) * size + std::abs(old) + std::abs(shift) + 1e-6;
          ASSERT_NEAR(got(at), expected, tolerance(s) * scale)
              << "[" << l << ", " << i << ", " << j << "] of " << s.m << " x " << s.k << " x " << s.n << " type "
              << static_cast<int>(s.type) << " epilogue " << static_cast<int>(s.epilogue);
          written[static_cast<size_t>(at + c.gap)] = true;
        }
      }
    }
    for (size_t i = 0; i < written.size(); ++i) {
      if (!written[i]) {
        ASSERT_EQ(got(static_cast<int64_t>(i) - c.gap), c.values[i]) << "written between rows";
      }
    }
  }

  static GemmShape shape(int64_t m, int64_t n, int64_t k, GemmType type = GemmType::f32) {
    GemmShape s;
    s.m = m;
    s.n = n;
    s.k = k;
    s.type = type;
    return s;
  }
};

constexpr GemmType kTypes[] = {GemmType::f32, GemmType::tf32, GemmType::bf16};
constexpr GemmEpilogue kEpilogues[] = {GemmEpilogue::none, GemmEpilogue::bias, GemmEpilogue::relu,
                                       GemmEpilogue::relu_bias};

TEST_F(GemmTest, EveryTypeTranspositionAndEpilogue) {
  for (const GemmType type : kTypes) {
    for (const bool bf16_out : {false, true}) {
      if (bf16_out && type != GemmType::bf16) continue;
      for (const int transposed : {0, 1, 2, 3}) {
        for (const GemmEpilogue epilogue : kEpilogues) {
          GemmShape s = shape(48, 32, 64, type);
          s.transpose_a = (transposed & 1) != 0;
          s.transpose_b = (transposed & 2) != 0;
          s.epilogue = epilogue;
          s.bf16_out = bf16_out;
          check(s);
        }
      }
    }
  }
}

TEST_F(GemmTest, OddSizes) {
  const int64_t sizes[][3] = {{1, 1, 1}, {1, 7, 5}, {17, 1, 3}, {33, 7, 101}, {129, 41, 7}, {3, 255, 1}, {70, 47, 602}};
  for (const GemmType type : kTypes) {
    for (const auto& [m, n, k] : sizes) {
      for (const int transposed : {0, 1, 2, 3}) {
        GemmShape s = shape(m, n, k, type);
        s.transpose_a = (transposed & 1) != 0;
        s.transpose_b = (transposed & 2) != 0;
        s.epilogue = GemmEpilogue::relu_bias;
        s.alpha = 0.5F;
        s.beta = 2;
        check(s);
      }
    }
  }
}

TEST_F(GemmTest, GapsBetweenRows) {
  for (const GemmType type : kTypes) {
    for (const int64_t gap : {1, 3, 4, 16}) {
      GemmShape s = shape(30, 20, 40, type);
      s.lda = 40 + gap;
      s.ldb = 20 + gap;
      s.ldc = 20 + gap;
      s.beta = 1;
      check(s);
    }
  }
}

TEST_F(GemmTest, OperandsAtOddAddresses) {
  for (const GemmType type : kTypes) {
    for (const int64_t gap : {1, 2, 3, 5}) {
      for (const GemmEpilogue epilogue : kEpilogues) {
        GemmShape s = shape(64, 64, 64, type);
        s.epilogue = epilogue;
        check(s, gap);
        check(s, 0);  // the algorithm that was prepared still works
      }
    }
  }
}

TEST_F(GemmTest, Batches) {
  for (const GemmType type : kTypes) {
    for (const GemmEpilogue epilogue : kEpilogues) {
      GemmShape s = shape(20, 12, 9, type);
      s.batch = 5;
      s.stride_a = 20 * 9 + 3;
      s.stride_b = 9 * 12;
      s.stride_c = 20 * 12 + 1;
      s.epilogue = epilogue;
      check(s);
      s.stride_b = 0;  // all products use one matrix
      check(s);
    }
  }
}

TEST_F(GemmTest, EmptySizes) {
  for (const GemmType type : kTypes) {
    for (const float beta : {0.0F, 1.0F, -0.5F}) {
      for (const GemmEpilogue epilogue : kEpilogues) {
        for (const int64_t empty : {0, 1, 2, 3}) {
          GemmShape s = shape(empty == 0 ? 0 : 5, empty == 1 ? 0 : 7, empty == 2 ? 0 : 3, type);
          s.batch = empty == 3 ? 0 : 1;
          s.beta = beta;
          s.epilogue = epilogue;
          s.bf16_out = type == GemmType::bf16;
          check(s);
        }
      }
    }
  }
}

TEST_F(GemmTest, BetaZeroDoesNotReadTheResult) {
  for (const int64_t k : {0, 8}) {
    const GemmShape s = shape(4, 4, k);
    const DeviceArray<float> a(*device_, std::vector<float>(32, 1));
    const DeviceArray<float> c(*device_, std::vector<float>(16, NAN));
    const int handle = device_->prepare_gemm(s, 1);
    const DeviceArray<char> workspace(*device_, device_->gemm_workspace(handle));
    device_->run_gemm(handle, {a.data(), a.data(), c.data(), nullptr}, workspace.data());
    EXPECT_EQ(c.values(), std::vector<float>(16, static_cast<float>(k)));
  }
}

TEST_F(GemmTest, TunedProductsAreRightToo) {
  for (const GemmType type : kTypes) {
    for (const GemmEpilogue epilogue : kEpilogues) {
      GemmShape s = shape(300, 40, 128, type);
      s.epilogue = epilogue;
      s.transpose_b = true;
      check(s, 0, true);
    }
  }
}

TEST_F(GemmTest, EqualShapesShareAHandle) {
  const GemmShape s = shape(31, 32, 33);
  const int handle = device_->prepare_gemm(s, 1);
  const int64_t workspace = device_->gemm_workspace(handle);
  EXPECT_EQ(device_->prepare_gemm(s, 1), handle);
  EXPECT_EQ(device_->prepare_gemm(s, 8), handle);
  EXPECT_LE(device_->gemm_workspace(handle), workspace) << "tuning later asks for no more";
  GemmShape packed = s;
  packed.lda = 33;
  packed.ldb = 32;
  packed.ldc = 32;
  EXPECT_EQ(device_->prepare_gemm(packed, 1), handle) << "0 stands for rows without gaps";
  GemmShape other = s;
  other.beta = 1;
  EXPECT_NE(device_->prepare_gemm(other, 1), handle);
  EXPECT_LE(device_->gemm_workspace(handle), 64 << 20);
}

TEST_F(GemmTest, ImpossibleShapesAreRefused) {
  GemmShape s = shape(4, 4, 4);
  s.lda = 3;
  EXPECT_THROW(device_->prepare_gemm(s, 1), InternalError);
  s = shape(4, 4, 4);
  s.bf16_out = true;
  EXPECT_THROW(device_->prepare_gemm(s, 1), InternalError);
  s = shape(4, 4, 4);
  s.batch = 2;
  EXPECT_THROW(device_->prepare_gemm(s, 1), InternalError) << "results on top of each other";
  s = shape(-1, 4, 4);
  EXPECT_THROW(device_->prepare_gemm(s, 1), InternalError);
}

}  // namespace
}  // namespace nacre::test
