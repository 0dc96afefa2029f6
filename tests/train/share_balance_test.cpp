// Tests of the shares that a run chooses: by rules, and by measured and predicted times.
#include "nacre/train/share_balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/fixtures.h"
#include "nacre/train/link_rate.h"
#include "nacre/train/precision_choice.h"
#include "nacre/train/share_report.h"
#include "nacre/train/share_rules.h"
#include "nacre/train/step_features.h"

namespace nacre::test {
namespace {

constexpr double kRowWork = 10;

size_t place_of(const std::string& name) {
  const std::vector<FeatureColumn> columns = step_columns();
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const FeatureColumn& c) { return c.name == name; });
  EXPECT_NE(found, columns.end()) << name;
  return static_cast<size_t>(found - columns.begin());
}

// Returns a report of a part of a graph of 300,000 vertices, on a device that takes `whole` seconds
// for all of them.
PartReport part(double share, double whole) {
  PartReport part;
  part.device = "cpu:1";
  part.vertices = static_cast<int64_t>(300000 * share);
  part.edges = part.vertices * 10;
  part.halo = static_cast<int64_t>(50000 * share * (1 - share));
  part.features.assign(step_columns().size(), 0.0);
  part.features[place_of("rows")] = static_cast<double>(part.vertices);
  part.features[place_of("columns")] = static_cast<double>(part.vertices + part.halo);
  part.features[place_of("nonzeros")] = static_cast<double>(part.edges);
  part.features[place_of(kCountedSeconds)] = share;
  part.kernel_seconds = whole * share;
  part.edge_seconds = part.kernel_seconds / 2;
  part.memory_bytes = static_cast<int64_t>(1e9 * share);
  part.memory_limit = int64_t{1} << 40;
  return part;
}

BalanceSettings long_run() { return {.row_work = kRowWork, .steps_left = 1e6, .cost_seconds = 1}; }

double sum_of(const std::vector<double>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

TEST(ShareBalance, FollowsMeasuredTimes) {
  const ShareChoice found = balance_shares({part(0.5, 1), part(0.5, 3)}, long_run());
  ASSERT_TRUE(found.moves) << found.reason;
  EXPECT_NEAR(found.shares[0], 0.75, 0.02);
  EXPECT_NEAR(sum_of(found.shares), 1, 1e-9);
  EXPECT_NEAR(found.then[0].compute, found.then[1].compute, 0.05 * found.then[0].compute);
  EXPECT_NEAR(found.now[1].compute, 1.5, 1e-6);
  EXPECT_NEAR(found.row_work, 10, 1e-6) << "a row takes as long as the ten edges of a vertex";
}

TEST(ShareBalance, StaysWhereLittleIsGained) {
  EXPECT_FALSE(balance_shares({part(0.5, 1), part(0.5, 1.02)}, long_run()).moves);
  BalanceSettings short_run = long_run();
  short_run.steps_left = 1;
  short_run.cost_seconds = 10;
  EXPECT_FALSE(balance_shares({part(0.5, 1), part(0.5, 3)}, short_run).moves);
  short_run.steps_left = 1000;
  EXPECT_TRUE(balance_shares({part(0.5, 1), part(0.5, 3)}, short_run).moves);
}

PartReport gpu_part(double share, double whole, double bf16_part) {
  PartReport report = part(share, whole);
  report.device = "cuda:0";
  report.bf16_part = bf16_part;
  return report;
}

TEST(PrecisionChoice, RanksThatTakeLongestSwitchAndGetMore) {
  // Both ranks take equally long. One of them can switch to bf16, and then takes over work of the
  // other.
  const PrecisionChoice one = choose_precisions({part(0.5, 1), gpu_part(0.5, 1, 0.5)}, long_run());
  EXPECT_EQ(one.bf16, (std::vector<char>{0, 1})) << one.reason;
  ASSERT_TRUE(one.shares.moves);
  EXPECT_NEAR(one.shares.shares[1], 2.0 / 3, 0.02);
  EXPECT_NE(one.reason.find("a rank switches to bf16"), std::string::npos) << one.reason;
  const PrecisionChoice both = choose_precisions({gpu_part(0.5, 1, 0.6), gpu_part(0.5, 1, 0.6)}, long_run());
  EXPECT_EQ(both.bf16, (std::vector<char>{1, 1})) << both.reason;
  EXPECT_FALSE(both.shares.moves) << "both become faster alike";
  // A rank that waits keeps its precision if the shares are given.
  BalanceSettings fixed = long_run();
  fixed.moves_shares = false;
  const PrecisionChoice slow = choose_precisions({gpu_part(0.5, 0.6, 0.5), gpu_part(0.5, 1.8, 0.5)}, fixed);
  EXPECT_EQ(slow.bf16, (std::vector<char>{0, 1})) << slow.reason;
  EXPECT_FALSE(slow.shares.moves);
  EXPECT_NEAR(slow.shares.now[1].compute, 0.45, 1e-6);
}

TEST(PrecisionChoice, NothingSwitchesWhereLittleIsGained) {
  const auto none = [](const PrecisionChoice& choice, const std::string& says) {
    EXPECT_FALSE(choice.switches());
    EXPECT_NE(choice.reason.find(says), std::string::npos) << choice.reason;
  };
  none(choose_precisions({part(0.5, 1), part(0.5, 1)}, long_run()), "cannot switch");
  none(choose_precisions({gpu_part(0.5, 1, 0.98), gpu_part(0.5, 1, 0.98)}, long_run()), "not worth the change");
  BalanceSettings fixed = long_run();
  fixed.moves_shares = false;
  none(choose_precisions({part(0.5, 2), gpu_part(0.5, 1, 0.5)}, fixed), "cannot switch");
  BalanceSettings short_run = long_run();
  short_run.steps_left = 1;
  short_run.cost_seconds = 10;
  none(choose_precisions({gpu_part(0.5, 1, 0.5), gpu_part(0.5, 1, 0.5)}, short_run), "more than the rest of the run");
  PartReport untimed = part(0.5, 1);
  untimed.kernel_seconds = 0;
  none(choose_precisions({untimed, gpu_part(0.5, 1, 0.5)}, long_run()), "has not been timed");
}

TEST(ShareBalance, KeepsWithinTheMemoryOfEachDevice) {
  std::vector<PartReport> parts = {part(0.5, 1), part(0.5, 9)};
  parts[0].memory_limit = 650000000;  // the device could compute 0.9 of the graph, but holds 0.65
  const ShareChoice found = balance_shares(parts, long_run());
  ASSERT_TRUE(found.moves);
  EXPECT_LE(found.shares[0], 0.65);
  EXPECT_GT(found.shares[0], 0.6);
}

TEST(ShareBalance, CommunicationIsPartOfTheTime) {
  std::vector<PartReport> parts = {part(0.5, 1), part(0.5, 1)};
  const ShareChoice even = balance_shares(parts, long_run());
  EXPECT_FALSE(even.moves);
  // One of two equal devices takes as long for moving rows as for its kernels.
  parts[1].received_bytes = 1000000;
  parts[1].exchange_seconds = 0.5;
  const ShareChoice found = balance_shares(parts, long_run());
  ASSERT_TRUE(found.moves) << found.reason;
  EXPECT_GT(found.shares[0], 0.6);
  EXPECT_GT(found.then[1].communicate, 0);
}

TEST(ShareBalance, LeavesOutADeviceThatOnlySlowsTheOthersDown) {
  std::vector<PartReport> parts = {part(0.9, 1), part(0.1, 20)};
  for (PartReport& p : parts) {
    p.received_bytes = 1000000;
    p.exchange_seconds = 2;
  }
  const ShareChoice found = balance_shares(parts, long_run());
  ASSERT_TRUE(found.moves);
  EXPECT_EQ(found.shares[1], 0);
  ASSERT_EQ(found.left_out.size(), 1U);
  EXPECT_NE(found.left_out[0].find("left out"), std::string::npos);
}

TEST(ShareBalance, SmallPartsMoveLess) {
  std::vector<PartReport> parts = {part(0.5, 1), part(0.5, 3)};
  for (PartReport& p : parts) {
    p.vertices = 1000;
    p.edges = 10000;
    p.halo = 100;
  }
  const ShareChoice found = balance_shares(parts, long_run());
  ASSERT_TRUE(found.moves);
  EXPECT_GT(found.shares[0], 0.55);
  EXPECT_LT(found.shares[0], 0.65);
}

TEST(ShareBalance, SaysWhyTimesCannotBeCompared) {
  std::vector<PartReport> parts = {part(0.5, 1), part(0.5, 3)};
  parts[1].vertices = parts[1].edges = 0;
  EXPECT_FALSE(balance_shares(parts, long_run()).moves);
  EXPECT_NE(balance_shares(parts, long_run()).reason.find("no nodes"), std::string::npos);
  std::vector<PartReport> fresh = {part(0.5, 1), part(0.5, 3)};
  for (PartReport& p : fresh) p.kernel_seconds = p.edge_seconds = 0;
  EXPECT_NE(balance_shares(fresh, long_run()).reason.find("not been timed"), std::string::npos);
}

// Before the first step, the stored models of the devices are enough to predict times.
TEST(ShareBalance, FirstSharesFollowModels) {
  std::vector<PartReport> parts = {part(0.5, 1), part(0.5, 1)};
  double factor = 1;
  for (PartReport& p : parts) {
    p.kernel_seconds = p.edge_seconds = 0;
    std::vector<TimedStep> steps;
    for (int i = 1; i <= 20; ++i) {
      TimedStep step;
      step.features = part(0.05 * i, 1).features;
      step.seconds = factor * 0.05 * i;
      step.group = i;
      steps.push_back(step);
    }
    p.model = PerformanceModel::fitted(step_columns(), steps, "linear", StepTarget::ratio);
    factor = 4;
  }
  const ShareChoice found = balance_shares(parts, long_run());
  ASSERT_TRUE(found.moves) << found.reason;
  EXPECT_NEAR(found.shares[0], 0.8, 0.03);
}

TEST(StepFeatures, ScaleWithThePart) {
  std::vector<double> features(step_columns().size(), 1.0);
  features[place_of("rows")] = 100;
  features[place_of("columns")] = 150;
  features[place_of("halo_columns")] = 1.0 / 3;
  features[place_of("nonzeros")] = 1000;
  features[place_of("start_seconds")] = 2;
  features[place_of(kCountedSeconds)] = 10;
  const std::vector<double> larger = scaled_features(features, {.rows = 2, .halo = 0.5});
  EXPECT_NEAR(larger[place_of("rows")], 200, 1e-9);
  EXPECT_NEAR(larger[place_of("columns")], 225, 1e-9);
  EXPECT_NEAR(larger[place_of("halo_columns")], 25.0 / 225, 1e-9);
  EXPECT_NEAR(larger[place_of("nonzeros")], 2000, 1e-9);
  EXPECT_NEAR(larger[place_of("counted_edges")], 2, 1e-9);
  EXPECT_NEAR(larger[place_of("counted_constant")], 1, 1e-9);
  EXPECT_NEAR(counted_seconds(larger), 18, 1e-9) << "starting kernels takes as long as before";
  features[place_of("density")] = 1000.0 / (100 * 150);
  const std::vector<double> same = scaled_features(features, {});
  for (size_t f = 0; f < features.size(); ++f) EXPECT_NEAR(same[f], features[f], 1e-9) << step_columns()[f].name;
}

TEST(ShareRules, FollowWhatIsKnownOfTheDevices) {
  const std::vector<RankDevice> devices = {{"cuda:0@32", "cuda:0@32", 0}, {"cpu:4", "cpu", 4}};
  std::vector<DeviceSpeed> speeds = {{32, 128, 1500, 8e12, 7e12}, {4, 4, 3000, 4e11, 0}};
  EXPECT_EQ(shares_by_rule("uniform", devices, speeds).shares, (std::vector<double>{1, 1}));
  EXPECT_EQ(shares_by_rule("cores", devices, speeds).shares, (std::vector<double>{32, 4}));
  EXPECT_EQ(shares_by_rule("frequency", devices, speeds).shares, (std::vector<double>{1500, 3000}));
  EXPECT_EQ(shares_by_rule("auto", devices, speeds).shares, (std::vector<double>{128, 4}));
  EXPECT_EQ(shares_by_rule("flops", devices, speeds).shares, (std::vector<double>{8000, 400})) << "peaks";
  speeds[1].measured_flops = 3e11;
  EXPECT_EQ(shares_by_rule("flops", devices, speeds).shares, (std::vector<double>{7000, 300})) << "both are measured";
  EXPECT_NE(shares_by_rule("frequency", devices, speeds).reason.find("cpu:4 66.7 % (3000 MHz)"), std::string::npos);
  speeds[0].megahertz = 0;
  EXPECT_USER_ERROR(shares_by_rule("frequency", devices, speeds), "the clock of cuda:0@32 is not known");
}

// Before any step has been measured, rows take as long as the measured link says.
TEST(ShareReport, PricesRowsByTheMeasuredLink) {
  const std::vector<RankDevice> devices = {{.text = "cpu:1", .device = "cpu"},
                                           {.text = "cuda:0@8", .device = "cuda:0@8"}};
  RankFigures figures;
  figures.planned_received = 1000000;
  const auto seconds_with = [&](double link) {
    const std::string part =
        nlohmann::json({{"features", {1.0}}, {"model", ""}, {"bf16_part", 0}, {"link", link}}).dump();
    std::vector<double> seconds;
    for (const PartReport& report : part_reports(devices, {figures, figures}, {figures, figures}, {part, part}))
      seconds.push_back(report.exchange_seconds);
    return seconds;
  };
  EXPECT_EQ(seconds_with(1e9), (std::vector<double>{1e-3, 1e-3}));
  EXPECT_EQ(seconds_with(4e9), (std::vector<double>{2.5e-4, 2.5e-4}));
  const std::vector<double> usual = seconds_with(0);
  EXPECT_DOUBLE_EQ(usual[0], 1e6 / usual_link_rate(false));
  EXPECT_DOUBLE_EQ(usual[1], 1e6 / usual_link_rate(true));
  // Measured steps say more than a link that was measured before them.
  figures.times = {.count = 2, .steps = 1, .communication = 0.5, .reduction = 0.1};
  EXPECT_EQ(seconds_with(1e9), (std::vector<double>{0.2, 0.2}));
}

}  // namespace
}  // namespace nacre::test
