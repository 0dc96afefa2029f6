// validate() must notice every plan that was broken by hand.
#include <gtest/gtest.h>

#include <functional>

#include "nacre/base/error.h"
#include "plan/plans.h"

namespace nacre::test {
namespace {

class ValidateTest : public testing::Test {
 protected:
  ValidateTest() : model_(plan_model(usual("gcn"))) {}

  void expect_caught(const char* what, const std::function<void(Plan&)>& damage) const {
    Plan plan = model_.plan;
    damage(plan);
    EXPECT_THROW(validate(plan, model_.blocks), InternalError) << what;
  }

  size_t first_step_kernel() const {
    size_t k = 0;
    while (model_.plan.kernels[k].once) ++k;
    return k;
  }

  PlannedModel model_;
};

TEST_F(ValidateTest, AcceptsWhatThePlannerMakes) { EXPECT_NO_THROW(validate(model_.plan, model_.blocks)); }

TEST_F(ValidateTest, NoticesWrongOrder) {
  expect_caught("reversed", [](Plan& p) { std::reverse(p.kernels.begin(), p.kernels.end()); });
  expect_caught("a step's value read once", [&](Plan& p) { p.kernels.back().once = true; });
  expect_caught("a parameter read once", [&](Plan& p) {
    Kernel& k = p.kernels[first_step_kernel()];
    k.once = true;
  });
}

TEST_F(ValidateTest, NoticesMissingAndDoubleWork) {
  expect_caught("a kernel is missing", [](Plan& p) { p.kernels.erase(p.kernels.begin()); });
  expect_caught("the last kernel is missing", [](Plan& p) { p.kernels.pop_back(); });
  expect_caught("a kernel twice", [](Plan& p) { p.kernels.push_back(p.kernels.back()); });
  expect_caught("an unwritten value", [](Plan& p) { p.kernels.back().writes.clear(); });
}

TEST_F(ValidateTest, NoticesUndeclaredOperands) {
  expect_caught("reads forgotten", [&](Plan& p) { p.kernels[first_step_kernel()].reads.clear(); });
  expect_caught("an argument that is not read",
                [&](Plan& p) { p.kernels.back().args.push_back(p.kernels.front().root); });
  expect_caught("a program operand that is not read",
                [&](Plan& p) { p.kernels.back().tail.operands.push_back(p.kernels.front().root); });
}

TEST_F(ValidateTest, NoticesTablesThatDoNotMatch) {
  expect_caught("stored is short", [](Plan& p) { p.stored.pop_back(); });
  expect_caught("alias is short", [](Plan& p) { p.alias.pop_back(); });
  expect_caught("narrow is short", [](Plan& p) { p.narrow.push_back(0); });
  expect_caught("a value without memory is stored as bf16", [](Plan& p) {
    p.narrow.assign(p.dfg, 0);
    NodeRef i = 0;
    while (p.stored[p.alias[i]] != 0) ++i;
    p.narrow[i] = 1;
  });
  expect_caught("a program reads bf16 as f32", [](Plan& p) {
    p.narrow.assign(p.dfg, 0);
    for (const Kernel& k : p.kernels) {
      if (!k.tail.operands.empty()) p.narrow[k.tail.operands[0]] = 1;
    }
  });
  expect_caught("alias out of range", [](Plan& p) { p.alias.back() = p.dfg.size(); });
  expect_caught("alias of an alias", [](Plan& p) {
    const size_t n = p.alias.size();
    p.alias[n - 1] = static_cast<NodeRef>(n - 2);
    p.alias[n - 2] = 0;
  });
  expect_caught("a written node without memory", [](Plan& p) { p.stored[p.kernels.back().writes.front()] = 0; });
  expect_caught("memory that nobody writes", [](Plan& p) {
    for (size_t i = 0; i < p.stored.size(); ++i) {
      if (!p.stored[i]) {
        p.stored[i] = 1;
        return;
      }
    }
  });
}

TEST_F(ValidateTest, NoticesNodesThatDoNotExist) {
  for (const NodeRef bad : {-1, model_.plan.dfg.size()}) {
    expect_caught("root", [&](Plan& p) { p.kernels.back().root = bad; });
    expect_caught("reads", [&](Plan& p) { p.kernels.back().reads.push_back(bad); });
    expect_caught("writes", [&](Plan& p) { p.kernels.back().writes.push_back(bad); });
    expect_caught("operand", [&](Plan& p) { p.kernels.back().program.operands.push_back(bad); });
  }
  expect_caught("argument", [&](Plan& p) { p.kernels.back().args.push_back(p.dfg.size()); });
}

TEST_F(ValidateTest, NoticesBlocksThatAreTooFew) {
  EXPECT_THROW(validate(model_.plan, Blocks::full(model_.blocks.layer(0), 1)), InternalError);
}

}  // namespace
}  // namespace nacre::test
