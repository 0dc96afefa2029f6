// Every row of dfg/activations.h: its gradient against central differences of its value, and the
// CPU's vector form against both. A new row is tested without a change here.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "nacre/kernel/cpu/micro_ops.h"

namespace nacre {
namespace {

struct Row {
  const ActivationInfo* info;
  MicroOp micro, gradient_micro;
  double (*value)(double x, double alpha);
  double (*gradient)(double g, double y, double alpha);
};

std::vector<Row> rows() {
  return {
#define NACRE_ROW(name, usual, reads, value_of, gradient_of, ...)                                         \
  Row{find_activation(Op::name), MicroOp::name, MicroOp::name##_grad,                                     \
      []([[maybe_unused]] double x, [[maybe_unused]] double alpha) -> double { return value_of; },        \
      []([[maybe_unused]] double g, [[maybe_unused]] double y, [[maybe_unused]] double alpha) -> double { \
        return gradient_of;                                                                               \
      }},
      NACRE_ACTIVATIONS(NACRE_ROW)
#undef NACRE_ROW
  };
}

constexpr float kAlpha = 0.3F;

// Returns points of both signs, small and large. Their number is no multiple of a vector's length.
// None is 0, where a function may have a kink.
std::vector<float> points() {
  std::vector<float> x;
  for (const float size : {0.01F, 0.3F, 1.0F, 2.5F, 7.0F}) {
    for (int i = 1; i <= 5; ++i) {
      x.push_back(size * static_cast<float>(i) / 4);
      x.push_back(-size * static_cast<float>(i) / 4);
    }
  }
  x.push_back(0.125F);
  return x;
}

std::vector<float> run(MicroOp op, const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> out(a.size());
  const auto n = static_cast<int64_t>(a.size());
  Micro micro;
  micro.op = op;
  micro.alpha = kAlpha;
  cpu::MicroCall call;
  call.micro = &micro;
  call.rows = 1;
  call.a = {a.data(), nullptr, n, n};
  call.b = {b.empty() ? nullptr : b.data(), nullptr, n, n};
  call.out = out.data();
  call.out_width = n;
  cpu::micro_functions()[static_cast<size_t>(op)](call);
  return out;
}

TEST(Activations, GradientsAreThoseOfTheValues) {
  for (const Row& row : rows()) {
    for (const float x : points()) {
      constexpr double kStep = 1e-6, kG = 1.7;
      const double y = row.info->reads_output ? row.value(x, kAlpha) : x;
      const double want = kG * (row.value(x + kStep, kAlpha) - row.value(x - kStep, kAlpha)) / (2 * kStep);
      EXPECT_NEAR(row.gradient(kG, y, kAlpha), want, 1e-6) << row.info->name << " at " << x;
    }
  }
}

TEST(Activations, VectorsComputeTheSame) {
  const std::vector<float> x = points();
  const std::vector<float> g(x.rbegin(), x.rend());
  for (const Row& row : rows()) {
    const std::vector<float> value = run(row.micro, x, {});
    const std::vector<float> y = row.info->reads_output ? value : x;
    const std::vector<float> gradient = run(row.gradient_micro, g, y);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = row.value(x[i], kAlpha), slope = row.gradient(g[i], y[i], kAlpha);
      EXPECT_NEAR(value[i], want, 2e-6 * std::max(1.0, std::abs(want))) << row.info->name << " at " << x[i];
      EXPECT_NEAR(gradient[i], slope, 4e-6 * std::max(1.0, std::abs(slope))) << row.info->name << " at " << x[i];
    }
  }
}

TEST(Activations, AreFoundByBothOfTheirOperations) {
  for (const Row& row : rows()) {
    EXPECT_EQ(find_activation(row.info->op), row.info);
    EXPECT_EQ(find_activation(row.info->gradient), row.info);
    EXPECT_EQ(find_activation(row.micro), row.info);
    EXPECT_EQ(activation_micro(row.info->gradient), row.gradient_micro);
    EXPECT_EQ(op_info(row.info->gradient).name, std::string(row.info->name) + "_grad");
    EXPECT_EQ(op_info(row.info->op).name, row.info->name);
  }
  EXPECT_EQ(find_activation(Op::add), nullptr);
  EXPECT_EQ(find_activation(MicroOp::inv), nullptr);
}

}  // namespace
}  // namespace nacre
