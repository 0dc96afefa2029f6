// Tests coefficients of edges that are moved to the vertices: where that happens, and what is in
// memory then.
#include "nacre/plan/factors.h"

#include <gtest/gtest.h>

#include "plan/plans.h"

namespace nacre::test {
namespace {

constexpr const char* kSum =
    "dfg sum\n"
    "%0 = input : v0[] name=a\n"
    "%1 = input : v1[] name=b\n"
    "%2 = param : v0[4] name=x\n"
    "%3 = index(%0) : e0[] attr=src\n"
    "%4 = index(%1) : e0[] attr=dst\n"
    "%5 = mul(%3, %4) : e0[]\n"
    "%6 = index(%2) : e0[4] attr=src\n"
    "%7 = mul(%6, %5) : e0[4]\n"
    "%8 = index_add(%7) : v1[4] attr=dst\n"
    "output y %8\n";

TEST(Factors, ASumOfEdgesWithFactorsOfBothEnds) {
  EXPECT_EQ(print_dfg(factor_sums(parse_dfg(kSum))),
            "dfg sum\n"
            "%0 = input : v0[] name=a\n"
            "%1 = input : v1[] name=b\n"
            "%2 = param : v0[4] name=x\n"
            "%3 = mul(%2, %0) : v0[4]\n"
            "%4 = index(%3) : e0[4] attr=src\n"
            "%5 = index_add(%4) : v1[4] attr=dst\n"
            "%6 = mul(%5, %1) : v1[4]\n"
            "output y %6\n");
}

TEST(Factors, NotOfRawFeaturesNorOfCoefficientsThatAreNotOfVertices) {
  std::string features = kSum;
  features.replace(features.find("param : v0"), 5, "input");
  std::string weights = kSum;
  weights.replace(weights.find("index(%1) : e0[] attr=dst"), 25, "input : e0[] name=w");
  std::string trained = kSum;
  trained.replace(trained.find("input : v1"), 5, "param");
  for (const std::string& text : {features, weights, trained}) {
    const Dfg dfg = parse_dfg(text);
    EXPECT_EQ(print_dfg(factor_sums(dfg)), print_dfg(prune(dfg)));
  }
}

TEST(Factors, RowFactorsGoBehindProducts) {
  const Dfg dfg = parse_dfg(
      "dfg products\n"
      "%0 = input : v0[] name=s\n"
      "%1 = param : v0[4] name=x\n"
      "%2 = param : p[4,2] name=w\n"
      "%3 = param : v0[2] name=g\n"
      "%4 = mul(%1, %0) : v0[4]\n"
      "%5 = matmul(%4, %2) : v0[2]\n"
      "%6 = weight_grad(%4, %3) : p[4,2]\n"
      "output y %5\n"
      "output z %6\n");
  EXPECT_EQ(print_dfg(delay_row_factors(dfg)),
            "dfg products\n"
            "%0 = input : v0[] name=s\n"
            "%1 = param : v0[4] name=x\n"
            "%2 = param : p[4,2] name=w\n"
            "%3 = param : v0[2] name=g\n"
            "%4 = matmul(%1, %2) : v0[2]\n"
            "%5 = mul(%4, %0) : v0[2]\n"
            "%6 = mul(%3, %0) : v0[2]\n"
            "%7 = weight_grad(%1, %6) : p[4,2]\n"
            "output y %5\n"
            "output z %7\n");
}

// One row for all vertices is not a row of each of them.
TEST(Factors, ScaledParametersStay) {
  const Dfg dfg = parse_dfg(
      "dfg products\n"
      "%0 = input : v0[] name=s\n"
      "%1 = param : p[4] name=x\n"
      "%2 = param : v0[2] name=g\n"
      "%3 = mul(%1, %0) : v0[4]\n"
      "%4 = weight_grad(%3, %2) : p[4,2]\n"
      "output z %4\n");
  EXPECT_EQ(print_dfg(delay_row_factors(dfg)), print_dfg(prune(dfg)));
}

TEST(Factors, FactorsOfSumsGoToTheSums) {
  const std::string sum =
      "dfg products\n"
      "%0 = input : v1[] name=s\n"
      "%1 = param : e0[4] name=x\n"
      "%2 = param : p[4,2] name=w\n"
      "%3 = index_add(%1) : v1[4] attr=dst\n";
  EXPECT_EQ(print_dfg(delay_row_factors(parse_dfg(sum + "%4 = matmul(%3, %2) : v1[2]\n"
                                                        "%5 = mul(%4, %0) : v1[2]\n"
                                                        "output y %5\n"))),
            sum +
                "%4 = mul(%3, %0) : v1[4]\n"
                "%5 = matmul(%4, %2) : v1[2]\n"
                "output y %5\n");
}

TEST(Factors, AGcnKeepsNothingForItsEdges) {
  const auto edge_values = [](const Plan& plan) {
    int count = 0;
    for (NodeRef i = 0; i < plan.dfg.size(); ++i)
      count += plan.dfg[i].type.space.kind == SpaceKind::edge && plan.stored[i] ? 1 : 0;
    return count;
  };
  EXPECT_EQ(edge_values(plan_model(usual("gcn", 3)).plan), 1);
  const PlannedModel m = plan_model(usual("gcn", 3), {.vertex_factors = true});
  EXPECT_EQ(edge_values(m.plan), 0);
  EXPECT_EQ(count_kernels(m.plan, KernelKind::reduce, true), 1) << "of the features";
  EXPECT_EQ(count_kernels(m.plan, KernelKind::reduce, false), 0) << "the others are plain sums";
  EXPECT_EQ(load_plan(plan_json(m.plan), "f", m.dfg, m.blocks).options, m.plan.options);
}

}  // namespace
}  // namespace nacre::test
