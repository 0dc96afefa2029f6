// Tests which part of a tail a product takes over, and where its result may lie meanwhile.
#include "nacre/plan/epilogue.h"

#include <gtest/gtest.h>

#include "support/tail.h"

namespace nacre::test {
namespace {

constexpr NodeRef kOther = 7, kBias = 8, kResult = 9, kMask = 10;

constexpr int64_t kWidth = 4;

TEST(GpuEpilogue, TakesBiasAndReluWhole) {
  Tail t(kWidth);
  const int sum = t.apply(MicroOp::add, t.root(), t.parameter(kBias));
  t.store(t.apply(MicroOp::relu, sum), kResult);
  const Epilogue e = absorb_tail(t.program(), false);
  EXPECT_EQ(e.bias, kBias);
  EXPECT_EQ(e.add, -1);
  EXPECT_TRUE(e.relu);
  EXPECT_TRUE(e.rest.empty());
  EXPECT_EQ(e.result, kResult);
}

TEST(GpuEpilogue, TakesAnotherValueAndLeavesTheRest) {
  Tail t(kWidth);
  const int sum = t.apply(MicroOp::add, t.load(kOther), t.root());
  const int biased = t.apply(MicroOp::add, sum, t.parameter(kBias));
  t.store(t.apply(MicroOp::log_softmax, biased), kResult);
  const Epilogue e = absorb_tail(t.program(), false);
  EXPECT_EQ(e.add, kOther);
  EXPECT_EQ(e.bias, kBias);
  EXPECT_FALSE(e.relu);
  EXPECT_EQ(e.result, -1);
  ASSERT_EQ(e.rest.code.size(), 3U);
  EXPECT_EQ(e.rest.code[0].op, MicroOp::root);
  EXPECT_EQ(e.rest.code[0].out, biased);
  EXPECT_EQ(e.rest.code[1].op, MicroOp::log_softmax);
  EXPECT_EQ(e.rest.code[2].op, MicroOp::store);
  // Nothing that the rest reads can lie where its result goes.
  EXPECT_EQ(e.landing, kResult);
}

TEST(GpuEpilogue, LeavesAValueThatIsUsedTwice) {
  Tail t(kWidth);
  const int root = t.root();
  t.store(t.apply(MicroOp::relu, root), kResult);
  t.store(t.apply(MicroOp::tanh, root), kMask);
  const Epilogue e = absorb_tail(t.program(), false);
  EXPECT_TRUE(e.empty());
  EXPECT_EQ(e.rest.code.size(), t.program().code.size());
}

// A gradient may take the place of the activation that masks it. The product must not write there
// before the mask is read.
TEST(GpuEpilogue, DoesNotLandOnWhatTheRestReads) {
  Tail t(kWidth);
  t.store(t.apply(MicroOp::relu_grad, t.root(), t.load(kMask)), kResult);
  const Epilogue e = absorb_tail(t.program(), false);
  EXPECT_TRUE(e.empty());
  EXPECT_EQ(e.landing, -1);
}

TEST(GpuEpilogue, TakesNothingFromAResultThatIsWantedItself) {
  Tail t(kWidth);
  t.store(t.apply(MicroOp::relu, t.root()), kResult);
  const Epilogue e = absorb_tail(t.program(), true);
  EXPECT_TRUE(e.empty());
  EXPECT_FALSE(e.rest.empty());
  EXPECT_EQ(e.landing, -1);
}

TEST(GpuEpilogue, AddsNothingAfterRelu) {
  Tail t(kWidth);
  const int relu = t.apply(MicroOp::relu, t.root());
  t.store(t.apply(MicroOp::add, relu, t.parameter(kBias)), kResult);
  const Epilogue e = absorb_tail(t.program(), false);
  EXPECT_TRUE(e.relu);
  EXPECT_EQ(e.bias, -1);
  EXPECT_EQ(e.rest.code.front().op, MicroOp::root);
  EXPECT_EQ(e.rest.code.front().out, relu);
}

}  // namespace
}  // namespace nacre::test
