// Which products a tail gives away to the product it follows.
#include "nacre/kernel/tail_product.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nacre::test {
namespace {

constexpr NodeRef kX = 3, kW = 4, kBias = 5, kResult = 6, kMask = 7;

struct Tail {
  RowProgram program;
  int add(MicroOp op, int a, int b = -1, NodeRef from = -1, int64_t width = 8) {
    Micro m;
    m.op = op;
    m.a = a;
    m.b = b;
    m.out = static_cast<int>(program.widths.size());
    if (from >= 0) m.operand = operand(from);
    program.widths.push_back(width);
    program.code.push_back(m);
    return m.out;
  }
  void store(int value, NodeRef to) {
    Micro m;
    m.op = MicroOp::store;
    m.a = value;
    m.operand = operand(to);
    program.code.push_back(m);
  }
  int root() { return add(MicroOp::root, -1); }
  int product(MicroOp op = MicroOp::gemm) { return add(op, add(MicroOp::load, -1, -1, kX, 5), -1, kW); }

 private:
  int operand(NodeRef node) {
    program.operands.push_back(node);
    return static_cast<int>(program.operands.size()) - 1;
  }
};

int count(const RowProgram& program, MicroOp op) {
  return static_cast<int>(
      std::count_if(program.code.begin(), program.code.end(), [&](const Micro& m) { return m.op == op; }));
}

TEST(TailProduct, IsTakenFromASumWithTheRoot) {
  Tail t;
  const int biased = t.add(MicroOp::add, t.root(), t.add(MicroOp::load_row0, -1, -1, kBias));
  const int sum = t.add(MicroOp::add, t.product(MicroOp::gemm_t), biased);
  t.store(t.add(MicroOp::relu, sum), kResult);
  const auto factor = take_product(t.program);
  ASSERT_TRUE(factor.has_value());
  EXPECT_EQ(factor->x, kX);
  EXPECT_EQ(factor->w, kW);
  EXPECT_TRUE(factor->transpose);
  EXPECT_FALSE(has_products(t.program));
  EXPECT_EQ(count(t.program, MicroOp::load), 0) << "its rows are read by the product alone";
  EXPECT_EQ(count(t.program, MicroOp::add), 1);
  const auto relu =
      std::find_if(t.program.code.begin(), t.program.code.end(), [](const Micro& m) { return m.op == MicroOp::relu; });
  EXPECT_EQ(relu->a, biased) << "what the sum was without the product";
  EXPECT_FALSE(take_product(t.program).has_value());
}

TEST(TailProduct, StaysWhereTheRootIsUsedOtherwise) {
  Tail read_twice;
  const int root = read_twice.root();
  read_twice.store(read_twice.add(MicroOp::add, root, read_twice.product()), kResult);
  read_twice.store(root, kMask);
  const size_t before = read_twice.program.code.size();
  EXPECT_FALSE(take_product(read_twice.program).has_value());
  EXPECT_EQ(read_twice.program.code.size(), before);

  Tail multiplied;
  const int factor = multiplied.add(MicroOp::mul, multiplied.root(), multiplied.add(MicroOp::load, -1, -1, kMask));
  multiplied.store(multiplied.add(MicroOp::add, factor, multiplied.product()), kResult);
  EXPECT_FALSE(take_product(multiplied.program).has_value());
}

TEST(TailProduct, StaysWhereItIsNotAdded) {
  Tail masked;
  const int root = masked.root();
  masked.store(masked.add(MicroOp::mul, root, masked.product()), kResult);
  EXPECT_FALSE(take_product(masked.program).has_value());

  Tail stored;
  const int product = stored.product();
  stored.store(stored.add(MicroOp::add, stored.root(), product), kResult);
  stored.store(product, kMask);
  EXPECT_FALSE(take_product(stored.program).has_value());
}

}  // namespace
}  // namespace nacre::test
