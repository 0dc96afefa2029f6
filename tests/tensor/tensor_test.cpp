#include "nacre/tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "nacre/tensor/feature_types.h"

namespace nacre {
namespace {

TEST(DTypes, ReadBackByName) {
  for (const DType t : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::u8, DType::i32, DType::i64}) {
    EXPECT_EQ(parse_dtype(dtype_name(t)), t);
    EXPECT_GE(dtype_size(t), 1);
  }
  EXPECT_EQ(dtype_size(DType::bf16), 2);
  EXPECT_THROW(parse_dtype("float"), UserError);
  EXPECT_THROW(parse_dtype(""), UserError);
}

TEST(DTypes, ThoseOfFeaturesHaveSynonyms) {
  for (const std::string& name : feature_type_names()) EXPECT_EQ(dtype_name(parse_feature_type("--type", name)), name);
  EXPECT_THROW(parse_feature_type("--type", "f64"), UserError);
  for (const Synonym& s : float_synonyms()) {
    EXPECT_EQ(find_name(s.said, feature_type_names(), float_synonyms()), s.meant);
  }
}

TEST(Shapes, CountAndPrint) {
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(num_elements({3, 4}), 12);
  EXPECT_EQ(num_elements({3, 0, 4}), 0);
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text({3, 4}), "[3, 4]");
}

TEST(Tensor, KnowsItsRows) {
  const Tensor t = Tensor::zeros(DType::f32, {3, 2, 2});
  EXPECT_EQ(t.rows(), 3);
  EXPECT_EQ(t.row_size(), 4);
  EXPECT_EQ(t.bytes(), 48);
  EXPECT_TRUE(std::all_of(t.span<float>().begin(), t.span<float>().end(), [](float x) { return x == 0; }));
  EXPECT_EQ(Tensor(DType::i32, {}).rows(), 1);
  EXPECT_EQ(Tensor(DType::i32, {0, 5}).row_size(), 0);
  EXPECT_TRUE(Tensor(DType::i32, {0, 5}).defined());
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, CopiesShareMemory) {
  Tensor a = Tensor::zeros(DType::i32, {4});
  const Tensor b = a;
  a.data<int32_t>()[2] = 7;
  EXPECT_EQ(b.data<int32_t>()[2], 7);
}

TEST(Tensor, GuardsItsElementType) {
  Tensor a = Tensor::zeros(DType::i32, {4});
  EXPECT_THROW(a.data<float>(), InternalError);
  EXPECT_THROW(static_cast<const Tensor&>(a).data<uint8_t>(), InternalError);
}

TEST(Tensor, KeepsBorrowedMemoryAlive) {
  Tensor piece;
  {
    auto owner = std::make_shared<std::vector<float>>(10, 2.5F);
    float* third = owner->data() + 3;
    piece = Tensor(DType::f32, {2}, std::shared_ptr<void>(owner), third);
  }
  EXPECT_EQ(piece.data<float>()[1], 2.5F);
}

TEST(Buffer, IsAlignedAndFreezesWithoutACopy) {
  for (const int64_t n : {0, 1, 15, 1000, 3 << 20}) {
    Buffer<int32_t> buffer(n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0U);
    std::fill(buffer.begin(), buffer.end(), 5);
    const int32_t* at = buffer.data();
    const Array<int32_t> array = std::move(buffer).freeze();
    EXPECT_EQ(array.size(), n);
    EXPECT_EQ(array.data(), at);
    EXPECT_EQ(std::count(array.begin(), array.end(), 5), n);
    EXPECT_EQ(buffer.size(), 0);  // NOLINT(bugprone-use-after-move): freezing leaves an empty buffer
  }
}

TEST(Array, SharesAVector) {
  const Array<int> array = std::vector<int>{1, 2, 3};
  const Array<int> copy = array;
  EXPECT_EQ(copy.data(), array.data());
  EXPECT_EQ(copy[2], 3);
  EXPECT_EQ(copy.span().size(), 3U);
  EXPECT_TRUE(Array<int>().empty());
}

TEST(AllocateBytes, RefusesWhatCannotBe) {
  EXPECT_THROW(allocate_bytes(-1), InternalError);
#ifndef __SANITIZE_ADDRESS__  // whose allocator ends the program instead
  EXPECT_THROW(allocate_bytes(INT64_MAX / 2), RuntimeError);
#endif
  EXPECT_NE(allocate_bytes(0), nullptr);
}

}  // namespace
}  // namespace nacre
