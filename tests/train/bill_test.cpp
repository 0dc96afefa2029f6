// The bill before anything is read, and what is refused because of it.
#include "nacre/train/bill.h"

#include <gtest/gtest.h>

#include "nacre/base/error.h"
#include "nacre/train/estimate.h"

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
  const Bill gcn = bill_before_reading(config_of("gcn"), papers, true);
  const Bill sage = bill_before_reading(config_of("sage"), papers, true);
  EXPECT_GT(phase(gcn, "reading"), papers.graph.nodes * 128 * 4) << "the features alone";
  EXPECT_GT(phase(gcn, "preparing"), phase(sage, "preparing") + papers.graph.edges * 4) << "a graph with self loops";
  EXPECT_GT(phase(gcn, "training"), papers.held + papers.graph.edges * 12) << "the order by source";
  EXPECT_THROW(require_fit(gcn, {64 * kGiB, "free memory"}), UserError);
}

TEST(Bill, CountsParametersWithTheirCopies) {
  const DataSizes cora = data_sizes("twin:cora", {}).value();
  RunConfig config = config_of("gcn");
  config.model.hidden = 500'000;
  const double values = 4.0 * 500'000 * (1433 + 7);
  const Bill adam = bill_before_reading(config, cora, true);
  EXPECT_GT(static_cast<double>(adam.bytes()), 5 * values) << "values, gradients, best values and two moments";
  config.optimizer.name = "sgd";
  const Bill sgd = bill_before_reading(config, cora, true);
  EXPECT_NEAR(static_cast<double>(adam.bytes() - sgd.bytes()), 2 * values, 0.01 * values);
  const Bill predicting = bill_before_reading(config, cora, false);
  EXPECT_LT(static_cast<double>(predicting.bytes()), 1.2 * values);
}

TEST(Bill, RelationsMustBeAPossibleNumber) {
  const DataSizes cora = data_sizes("twin:cora", {}).value();
  RunConfig config = config_of("rgcn");
  config.relations = 0;
  EXPECT_THROW(bill_before_reading(config, cora, true), UserError);
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

TEST(Estimate, GrowsWithTheGraph) {
  const RunConfig config = config_of("gcn");
  const int64_t small = estimate_bill(config, data_sizes("twin:arxiv", {}).value()).bytes() - program_bytes();
  const int64_t large = estimate_bill(config, data_sizes("twin:arxiv@4", {}).value()).bytes() - program_bytes();
  EXPECT_NEAR(static_cast<double>(large) / static_cast<double>(small), 4, 0.4);
}

}  // namespace
}  // namespace nacre
