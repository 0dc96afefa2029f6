// Tests the bill before anything is read, and what is refused because of it.
#include "nacre/train/bill.h"

#include <gtest/gtest.h>

#include <limits>

#include "nacre/base/error.h"
#include "nacre/train/estimate.h"
#include "nacre/train/trainer.h"

namespace nacre {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

RunConfig config_of(const std::string& model) {
  RunConfig config;
  config.device = "cpu";
  config.model.model = model;
  return config;
}

int64_t phase(const Bill& bill, const std::string& name) {
  for (const MemoryPhase& p : bill.phases) {
    if (p.name == name) return p.bytes();
  }
  return -1;
}

TEST(Bill, TheLargestPhaseIsTheFigure) {
  const Bill bill{{{"reading", {{"a", 5}, {"b", 6}}}, {"training", {{"c", 10}}}}};
  EXPECT_EQ(bill.bytes(), 11);
  EXPECT_EQ(bill.largest().name, "reading");
  EXPECT_NE(bill.text().find("in all, at most"), std::string::npos);
  require_fit(bill, {11, "--memory-limit"});
  try {
    require_fit(bill, {10, "--memory-limit"});
    FAIL() << "it does not fit";
  } catch (const UserError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("reading needs 6 B for b"), std::string::npos) << what;
    EXPECT_NE(what.find("--memory-limit"), std::string::npos) << what;
  }
}

TEST(Bill, KnowsTwinsBeforeTheyAreMade) {
  const DataSizes papers = data_sizes("twin:papers100M", {}).value();
  EXPECT_EQ(papers.graph.nodes, 111'059'956);
  const Bill gcn = bill_before_reading(config_of("gcn"), papers, {});
  const Bill sage = bill_before_reading(config_of("sage"), papers, {});
  EXPECT_GT(phase(gcn, "reading"), papers.graph.nodes * 128 * 4) << "the features alone";
  EXPECT_GT(phase(gcn, "preparing"), phase(sage, "preparing") + papers.graph.edges * 4) << "a graph with self loops";
  EXPECT_GT(phase(gcn, "training"), papers.held + papers.graph.edges * 12) << "the order by source";
  EXPECT_THROW(require_fit(gcn, {64 * kGiB, "free memory"}), UserError);
}

TEST(Bill, CountsTheEvaluationOfMiniBatches) {
  const DataSizes papers = data_sizes("twin:papers100M", {}).value();
  RunConfig config = config_of("sage");
  EXPECT_EQ(phase(bill_before_reading(config, papers, {}), "evaluating"), -1);
  config.mode = "minibatch";
  const Bill bill = bill_before_reading(config, papers, {});
  const int64_t values = papers.graph.nodes * (static_cast<int64_t>(config.model.hidden) + papers.classes) * 4;
  EXPECT_EQ(phase(bill, "evaluating"), phase(bill, "training") + values);
  const Bill estimate = estimate_bill(config, papers);
  EXPECT_GT(phase(estimate, "training"), phase(bill, "training")) << "batches";
  EXPECT_EQ(phase(estimate, "evaluating"), phase(bill, "evaluating"));
}

TEST(Bill, CountsParametersWithTheirCopies) {
  const DataSizes cora = data_sizes("twin:cora", {}).value();
  RunConfig config = config_of("gcn");
  config.model.hidden = 500'000;
  const double values = 4.0 * 500'000 * (1433 + 7);
  const Bill adam = bill_before_reading(config, cora, {});
  EXPECT_GT(static_cast<double>(adam.bytes()), 5 * values) << "values, gradients, best values and two moments";
  config.optimizer.name = "sgd";
  const Bill sgd = bill_before_reading(config, cora, {});
  EXPECT_NEAR(static_cast<double>(adam.bytes() - sgd.bytes()), 2 * values, 0.01 * values);
  const Bill predicting = bill_before_reading(config, cora, {.trains = false});
  EXPECT_LT(static_cast<double>(predicting.bytes()), 1.2 * values);
}

TEST(Bill, RelationsMustBeAPossibleNumber) {
  const DataSizes cora = data_sizes("twin:cora", {}).value();
  RunConfig config = config_of("rgcn");
  config.relations = 0;
  EXPECT_THROW(bill_before_reading(config, cora, {}), UserError);
}

// Each update that weights may lack takes one more copy of the parameters, so the largest int would
// overflow every sum.
TEST(Bill, StalenessMustBeAPossibleNumber) {
  const DataSizes arxiv = data_sizes("twin:arxiv", {}).value();
  RunConfig config = config_of("sage");
  config.mode = "minibatch";
  for (const int staleness : {-1, kMostStaleness + 1, std::numeric_limits<int>::max()}) {
    config.staleness = staleness;
    const auto expect_refused = [&](const auto& check) {
      try {
        check();
        ADD_FAILURE() << staleness << " was accepted";
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("--staleness"), std::string::npos) << error.what();
      }
    };
    expect_refused([&] { bill_before_reading(config, arxiv, {}); });
    expect_refused([&] { estimate_bill(config, arxiv); });
    expect_refused([&] { check_training(config); });
  }
  int64_t before = 0;
  for (const int staleness : {0, 1, kMostStaleness}) {
    config.staleness = staleness;
    check_training(config);
    const int64_t training = phase(estimate_bill(config, arxiv), "training");
    EXPECT_GT(training, before) << staleness;
    before = training;
  }
}

TEST(Bill, SizesAreNotKnownOfWhatIsNotThere) {
  EXPECT_FALSE(data_sizes("no/such/file.npz", {}).has_value());
  EXPECT_FALSE(data_sizes("twin:nosuch", {}).has_value());
}

TEST(Bill, UndirectedGraphsTakeMore) {
  LoadOptions options;
  const DataSizes once = data_sizes("twin:arxiv", options).value();
  options.undirected = true;
  const DataSizes both = data_sizes("twin:arxiv", options).value();
  EXPECT_EQ(both.graph.edges, 2 * once.graph.edges);
  EXPECT_GT(both.reading, once.held + once.graph.edges * 20);
}

TEST(Bill, LearnedRowsAreParameters) {
  RunConfig config = config_of("sage");
  config.load.features_file = "learned";
  config.model.hidden = 256;
  const DataSizes arxiv = data_sizes("twin:arxiv", config.load).value();
  EXPECT_EQ(arxiv.features, 0);
  const Bill bill = bill_before_reading(config, arxiv, {});
  EXPECT_GT(phase(bill, "training"), 5 * arxiv.graph.nodes * 256 * 4) << "values, gradients, best values, two moments";
}

TEST(Bill, FeaturesMadeFromTheGraphReplaceThoseOfTheData) {
  LoadOptions options;
  const DataSizes own = data_sizes("twin:arxiv", options).value();
  options.features_file = "degree";
  const DataSizes degree = data_sizes("twin:arxiv", options).value();
  EXPECT_EQ(degree.features, 18);
  EXPECT_EQ(own.held - degree.held, own.graph.nodes * (128 - 18) * 4);
  EXPECT_LT(degree.reading, own.held) << "a twin does not make features that are replaced";
  options.features_file = "onehot";
  const DataSizes cora = data_sizes("twin:cora", options).value();
  EXPECT_EQ(cora.features, 2708);
  EXPECT_EQ(cora.feature_bytes, int64_t{2708} * 2708 * 4);
}

TEST(Bill, WeightsThatAreReadComeOnTop) {
  const DataSizes cora = data_sizes("twin:cora", {}).value();
  const Bill plain = bill_before_reading(config_of("gcn"), cora, {});
  EXPECT_EQ(phase(plain, "loading weights"), -1);
  const Bill resumed = bill_before_reading(config_of("gcn"), cora, {.loaded = 1000});
  EXPECT_EQ(phase(resumed, "loading weights"), phase(plain, "training") + 1000);
  const Bill predicting = bill_before_reading(config_of("gcn"), cora, {.trains = false, .loaded = 1000});
  EXPECT_EQ(phase(predicting, "loading weights"), phase(predicting, "predicting") + 1000);
}

TEST(Bill, OfADeviceHasEdgesAndTheLastLayers) {
  const DataSizes arxiv = data_sizes("twin:arxiv", {}).value();
  RunConfig config = config_of("sage");
  config.model.hidden = 256;
  const int64_t f32 = total_bytes(device_before_reading(config, arxiv, true));
  EXPECT_GT(f32, arxiv.graph.edges * 8 + arxiv.graph.nodes * (256 + 40) * 4);
  config.precision = "bf16";
  EXPECT_LT(total_bytes(device_before_reading(config, arxiv, true)), f32);
  config.mode = "minibatch";
  EXPECT_LT(total_bytes(device_before_reading(config, arxiv, true)), f32 / 10) << "nothing but parameters is certain";
  DataSizes folder;
  folder.counted = false;
  EXPECT_TRUE(device_before_reading(config, folder, true).empty());
}

TEST(Estimate, GrowsWithTheGraph) {
  const RunConfig config = config_of("gcn");
  const int64_t small = estimate_bill(config, data_sizes("twin:arxiv", {}).value()).bytes() - program_bytes();
  const int64_t large = estimate_bill(config, data_sizes("twin:arxiv@4", {}).value()).bytes() - program_bytes();
  EXPECT_NEAR(static_cast<double>(large) / static_cast<double>(small), 4, 0.4);
}

}  // namespace
}  // namespace nacre
