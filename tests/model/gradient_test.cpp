// Compares gradients of whole models with central differences, in double. Dropout is on: for a
// fixed step it is a constant mask.
#include <gtest/gtest.h>

#include <cmath>

#include "model/cases.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

constexpr double kStep = 1e-6;
constexpr double kTolerance = 1e-5;

class ModelGradient {
 public:
  ModelGradient(const ModelOptions& options, const Blocks& blocks)
      : blocks_(blocks), forward_(build_model(options)), backward_(forward_) {
    differentiate(backward_);
    bindings_ = model_bindings(forward_, blocks, 23);
    ref::Interpreter interpreter(backward_, blocks_);
    interpreter.run(bindings_, kContext);
    for (const auto& [name, node] : backward_.outputs()) {
      if (name.starts_with("grad:")) gradients_[name.substr(5)] = interpreter.value(node);
    }
  }

  // Checks that every trained parameter has a gradient, and that it is right along a few
  // directions.
  void check() {
    for (const Node& node : forward_.nodes()) {
      if (node.op != Op::param || node.state) continue;
      ASSERT_TRUE(gradients_.contains(node.name)) << node.name << " has no gradient";
      const size_t size = gradients_[node.name].size();
      ASSERT_EQ(size, bindings_[node.name].size()) << node.name;
      Rng rng(size);
      for (int i = 0; i < 2 && size > 0; ++i) {
        std::vector<double> one(size, 0.0);
        one[static_cast<size_t>(rng.below(static_cast<int64_t>(size)))] = 1;
        expect_slope(node.name, one);
      }
      std::vector<double> direction(size);
      for (double& d : direction) d = rng.uniform(-1, 1);
      expect_slope(node.name, direction);
    }
  }

 private:
  static constexpr StepContext kContext{5, 3};

  double loss_at(const std::string& name, const std::vector<double>& direction, double distance) {
    ref::Bindings moved = bindings_;
    for (size_t i = 0; i < direction.size(); ++i) moved[name][i] += distance * direction[i];
    ref::Interpreter interpreter(forward_, blocks_);
    interpreter.run(moved, kContext);
    return interpreter.scalar(forward_.output("loss"));
  }

  void expect_slope(const std::string& name, const std::vector<double>& direction) {
    double analytic = 0;
    for (size_t i = 0; i < direction.size(); ++i) analytic += gradients_[name][i] * direction[i];
    const double numeric = (loss_at(name, direction, kStep) - loss_at(name, direction, -kStep)) / (2 * kStep);
    // Below 1e-2, the difference of two losses has too few digits left for a relative comparison.
    const double size = std::max({std::abs(analytic), std::abs(numeric), 1e-2});
    EXPECT_LT(std::abs(analytic - numeric) / size, kTolerance) << name << ": " << analytic << " against " << numeric;
  }

  Blocks blocks_;
  Dfg forward_;
  Dfg backward_;
  ref::Bindings bindings_;
  std::map<std::string, std::vector<double>> gradients_;
};

class Gradient : public testing::TestWithParam<ModelCase> {};

TEST_P(Gradient, matches_central_differences) {
  for (const BlocksInput& input : block_inputs(31, GetParam().options.layers)) {
    SCOPED_TRACE(GetParam().name + " on " + input.name);
    ModelOptions options = options_for(GetParam().options, input.blocks);
    options.dropout = 0.3;
    options.input_dropout = 0.2;
    if (model_info(options.model).heads > 0) options.attention_dropout = 0.25;
    ModelGradient(options, input.blocks).check();
  }
}

// With several kinds of vertices, projections and learned rows have gradients.
TEST(GradientOfKinds, matches_central_differences) {
  for (const char* model : {"rgcn", "gat", "gated-mean"}) {
    ModelOptions options;
    options.model = model;
    options.hidden = 4;
    options.out_dim = 3;
    for (const BlocksInput& input : block_inputs(37, options.layers)) {
      SCOPED_TRACE(model + (" on " + input.name));
      ModelOptions own = with_kinds(options, input.blocks);
      own.dropout = 0.3;
      own.input_dropout = 0.2;
      ModelGradient(own, input.blocks).check();
    }
  }
}

// The user's model of examples/own_model is checked like the built-in ones.
std::vector<ModelCase> gradient_cases() {
  std::vector<ModelCase> cases = model_cases();
  ModelOptions options;
  options.model = "gated-mean";
  options.in_dim = 5;
  options.hidden = 4;
  options.out_dim = 3;
  options.knobs["sharpness"] = 1.5;
  cases.push_back({"gated_mean", options});
  options.edge_weighted = true;
  cases.push_back({"gated_mean_weighted", options});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, Gradient, testing::ValuesIn(gradient_cases()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace nacre::test
