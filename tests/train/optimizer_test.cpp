// Compares optimisers with PyTorch's definitions in double, and learning-rate schedules at their
// corners.
#include "nacre/train/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/fixtures.h"
#include "nacre/base/parallel.h"
#include "support/rng.h"

namespace nacre::test {
namespace {

NodeRef add_param(Dfg& dfg, const std::string& name, std::vector<int64_t> dims, bool state = false) {
  Node node;
  node.op = Op::param;
  node.name = name;
  node.type.space = Space::param();
  node.type.dims = std::move(dims);
  node.init = Init::glorot;
  node.state = state;
  return dfg.add(node);
}

// Returns parameters of awkward sizes (one value, several chunks, something in between) and running
// statistics, which no optimiser touches.
Parameters some_parameters() {
  Dfg dfg;
  add_param(dfg, "a", {1});
  add_param(dfg, "b", {37, 451});
  add_param(dfg, "running", {5}, true);
  add_param(dfg, "c", {3, 7});
  add_param(dfg, "idle", {4});
  return {dfg, Blocks::full(Graph(), 1), 17};
}

std::vector<std::vector<float>> random_gradients(const Parameters& parameters, Rng& rng) {
  std::vector<std::vector<float>> all;
  for (const Parameter& p : parameters.list()) {
    std::vector<float> g(static_cast<size_t>(p.size));
    // The values span several orders of magnitude and include exact zeros.
    for (float& x : g)
      x = rng.below(8) == 0 ? 0.0F : static_cast<float>(rng.normal() * std::pow(10, rng.uniform(-4, 1)));
    all.push_back(std::move(g));
  }
  return all;
}

// A CPU optimiser of some parameters; `gradients` may change between steps.
struct Trained {
  explicit Trained(const OptimizerOptions& options, const std::string& idle = "")
      : state(options, parameters), gradients(parameters.list().size()) {
    std::vector<TrainedParameter> trained;
    for (size_t k = 0; k < gradients.size(); ++k) {
      const Parameter& p = parameters.list()[k];
      gradients[k].resize(static_cast<size_t>(p.size));
      if (p.trained) trained.push_back({p.offset, p.size, p.name == idle ? nullptr : gradients[k].data()});
    }
    const auto data = [](Tensor& t) { return t.defined() ? t.data<float>() : nullptr; };
    optimizer = make_cpu_optimizer(options, trained,
                                   {parameters.data(), data(state.first()), data(state.second()), data(state.average()),
                                    parameters.trained_size()});
  }

  void step(const std::vector<std::vector<float>>& all, double lr) {
    for (size_t k = 0; k < all.size(); ++k) std::copy(all[k].begin(), all[k].end(), gradients[k].begin());
    optimizer->step(lr);
  }

  Parameters parameters = some_parameters();
  OptimizerState state;
  std::vector<std::vector<float>> gradients;
  std::unique_ptr<Optimizer> optimizer;
};

// One value, as the PyTorch documentation defines the step.
struct Plain {
  double w, m = 0, v = 0;

  void step(const OptimizerOptions& o, double g, double lr, int t) {
    if (o.name == "adamw") {
      w -= lr * o.weight_decay * w;
    } else {
      g += o.weight_decay * w;
    }
    if (o.name == "sgd") {
      if (o.momentum > 0) g = m = t == 1 ? g : o.momentum * m + g;
      w -= lr * g;
      return;
    }
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(o.beta1, t));
    const double v_hat = v / (1 - std::pow(o.beta2, t));
    w -= lr * m_hat / (std::sqrt(v_hat) + o.epsilon);
  }
};

class OptimizerCase : public testing::TestWithParam<OptimizerOptions> {};

TEST_P(OptimizerCase, FollowsTheDefinitionForTenSteps) {
  const OptimizerOptions& options = GetParam();
  const Parameters before = some_parameters();
  Trained trained(options, "idle");
  Parameters& parameters = trained.parameters;
  std::vector<std::vector<Plain>> plain;
  for (const Parameter& p : parameters.list()) {
    plain.emplace_back();
    for (int64_t i = 0; i < p.size; ++i) plain.back().push_back({parameters.data(p)[i]});
  }
  Rng rng(3);
  for (int t = 1; t <= 10; ++t) {
    const auto gradients = random_gradients(parameters, rng);
    const double lr = options.lr / t;
    for (size_t k = 0; k < gradients.size(); ++k) {
      if (parameters.list()[k].name == "idle" || !parameters.list()[k].trained) continue;
      for (size_t i = 0; i < plain[k].size(); ++i) plain[k][i].step(options, gradients[k][i], lr, t);
    }
    trained.step(gradients, lr);
  }
  EXPECT_EQ(trained.optimizer->steps(), 10);
  for (size_t k = 0; k < parameters.list().size(); ++k) {
    const Parameter& p = parameters.list()[k];
    for (int64_t i = 0; i < p.size; ++i) {
      const double want = plain[k][static_cast<size_t>(i)].w;
      ASSERT_NEAR(parameters.data(p)[i], want, 2e-6 * std::max(1.0, std::abs(want))) << p.name << " " << i;
      if (p.name == "idle" || !p.trained) {
        ASSERT_EQ(parameters.data(p)[i], before.data(p)[i]) << p.name;
      }
    }
  }
}

TEST_P(OptimizerCase, StepsDoNotDependOnThreads) {
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    Trained trained(GetParam());
    const Parameters& parameters = trained.parameters;
    Rng rng(4);
    for (int t = 0; t < 3; ++t) trained.step(random_gradients(parameters, rng), 0.1);
    results.emplace_back(parameters.data(), parameters.data() + parameters.size());
  }
  set_num_threads(2);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerCase,
                         testing::Values(OptimizerOptions{.name = "adam"},
                                         OptimizerOptions{.name = "adam", .lr = 0.05, .weight_decay = 5e-4},
                                         OptimizerOptions{.name = "adam", .beta1 = 0, .beta2 = 0.5, .epsilon = 1e-3},
                                         OptimizerOptions{.name = "adamw", .lr = 0.02, .weight_decay = 0.1},
                                         OptimizerOptions{.name = "sgd", .lr = 0.05},
                                         OptimizerOptions{.name = "sgd", .lr = 0.05, .weight_decay = 0.02},
                                         OptimizerOptions{
                                             .name = "sgd", .lr = 0.02, .weight_decay = 0.01, .momentum = 0.9}));

TEST(Optimizer, KeepsOnlyTheStateItNeeds) {
  const Parameters parameters = some_parameters();
  EXPECT_EQ(OptimizerState({.name = "sgd"}, parameters).bytes(), 0);
  EXPECT_EQ(OptimizerState({.name = "sgd", .momentum = 0.9}, parameters).bytes(), parameters.trained_size() * 4);
  EXPECT_EQ(OptimizerState({.name = "adamw"}, parameters).bytes(), parameters.trained_size() * 8);
}

TEST(Optimizer, RefusesWhatMakesNoSense) {
  const double inf = INFINITY;
  for (const OptimizerOptions& o :
       {OptimizerOptions{.name = "adagrad"}, OptimizerOptions{.lr = 0}, OptimizerOptions{.lr = -1},
        OptimizerOptions{.lr = NAN}, OptimizerOptions{.lr = inf}, OptimizerOptions{.weight_decay = -1e-9},
        OptimizerOptions{.weight_decay = NAN}, OptimizerOptions{.weight_decay = inf}, OptimizerOptions{.momentum = 1},
        OptimizerOptions{.momentum = NAN}, OptimizerOptions{.beta1 = 1}, OptimizerOptions{.beta2 = -0.1},
        OptimizerOptions{.epsilon = 0}, OptimizerOptions{.epsilon = NAN}, OptimizerOptions{.epsilon = inf}}) {
    EXPECT_USER_ERROR(check_optimizer(o), "--");
  }
}

TEST(Schedule, Constant) {
  const ScheduleOptions s;
  for (const int epoch : {0, 1, 99, 1000}) EXPECT_EQ(scheduled_lr(s, 0.01, epoch, 100), 0.01);
}

TEST(Schedule, StepDropsAtMultiples) {
  const ScheduleOptions s{.name = "step", .step_size = 3, .gamma = 0.1};
  EXPECT_DOUBLE_EQ(scheduled_lr(s, 1, 2, 100), 1);
  EXPECT_DOUBLE_EQ(scheduled_lr(s, 1, 3, 100), 0.1);
  EXPECT_DOUBLE_EQ(scheduled_lr(s, 1, 5, 100), 0.1);
  EXPECT_NEAR(scheduled_lr(s, 1, 6, 100), 0.01, 1e-17);
  EXPECT_DOUBLE_EQ(scheduled_lr(s, 1, 6, 7), scheduled_lr(s, 1, 6, 70)) << "must not depend on the number of epochs";
}

TEST(Schedule, CosineAndLinearEndWhereTheyShould) {
  for (const char* name : {"cosine", "linear"}) {
    for (const double last : {0.0, 0.25}) {
      const ScheduleOptions s{.name = name, .final_ratio = last};
      EXPECT_DOUBLE_EQ(scheduled_lr(s, 2, 0, 11), 2);
      EXPECT_NEAR(scheduled_lr(s, 2, 5, 11), 2 * (1 + last) / 2, 1e-12);
      EXPECT_NEAR(scheduled_lr(s, 2, 10, 11), 2 * last, 1e-12);
      for (int e = 1; e < 11; ++e) EXPECT_LT(scheduled_lr(s, 2, e, 11), scheduled_lr(s, 2, e - 1, 11));
    }
    EXPECT_DOUBLE_EQ(scheduled_lr({.name = name}, 2, 0, 1), 2) << "a single epoch";
  }
}

TEST(Schedule, WarmupGrowsLinearlyAndNeverGivesZero) {
  for (const char* name : {"constant", "step", "cosine", "linear"}) {
    const ScheduleOptions s{.name = name, .warmup = 4};
    for (int e = 0; e < 4; ++e) EXPECT_DOUBLE_EQ(scheduled_lr(s, 1, e, 20), (e + 1) / 4.0);
    EXPECT_DOUBLE_EQ(scheduled_lr(s, 1, 4, 20), 1);
    for (int e = 0; e < 3; ++e) EXPECT_GT(scheduled_lr({.name = name, .warmup = 50}, 1, e, 3), 0);
  }
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  for (const ScheduleOptions& s :
       {ScheduleOptions{.name = "exponential"}, ScheduleOptions{.warmup = -1}, ScheduleOptions{.step_size = 0},
        ScheduleOptions{.gamma = 0}, ScheduleOptions{.gamma = 1.5}, ScheduleOptions{.gamma = NAN},
        ScheduleOptions{.final_ratio = -0.1}, ScheduleOptions{.final_ratio = 2}, ScheduleOptions{.final_ratio = NAN}}) {
    EXPECT_USER_ERROR(check_schedule(s), "--");
  }
}

}  // namespace
}  // namespace nacre::test
