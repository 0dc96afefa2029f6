// Tests of the text form: printed text can be read back, and any other text gives an error that
// names the line.
#include <gtest/gtest.h>

#include "model/cases.h"
#include "nacre/base/error.h"
#include "nacre/dfg/dfg.h"
#include "support/op_cases.h"
#include "support/random_dfg.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

std::vector<std::pair<std::string, Dfg>> all_dfgs() {
  std::vector<std::pair<std::string, Dfg>> all;
  const Blocks blocks = Blocks::full(random_graphs(1)[3].graph, 3);
  for (const ModelCase& c : model_cases()) {
    ModelOptions options = c.options;
    options.dropout = 0.3;
    Dfg dfg = build_model(options_for(options, blocks));
    differentiate(dfg);
    all.emplace_back(c.name, dfg);
    options.training = false;
    all.emplace_back(c.name + " evaluation", build_model(options_for(options, blocks)));
  }
  for (const std::vector<OpCase>& cases : {op_cases(), layer_cases()}) {
    for (const OpCase& c : cases) all.emplace_back(c.name, case_dfg(c.build, true));
  }
  for (uint64_t seed = 0; seed < 50; ++seed) all.emplace_back("random " + std::to_string(seed), random_dfg(seed, 30));
  return all;
}

TEST(DfgText, ReadsBackWhatItPrints) {
  for (const auto& [name, dfg] : all_dfgs()) {
    const std::string text = print_dfg(dfg);
    const Dfg back = parse_dfg(text);
    EXPECT_EQ(back, dfg) << name;
    EXPECT_EQ(print_dfg(back), text) << name;
    EXPECT_NO_THROW(back.validate()) << name;
  }
}

TEST(DfgText, KeepsEveryDigit) {
  Net net;
  for (const double alpha : {1.0 / 3, -1e-300, 123456789.123456789, 0.1F * 1.0}) {
    net.dfg.set_output("o" + std::to_string(net.dfg.size()), net.op(Op::scale, {net.param(v(0))}, alpha));
  }
  const Dfg back = parse_dfg(print_dfg(net.dfg));
  for (int i = 0; i < back.size(); ++i) EXPECT_EQ(back[i].alpha, net.dfg[i].alpha);
}

TEST(DfgText, NamesPairs) {
  EXPECT_EQ(space_text(Space::pair_src(2)), "s2");
  EXPECT_EQ(space_text(Space::pair_dst(0)), "d0");
  const Dfg dfg = parse_dfg(
      "dfg pairs\n"
      "%0 = input : v0[3] name=x\n"
      "%1 = index(%0) : s0[3] attr=src ints=1\n"
      "%2 = param : t[3,2] name=w\n"
      "%3 = typed_matmul(%1, %2) : s0[2]\n"
      "%4 = index(%3) : e0[2] attr=pair_src\n"
      "%5 = index_add(%4) : d0[2] attr=pair_dst\n"
      "%6 = index_add(%5) : v1[2] attr=dst\n"
      "output y %6\n");
  EXPECT_EQ(dfg[3].type.space, Space::pair_src(0));
  EXPECT_EQ(dfg[5].type.space, Space::pair_dst(0));
  EXPECT_EQ(dfg[4].attr, Attr::pair_src);
  EXPECT_EQ(dfg.num_layers(), 1);
  EXPECT_EQ(parse_dfg(print_dfg(dfg)), dfg);
}

constexpr const char* kGood =
    "dfg small  # a name\n"
    "\n"
    "%0 = input : v0[3] name=x\n"
    "  %1 = param : p[3,2] init=glorot name=layers.0.w  # the weight\n"
    "%2 = matmul(%0, %1) : v0[2]\r\n"
    "%3 = param : p[2] state=1 name=mean\n"
    "%4 = column_sum(%2) : p[2]\n"
    "output logits %2\n"
    "update mean %4\n";

TEST(DfgText, AllowsCommentsBlanksAndForeignLineEnds) {
  const Dfg dfg = parse_dfg(kGood);
  EXPECT_EQ(dfg.name(), "small");
  EXPECT_EQ(dfg.size(), 5);
  EXPECT_EQ(dfg[1].name, "layers.0.w");
  EXPECT_TRUE(dfg[3].state);
  EXPECT_EQ(dfg.output("logits"), 2);
  ASSERT_EQ(dfg.updates().size(), 1U);
}

TEST(DfgText, ErrorsNameTheLine) {
  struct Bad {
    const char* line;  // replaces line 5 of the good text, or follows it
    const char* says;
  };
  const std::vector<Bad> all = {
      {"%7 = relu(%0) : v0[3]", "in order"},
      {"%2 = frobnicate(%0) : v0[3]", "unknown operation 'frobnicate'"},
      {"%2 = relu(%0, %0) : v0[3]", "takes 1 inputs"},
      {"%2 = relu(%2) : v0[3]", "is not a node before this one"},
      {"%2 = relu(%9) : v0[3]", "is not a node before this one"},
      {"%2 = relu(%-1) : v0[3]", "is not a node before this one"},
      {"%2 = relu(%0) : v0[4]", "the type should be v0[3]"},
      {"%2 = relu(%0) : v1[3]", "the type should be v0[3]"},
      {"%2 = relu(%0) : w0[3]", "unknown space 'w0'"},
      {"%2 = relu(%0) : v[3]", "bad number"},
      {"%2 = input : s[3] name=y", "bad number"},
      {"%2 = input : d-1[3] name=y", "layer is negative"},
      {"%2 = index(%0) : d0[3] attr=src ints=1", "the type should be s0[3]"},
      {"%2 = index(%0) : e0[3] attr=pair_src", "the operand must be on the pairs that attr names"},
      {"%2 = relu(%0) : v-1[3]", "layer is negative"},
      {"%2 = relu(%0) : v0[3", "expected ']'"},
      {"%2 = relu(%0) : v0[3]:f8", "unknown element type 'f8'"},
      {"%2 = relu(%0 : v0[3]", "expected ')'"},
      {"%2 = relu(%0) v0[3]", "expected ':'"},
      {"%2 relu(%0) : v0[3]", "expected '='"},
      {"%2 = index(%0) : e0[3] attr=up", "unknown edge attribute 'up'"},
      {"%2 = relu(%0) : v0[3] colour=red", "unknown field 'colour'"},
      {"%2 = relu(%0) : v0[3] alpha=much", "bad number 'much'"},
      {"%2 = relu(%0) : v0[3] alpha=nan", "alpha must be a number"},
      {"%2 = relu(%0) : v0[3] alpha=1e999", "bad number"},
      {"%2 = relu(%0) : v0[3] salt=-1", "bad number '-1'"},
      {"%2 = relu(%0) : v0[3] ints=1,,2", "bad number ''"},
      {"%2 = relu(%0) : v0[3] alpha=", "expected a value"},
      {"%2 = param : p[2] init=magic name=w2", "unknown initialiser 'magic'"},
      {"%2 = param : p[2] state=yes name=w2", "state must be 1"},
      {"%2 = param : p[2]", "a leaf needs a name"},
      {"%2 = param : p[2] name=x", "two parameters or inputs are named 'x'"},
      {"%2 = param : p[0] name=w2", "dims must be positive"},
      {"%2 = input : v0[4611686018427387904,4] name=y", "too many elements"},
      {"%2 = input : v0[99999999999999999999] name=y", "bad number"},
      {"%2 = input : v2147483647[2] name=y", "the layer is out of range"},
      {"%2 = slice(%0) : v0[1] ints=9223372036854775807,9223372036854775807", "out of range"},
      {"%2 = reshape(%0) : v0[-1,-3]", "dims must be positive"},
      {"%2 = index(%1) : e0[3] attr=type ints=0", "starts in t"},
      {"output logits", "expected '%'"},
      {"output logits %99", "does not exist"},
      {"output a %0 %1", "unexpected '%1'"},
      {"update x %0", "not a state parameter"},
      {"update nobody %0", "not a state parameter"},
      {"result a %0", "expected a node, an output or an update"},
      {"*", "expected a word"},
  };
  const std::string text = kGood;
  const size_t line5 = text.find("%2 =");
  for (const Bad& bad : all) {
    try {
      parse_dfg(text.substr(0, line5) + bad.line + "\n");
      ADD_FAILURE() << bad.line << " was accepted";
    } catch (const UserError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("line 5"), std::string::npos) << bad.line << ": " << what;
      EXPECT_NE(what.find(bad.says), std::string::npos) << bad.line << ": " << what;
    }
  }
}

TEST(DfgText, ErrorsOfTheWhole) {
  EXPECT_THROW(parse_dfg(""), UserError);
  EXPECT_THROW(parse_dfg("# nothing\n\n"), UserError);
  EXPECT_THROW(parse_dfg("%0 = input : v0[3] name=x\n"), UserError);
  EXPECT_THROW(parse_dfg("dfg\n"), UserError);
  EXPECT_THROW(parse_dfg("dfg a b\n"), UserError);
  EXPECT_THROW(parse_dfg(std::string(kGood) + "output logits %2\n"), UserError) << "twice";
  EXPECT_THROW(parse_dfg(std::string(kGood) + "update mean %4\n"), UserError) << "twice";
}

// Text of which random bytes were deleted, changed or copied gives a DFG or a UserError and nothing
// else.
TEST(DfgText, SurvivesRandomDamage) {
  Rng rng(4);
  std::vector<std::string> texts;
  for (const auto& [name, dfg] : all_dfgs()) {
    if (texts.size() < 60) texts.push_back(print_dfg(dfg));
  }
  int parsed = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = texts[static_cast<size_t>(round) % texts.size()];
    const auto somewhere = [&] { return static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()))); };
    for (int64_t edits = 1 + rng.below(2); edits > 0 && !text.empty(); --edits) {
      switch (rng.below(4)) {
        case 0:
          text.erase(somewhere(), static_cast<size_t>(1 + rng.below(8)));
          break;
        case 1:
          text[somewhere()] = static_cast<char>(rng.below(256));
          break;
        case 2:
          text[somewhere()] = static_cast<char>('0' + rng.below(10));
          break;
        default:
          text.insert(somewhere(), text.substr(somewhere(), static_cast<size_t>(1 + rng.below(12))));
      }
    }
    try {
      const Dfg dfg = parse_dfg(text);
      dfg.validate();
      EXPECT_EQ(parse_dfg(print_dfg(dfg)), dfg) << text;
      ++parsed;
    } catch (const UserError&) {
      continue;
    }
  }
  EXPECT_GT(parsed, 50) << "the damage is too great to reach anything but the first check";
}

}  // namespace
}  // namespace nacre::test
