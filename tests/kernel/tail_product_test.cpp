// Tests which products a tail hands over to the product that it follows.
#include "nacre/kernel/tail_product.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/tail.h"

namespace nacre::test {
namespace {

constexpr NodeRef kX = 3, kW = 4, kBias = 5, kResult = 6, kMask = 7;

constexpr int64_t kWidth = 8;

int count(const RowProgram& program, MicroOp op) {
  return static_cast<int>(
      std::count_if(program.code.begin(), program.code.end(), [&](const Micro& m) { return m.op == op; }));
}

TEST(TailProduct, IsTakenFromASumWithTheRoot) {
  Tail t(kWidth);
  const int biased = t.apply(MicroOp::add, t.root(), t.parameter(kBias));
  const int sum = t.apply(MicroOp::add, t.product(MicroOp::gemm_t, kX, kW), biased);
  t.store(t.apply(MicroOp::relu, sum), kResult);
  RowProgram program = t.program();
  const auto factor = take_product(program);
  ASSERT_TRUE(factor.has_value());
  EXPECT_EQ(factor->x, kX);
  EXPECT_EQ(factor->w, kW);
  EXPECT_TRUE(factor->transpose);
  EXPECT_FALSE(has_products(program));
  EXPECT_EQ(count(program, MicroOp::load), 0) << "its rows are read by the product alone";
  EXPECT_EQ(count(program, MicroOp::add), 1);
  const auto relu =
      std::find_if(program.code.begin(), program.code.end(), [](const Micro& m) { return m.op == MicroOp::relu; });
  ASSERT_NE(relu, program.code.end());
  EXPECT_EQ(relu->a, biased) << "what the sum was without the product";
  EXPECT_FALSE(take_product(program).has_value());
}

TEST(TailProduct, IsTakenFromASumThatIsAddedToTheRoot) {
  Tail t(kWidth);
  const int root = t.root();
  const int bias = t.parameter(kBias);
  const int biased = t.apply(MicroOp::add, t.product(MicroOp::gemm, kX, kW), bias);
  t.store(t.apply(MicroOp::add, root, biased), kResult);
  RowProgram program = t.program();
  const auto factor = take_product(program);
  ASSERT_TRUE(factor.has_value());
  EXPECT_EQ(factor->x, kX);
  EXPECT_FALSE(has_products(program));
  ASSERT_EQ(count(program, MicroOp::add), 1);
  const auto sum =
      std::find_if(program.code.begin(), program.code.end(), [](const Micro& m) { return m.op == MicroOp::add; });
  EXPECT_EQ(sum->a, root);
  EXPECT_EQ(sum->b, bias);

  Tail twice(kWidth);
  const int read_twice = twice.apply(MicroOp::add, twice.product(MicroOp::gemm, kX, kW), twice.parameter(kBias));
  twice.store(twice.apply(MicroOp::add, twice.root(), read_twice), kResult);
  twice.store(read_twice, kMask);
  RowProgram stays = twice.program();
  EXPECT_FALSE(take_product(stays).has_value());
}

void expect_stays(const Tail& tail) {
  RowProgram program = tail.program();
  EXPECT_FALSE(take_product(program).has_value());
  EXPECT_EQ(program_text(program), program_text(tail.program()));
}

TEST(TailProduct, StaysWhereTheRootIsUsedOtherwise) {
  Tail read_twice(kWidth);
  const int root = read_twice.root();
  read_twice.store(read_twice.apply(MicroOp::add, root, read_twice.product(MicroOp::gemm, kX, kW)), kResult);
  read_twice.store(root, kMask);
  expect_stays(read_twice);

  Tail multiplied(kWidth);
  const int factor = multiplied.apply(MicroOp::mul, multiplied.root(), multiplied.load(kMask));
  multiplied.store(multiplied.apply(MicroOp::add, factor, multiplied.product(MicroOp::gemm, kX, kW)), kResult);
  expect_stays(multiplied);
}

TEST(TailProduct, StaysWhereItIsNotAdded) {
  Tail masked(kWidth);
  const int root = masked.root();
  masked.store(masked.apply(MicroOp::mul, root, masked.product(MicroOp::gemm, kX, kW)), kResult);
  expect_stays(masked);

  Tail stored(kWidth);
  const int product = stored.product(MicroOp::gemm, kX, kW);
  stored.store(stored.apply(MicroOp::add, stored.root(), product), kResult);
  stored.store(product, kMask);
  expect_stays(stored);
}

}  // namespace
}  // namespace nacre::test
