#include "nacre/data/npy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/fixtures.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

NpyReader reader(const std::string& bytes) { return NpyReader(in_memory(bytes, "a.npy")); }

std::vector<float> floats(const std::string& bytes) {
  const Tensor t = reader(bytes).to_f32();
  return {t.data<float>(), t.data<float>() + t.size()};
}

std::vector<int64_t> integers(const std::string& bytes, NanAs nan = NanAs::error) {
  Buffer<int64_t> b = reader(bytes).to_i64(nan);
  return {b.begin(), b.end()};
}

template <class T>
void check_type(const std::string& descr, const std::vector<T>& values) {
  const std::string shape = line_shape(values.size());
  std::vector<float> expected_floats;
  std::vector<int64_t> expected_integers;
  for (const T v : values) {
    expected_floats.push_back(static_cast<float>(v));
    expected_integers.push_back(static_cast<int64_t>(v));
  }
  for (const int version : {1, 2, 3}) {
    const std::string bytes = npy({descr, shape, false, version}, raw(values));
    EXPECT_EQ(floats(bytes), expected_floats) << descr;
    EXPECT_EQ(integers(bytes), expected_integers) << descr;
  }
  // The same values, stored big-endian.
  std::string swapped = raw(values);
  for (size_t i = 0; i < swapped.size(); i += sizeof(T))
    std::reverse(swapped.begin() + i, swapped.begin() + i + sizeof(T));
  const std::string bytes = npy({">" + descr.substr(1), shape}, swapped);
  EXPECT_EQ(floats(bytes), expected_floats) << descr;
  EXPECT_EQ(integers(bytes), expected_integers) << descr;
}

TEST(Npy, EveryElementType) {
  check_type<float>("<f4", {0, -1, 3, 16777216});
  check_type<double>("<f8", {0, -1, 3, 1e15});
  check_type<int8_t>("<i1", {0, -128, 127});
  check_type<int8_t>("|i1", {0, -128, 127});
  check_type<int16_t>("<i2", {0, -32768, 32767});
  check_type<int32_t>("<i4", {0, std::numeric_limits<int32_t>::min(), 7});
  check_type<int64_t>("<i8", {0, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()});
  check_type<uint8_t>("|u1", {0, 255});
  check_type<uint16_t>("<u2", {0, 65535});
  check_type<uint32_t>("<u4", {0, 0xFFFFFFFF});
  check_type<uint64_t>("<u8", {0, uint64_t{1} << 62});
  check_type<uint8_t>("|b1", {0, 1, 1});
  check_type<int32_t>("=i4", {5});
}

TEST(Npy, EveryHalf) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  const std::vector<float> values = floats(npy({"<f2", "(65536,)"}, raw(bits)));
  for (size_t i = 0; i < bits.size(); ++i) {
    const int exponent = static_cast<int>((i >> 10) & 31);
    const double fraction = static_cast<double>(i & 1023) / 1024;
    const double sign = (i & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(values[i]), fraction != 0) << i;
      ASSERT_FALSE(std::isfinite(values[i]));
    } else {
      const double magnitude = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
      ASSERT_EQ(values[i], static_cast<float>(sign * magnitude)) << i;
    }
  }
  EXPECT_EQ(integers(npy({"<f2", "(2,)"}, raw<uint16_t>({0x3C00, 0x4200}))), (std::vector<int64_t>{1, 3}));
}

TEST(Npy, ShapesAndOrders) {
  EXPECT_EQ(reader(npy_f32({5}, "()")).scalar_i64(), 5);
  EXPECT_EQ(reader(npy_i64({}, "(0,)")).to_f32().size(), 0);
  EXPECT_EQ(reader(npy_f32({1, 2, 3, 4, 5, 6}, "(2, 3)")).to_f32().shape(), (Shape{2, 3}));
  EXPECT_EQ(reader(npy_f32({1, 2, 3, 4, 5, 6}, "(2L, 3L)")).shape(), (Shape{2, 3}));
  // A 2 x 3 matrix, stored by columns.
  const NpyText fortran{"<f4", "(2, 3)", true};
  EXPECT_EQ(floats(npy(fortran, raw<float>({1, 4, 2, 5, 3, 6}))), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(integers(npy({"<i8", "(2, 3)", true}, raw<int64_t>({1, 4, 2, 5, 3, 6}))),
            (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(floats(npy({"<f4", "(3,)", true}, raw<float>({1, 2, 3}))), (std::vector<float>{1, 2, 3}));
}

TEST(Npy, LargeFortranMatrixCrossesPieces) {
  const int64_t rows = 333;
  const int64_t columns = 257;
  std::vector<float> stored(static_cast<size_t>(rows * columns));
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) stored[c * rows + r] = static_cast<float>(r * columns + c);
  }
  const std::vector<float> values = floats(npy({"<f4", "(333, 257)", true}, raw(stored)));
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(i));
}

TEST(Npy, MatchingArraysAreNotCopied) {
  const auto file = in_memory(npy_f32({1, 2, 3, 4}, "(2, 2)"));
  const Tensor t = NpyReader(file).to_f32();
  EXPECT_GE(static_cast<const void*>(t.raw()), static_cast<const void*>(file->bytes().data()));
  EXPECT_LT(static_cast<const void*>(t.raw()), static_cast<const void*>(file->bytes().data() + file->size()));
}

TEST(Npy, WholeNumbersOnly) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_USER_ERROR(integers(npy_f32({1, 2.5F})), "position 1");
  EXPECT_USER_ERROR(integers(npy_f32({nan})), "not a usable whole number");
  EXPECT_EQ(integers(npy_f32({nan, 2}), NanAs::minus_one), (std::vector<int64_t>{-1, 2}));
  EXPECT_USER_ERROR(integers(npy_f32({std::numeric_limits<float>::infinity()}), NanAs::minus_one), "whole number");
  EXPECT_USER_ERROR(integers(npy_f32({0x1.0p63F})), "whole number");
  EXPECT_EQ(integers(npy_f32({-0x1.0p62F})), (std::vector<int64_t>{-(INT64_C(1) << 62)}));
  EXPECT_USER_ERROR(integers(npy({"<u8", "(1,)"}, raw<uint64_t>({~uint64_t{0}}))), "whole number");
  EXPECT_USER_ERROR(reader(npy_i64({1, 2})).scalar_i64(), "single number");
  EXPECT_TRUE(std::isinf(floats(npy({"<f8", "(1,)"}, raw<double>({1e300})))[0]));
}

TEST(Npy, RefusedTypesNameARemedy) {
  for (const char* descr : {"|O", "O", "|O8"}) {
    EXPECT_USER_ERROR(reader(npy({descr, "(1,)"}, std::string(8, '\0'))), "Python objects");
  }
  EXPECT_USER_ERROR(reader(npy({"<U5", "(1,)"}, std::string(20, '\0'))), "text");
  EXPECT_USER_ERROR(reader(npy({"|S5", "(1,)"}, std::string(5, '\0'))), "text");
  for (const char* descr : {"<c8", "<f1", "<f3", "<f16", "<i3", "<M8", "|V2", "<b2", "", "<", "f", "<f44", "<i-4"}) {
    EXPECT_USER_ERROR(reader(npy({descr, "(1,)"}, std::string(16, '\0'))), "astype");
  }
  const std::string records = "{'descr': [('a', '<f4'), ('b', '<i8')], 'fortran_order': False, 'shape': (1,), }\n";
  EXPECT_USER_ERROR(reader(npy_with_header(records, std::string(12, '\0'))), "structured");
  EXPECT_USER_ERROR(reader(npy_f32({1, 2, 3, 4, 5, 6, 7, 8}, "(2, 2, 2)")).to_f32(), "two dimensions");
}

TEST(Npy, MalformedHeaders) {
  const std::string data = raw<float>({1});
  for (const char* header : {
           "",
           "{",
           "}",
           "{}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} extra",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}",
           "{descr: '<f4', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
       }) {
    EXPECT_FALSE(user_error([&] { reader(npy_with_header(header, data)); }).empty()) << header;
  }
  EXPECT_USER_ERROR(reader(npy_with_header(std::string(100, '('), data)), "header");
  std::string wrong_version = npy_f32({1});
  wrong_version[6] = 4;
  EXPECT_USER_ERROR(reader(wrong_version), "version 4.0");
  EXPECT_USER_ERROR(reader(""), "too short");
  EXPECT_USER_ERROR(reader("not an array at all"), "is not an .npy");
}

TEST(Npy, EnormousClaimsAreComparedWithTheFileFirst) {
  const MemoryLimit limit;
  for (const char* shape :
       {"(4611686018427387904,)", "(1099511627776, 1099511627776)", "(268435456, 1024)",
        "(9223372036854775807, 9223372036854775807)", "(4294967296, 4294967296, 0)", "(1000000000,)"}) {
    EXPECT_FALSE(user_error([&] { reader(npy_f32({1}, shape)); }).empty()) << shape;
  }
  // A rank that is larger than any useful one.
  std::string many = "(";
  for (int i = 0; i < 1000; ++i) many += "1,";
  EXPECT_USER_ERROR(reader(npy_f32({1}, many + ")")), "dimensions");
  // One header claims 4 GiB in a file of 20 bytes; another is really there, but absurdly long.
  std::string huge = "\x93NUMPY";
  huge += std::string("\x02\0\xFF\xFF\xFF\xFF", 6) + "{'descr'";
  EXPECT_USER_ERROR(reader(huge), "claims to be 4.00 GiB");
  EXPECT_USER_ERROR(reader(npy_with_header(std::string(100'000, ' '), "", 2)), "claims");
}

TEST(Npy, TruncatedAnywhere) {
  for (const int version : {1, 2}) {
    const std::string bytes = npy({"<i4", "(3, 2)", false, version}, raw<int32_t>({1, 2, 3, 4, 5, 6}));
    for_each_truncation(bytes, [](const std::string& cut, size_t n) {
      EXPECT_FALSE(survives([&] { integers(cut); }, "cut at " + std::to_string(n))) << n;
    });
  }
  EXPECT_USER_ERROR(reader(npy_f32({1, 2}, "(1,)")), "does not fit");
}

TEST(Npy, DamagedAnywhere) {
  const std::string bytes = npy({"<f8", "(3, 2)"}, raw<double>({1, 2, 3, 4, 5, 6}));
  for_each_flip(bytes, [](const std::string& damaged, size_t at) {
    survives([&] { floats(damaged); }, "byte " + std::to_string(at));
    survives([&] { integers(damaged, NanAs::minus_one); }, "byte " + std::to_string(at));
  });
}

}  // namespace
}  // namespace nacre
