// One list of parameters gives the host's struct and the text of the kernel, and launches with
// other ones are refused.
#include "nacre/kernel/cuda/params.h"

#include <gtest/gtest.h>

#include "nacre/base/error.h"

namespace nacre::cuda {
namespace {

NACRE_PARAMS(ScaleParams, (const float* __restrict__, x), (Out*, out), (i64, count), (float, factor));
NACRE_PARAMS(ShiftParams, (const float* __restrict__, x), (Out*, out), (i64, count), (float, offset));

Source scale_source(int operands) {
  Entry entry("scale", "256, 2");
  entry.takes<ScaleParams>();
  for (int i = 0; i < operands; ++i) entry.operand("float*", "p" + std::to_string(i));
  return entry.source("// Before.\n${ENTRY} {\n  // Within.\n}\n", 256, 1024);
}

std::string fault_of(const Source& source, const LaunchParams& params) {
  try {
    check_params(source, params);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(CudaParams, AreDeclaredAsSeparateParameters) {
  const Source source = scale_source(2);
  EXPECT_EQ(source.text, R"(// Before.
static_assert(sizeof(i64) == 8, "ScaleParams passes 8 bytes");
static_assert(sizeof(float) == 4, "ScaleParams passes 4 bytes");
extern "C" __global__ void __launch_bounds__(256, 2) scale(
    const float* __restrict__ x, Out* out, i64 count, float factor, float* p0, float* p1) {
  // Within.
}
)");
  EXPECT_EQ(source.name, "scale");
  EXPECT_EQ(source.threads, 256);
  EXPECT_EQ(source.shared_bytes, 1024);
  EXPECT_THROW(Entry("scale").takes<ScaleParams>().source("no place for the head", 32), InternalError);
}

TEST(CudaParams, ArePassedInTheOrderOfTheList) {
  float x = 0, out = 0, a = 0, b = 0;
  LaunchParams params(ScaleParams{.x = &x, .out = &out, .count = int64_t{1} << 40, .factor = 2.5F});
  void* const operands[] = {&a, &b};
  params.operands(operands);
  const std::vector<void*> values = params.pointers();
  ASSERT_EQ(values.size(), 6U);
  EXPECT_EQ(*static_cast<float**>(values[0]), &x);
  EXPECT_EQ(*static_cast<float**>(values[1]), &out);
  EXPECT_EQ(*static_cast<int64_t*>(values[2]), int64_t{1} << 40);
  EXPECT_EQ(*static_cast<float*>(values[3]), 2.5F);
  EXPECT_EQ(*static_cast<float**>(values[5]), &b);
}

TEST(CudaParams, OfAnotherKernelAreRefused) {
  const ScaleParams scale = {.x = nullptr, .out = nullptr, .count = 1, .factor = 1};
  const ShiftParams shift = {.x = nullptr, .out = nullptr, .count = 1, .offset = 1};
  float p = 0;
  void* const one[] = {&p};
  EXPECT_EQ(fault_of(scale_source(0), scale), "");
  EXPECT_EQ(fault_of(scale_source(2), LaunchParams(scale).operands(one).operands(one)), "");
  EXPECT_NE(fault_of(scale_source(0), shift).find("scale takes ScaleParams and was given ShiftParams"),
            std::string::npos);
  EXPECT_NE(fault_of(scale_source(2), LaunchParams(scale).operands(one))
                .find("scale takes ScaleParams, 2 operands and was given ScaleParams, 1 operands"),
            std::string::npos);
  EXPECT_NE(fault_of(scale_source(0), LaunchParams(scale).then(shift)).find("given ScaleParams, ShiftParams"),
            std::string::npos);
}

namespace outer {
NACRE_STRUCT(Piece, (const float*, x), (u32, row), (int, count), (i64, begin, end));
NACRE_STRUCT(Numbers, (float, first_of_many_numbers, second_of_many_numbers, third_of_many_numbers),
             (int, fourth_of_many_numbers), (float, fifth_of_many_numbers));
}  // namespace outer

TEST(CudaStructs, AreDeclaredWithTheMembersOfTheHost) {
  EXPECT_EQ(struct_text<outer::Piece>(), "struct Piece { const float* x; u32 row; int count; i64 begin, end; };\n");
  EXPECT_EQ(struct_text<outer::Numbers>(), R"(struct Numbers {
  float first_of_many_numbers, second_of_many_numbers, third_of_many_numbers;
  int fourth_of_many_numbers;
  float fifth_of_many_numbers;
};
)");
  const outer::Piece piece = {.x = nullptr, .row = 1, .count = 2, .begin = 3, .end = 4};
  EXPECT_EQ(piece.end - piece.begin, 1);
  EXPECT_EQ(packed_bytes(outer::Piece::kMembers), 32U);
}

// The compiler refuses addresses of other types; untyped addresses are taken.
static_assert(std::is_convertible_v<float*, Address<const float>>);
static_assert(std::is_convertible_v<void*, Address<float>>);
static_assert(std::is_convertible_v<double*, Address<Out>>);
static_assert(!std::is_convertible_v<double*, Address<float>>);
static_assert(!std::is_convertible_v<const void*, Address<float>>);
static_assert(!std::is_convertible_v<const float*, Address<float>>);
static_assert(!std::is_default_constructible_v<Address<float>>);

}  // namespace
}  // namespace nacre::cuda
