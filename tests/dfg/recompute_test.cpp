// Tests which values can be computed again, under which names, and what the backward pass reads
// then.
#include "nacre/dfg/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/cases.h"
#include "nacre/base/error.h"

namespace nacre::test {
namespace {

Dfg training(const std::string& model, double dropout = 0) {
  ModelOptions o;
  o.model = model;
  o.layers = 2;
  o.in_dim = 5;
  o.hidden = 4;
  o.out_dim = 3;
  o.dropout = dropout;
  o.heads = model == "gat" ? 1 : 0;
  Dfg dfg = build_model(o);
  differentiate(dfg);
  return dfg;
}

std::vector<std::string> names_of(const std::vector<Recomputable>& list, bool over_edges) {
  std::vector<std::string> names;
  for (const Recomputable& r : list) {
    if (r.over_edges == over_edges) names.push_back(r.name);
  }
  return names;
}

TEST(RecomputeDfg, TheBackwardPassReadsClonesRightBeforeItNeedsThem) {
  const Dfg dfg = parse_dfg(
      "dfg small\n"
      "%0 = input : v0[3] name=x\n"
      "%1 = param : p[3,2] init=glorot name=w\n"
      "%2 = matmul(%0, %1) : v0[2]\n"
      "%3 = param : p[2] name=b\n"
      "%4 = add(%2, %3) : v0[2]\n"
      "%5 = tanh(%4) : v0[2]\n"
      "%6 = l2(%5) : p[]\n"
      "%7 = constant : p[] alpha=1\n"
      "%8 = mul(%5, %7) : v0[2]\n"
      "%9 = tanh_grad(%8, %5) : v0[2]\n"
      "%10 = column_sum(%9) : p[2]\n"
      "%11 = weight_grad(%0, %9) : p[3,2]\n"
      "output loss %6\n"
      "output grad:b %10\n"
      "output grad:w %11\n");
  const auto found = find_recomputable(dfg);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "tanh@b");
  EXPECT_EQ(found[0].node, 5);
  EXPECT_FALSE(found[0].over_edges);
  const Recomputed again = recompute(dfg, {"tanh@b"});
  again.dfg.validate();
  EXPECT_EQ(print_dfg(again.dfg),
            "dfg small\n"
            "%0 = input : v0[3] name=x\n"
            "%1 = param : p[3,2] init=glorot name=w\n"
            "%2 = matmul(%0, %1) : v0[2]\n"
            "%3 = param : p[2] name=b\n"
            "%4 = add(%2, %3) : v0[2]\n"
            "%5 = tanh(%4) : v0[2]\n"
            "%6 = l2(%5) : p[]\n"
            "%7 = constant : p[] alpha=1\n"
            "%8 = matmul(%0, %1) : v0[2]\n"
            "%9 = add(%8, %3) : v0[2]\n"
            "%10 = tanh(%9) : v0[2]\n"
            "%11 = mul(%10, %7) : v0[2]\n"
            "%12 = tanh_grad(%11, %10) : v0[2]\n"
            "%13 = column_sum(%12) : p[2]\n"
            "%14 = weight_grad(%0, %12) : p[3,2]\n"
            "output loss %6\n"
            "output grad:b %13\n"
            "output grad:w %14\n");
  EXPECT_EQ(again.again, std::vector<char>({0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0}));
}

TEST(RecomputeDfg, SaysWhatWalksEdgesAgain) {
  const auto gcn = find_recomputable(training("gcn"));
  // In the model as written, sums over neighbours come before the products, so the first activation
  // needs only a constant.
  EXPECT_EQ(names_of(gcn, false),
            (std::vector<std::string>{"relu@layers.0.lin.bias", "log_softmax@layers.1.lin.bias"}));
  EXPECT_EQ(names_of(gcn, true), std::vector<std::string>{"index_add@layers.0.lin.bias"});
  const auto gat = names_of(find_recomputable(training("gat")), true);
  EXPECT_NE(std::find_if(gat.begin(), gat.end(), [](const std::string& n) { return n.starts_with("edge_softmax@"); }),
            gat.end());
}

TEST(RecomputeDfg, NamesAreUniqueAndOfEveryModel) {
  const Blocks blocks = Blocks::full(random_graphs(1)[3].graph, 3);
  for (const ModelCase& c : model_cases()) {
    Dfg dfg = build_model(options_for(c.options, blocks));
    EXPECT_TRUE(find_recomputable(dfg).empty()) << c.name << ": without gradients nothing is kept";
    differentiate(dfg);
    std::set<std::string> names;
    const auto all = find_recomputable(dfg);
    for (const Recomputable& r : all) names.insert(r.name);
    EXPECT_FALSE(all.empty()) << c.name;
    EXPECT_EQ(names.size(), all.size()) << c.name;
    const Recomputed again = recompute(dfg, names);
    again.dfg.validate();
    EXPECT_EQ(again.again.size(), static_cast<size_t>(again.dfg.size()));
    EXPECT_EQ(again.dfg.outputs().size(), dfg.outputs().size());
    EXPECT_EQ(again.dfg.updates().size(), dfg.updates().size());
  }
}

TEST(RecomputeDfg, DropoutDrawsTheSameNumbers) {
  const Dfg dfg = training("gcn", 0.5);
  std::set<std::string> names;
  for (const Recomputable& r : find_recomputable(dfg)) names.insert(r.name);
  const Recomputed again = recompute(dfg, names);
  std::set<uint64_t> salts, cloned;
  for (NodeRef i = 0; i < again.dfg.size(); ++i) {
    if (again.dfg[i].op == Op::dropout) (again.again[i] ? cloned : salts).insert(again.dfg[i].salt);
  }
  EXPECT_FALSE(cloned.empty());
  EXPECT_TRUE(std::includes(salts.begin(), salts.end(), cloned.begin(), cloned.end()));
}

TEST(RecomputeDfg, NothingNamedChangesNothing) {
  const Dfg dfg = training("sage");
  EXPECT_EQ(recompute(dfg, {}).dfg, dfg);
}

TEST(RecomputeDfg, UnknownNamesAreTheUsersErrorUnlessNothingIsKept) {
  EXPECT_THROW(recompute(training("gcn"), {"relu@nothing"}), UserError);
  ModelOptions o;
  o.model = "gcn";
  o.in_dim = o.hidden = o.out_dim = 2;
  const Dfg forward = build_model(o);
  EXPECT_EQ(recompute(forward, {"relu@layers.0.lin.bias"}).dfg, forward) << "evaluation has the plan of training";
}

}  // namespace
}  // namespace nacre::test
