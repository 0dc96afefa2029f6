// gTasks and patterns made on a device are those of the host, bit for bit. Without a GPU
// (NACRE_TEST_DEVICE=cuda), these tests are skipped.
#include "nacre/engine/gpu/partition.h"

#include <gtest/gtest.h>

#include "gtask/cases.h"
#include "support/big_graphs.h"
#include "support/run_plan.h"

namespace nacre::test {
namespace {

class GpuPartitionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!testing_gpu()) GTEST_SKIP() << "NACRE_TEST_DEVICE is not cuda";
    DevicePlugin* plugin = device_plugin();
    ASSERT_NE(plugin, nullptr);
    loader_ = GpuCompiler::open(*plugin, plugin->open(0, 0));
    partitioner_ = std::make_unique<GpuPartitioner>(loader_);
  }

  void expect_same(const Graph& graph, const PartitionTable& table);

  std::shared_ptr<GpuCompiler> loader_;
  std::unique_ptr<GpuPartitioner> partitioner_;
};

template <class T>
std::vector<T> list(const Array<T>& a) {
  return {a.begin(), a.end()};
}

void expect_same_pattern(const AttributePattern& got, const AttributePattern& want, const char* name) {
  EXPECT_EQ(got.unique_total, want.unique_total) << name;
  EXPECT_EQ(got.unique_max, want.unique_max) << name;
  EXPECT_EQ(got.unique_mean, want.unique_mean) << name;
  EXPECT_EQ(got.duplication, want.duplication) << name;
  EXPECT_EQ(got.histogram, want.histogram) << name;
}

void expect_same_patterns(const PatternReport& got, const PatternReport& want) {
  const Patterns &a = got.patterns, &b = want.patterns;
  EXPECT_EQ(a.tasks, b.tasks);
  EXPECT_EQ(a.edges, b.edges);
  expect_same_pattern(a.edge_id, b.edge_id, "edge-id");
  expect_same_pattern(a.src_id, b.src_id, "src-id");
  expect_same_pattern(a.dst_id, b.dst_id, "dst-id");
  expect_same_pattern(a.edge_type, b.edge_type, "edge-type");
  expect_same_pattern(a.src_degree, b.src_degree, "src-degree");
  expect_same_pattern(a.dst_degree, b.dst_degree, "dst-degree");
  expect_same_pattern(a.src_type_pair, b.src_type_pair, "(src, type)");
  expect_same_pattern(a.dst_type_pair, b.dst_type_pair, "(dst, type)");
  EXPECT_EQ(a.volume_change, b.volume_change);
  EXPECT_EQ(a.underfill, b.underfill);
  EXPECT_EQ(a.overfill, b.overfill);
  EXPECT_EQ(a.frequent, b.frequent);
  EXPECT_EQ(a.underfill_edges, b.underfill_edges);
  EXPECT_EQ(a.overfill_edges, b.overfill_edges);
  EXPECT_EQ(a.frequent_edges, b.frequent_edges);
  EXPECT_EQ(got.outlier, want.outlier);
}

void GpuPartitionTest::expect_same(const Graph& graph, const PartitionTable& table) {
  const GTasks want = partition(graph, table);
  const GTasks got = partitioner_->partition(graph, table);
  EXPECT_EQ(list(got.task_ptr), list(want.task_ptr));
  EXPECT_EQ(list(got.edge), list(want.edge));
  EXPECT_EQ(list(got.src), list(want.src));
  EXPECT_EQ(list(got.dst), list(want.dst));
  EXPECT_EQ(list(got.type), list(want.type));
  expect_same_patterns(partitioner_->find_patterns(got), find_patterns(want));
}

TEST_F(GpuPartitionTest, EveryTableOfEveryGraph) {
  for (const GraphCase& c : test_graphs(31)) {
    for (const PartitionTable& table : test_tables(32, 12)) {
      SCOPED_TRACE(c.name + " " + table.text());
      expect_same(c.graph, table);
      if (HasFailure()) return;
    }
  }
}

TEST_F(GpuPartitionTest, LargerGraph) {
  const Graph graph = typed_weighted_graph({.vertices = 700, .edges = 6000, .hub_edges = 650, .seed = 8});
  for (const PartitionTable& table : test_tables(33, 6)) {
    SCOPED_TRACE(table.text());
    expect_same(graph, table);
  }
  // These tables need more bits than a word has, and windows longer than the places of a thread.
  for (const char* text : {"edge-type=2,src-degree=3,dst-degree=4,src-id=5,dst-id=6", "src-id=300,dst-id=min",
                           "src-id=64,dst-id=64", "dst-id=64", "edge-type=1,edge-id=64"}) {
    SCOPED_TRACE(text);
    expect_same(graph, PartitionTable::parse(text));
  }
}

// Tests patterns of gTasks that were made elsewhere, and of one graph after another.
TEST_F(GpuPartitionTest, PatternsOfOthers) {
  const Graph graph = typed_weighted_graph({.vertices = 90, .edges = 900, .hub_edges = 80, .seed = 9});
  const GTasks tasks = partition(graph, PartitionTable::parse("src-id=4,edge-type=1"));
  expect_same(test_graphs(31).front().graph, PartitionTable::parse("dst-id=3"));
  expect_same_patterns(partitioner_->find_patterns(tasks), find_patterns(tasks));
  partitioner_->partition(graph, PartitionTable::parse("src-id=1"));
  expect_same_patterns(partitioner_->find_patterns(tasks), find_patterns(tasks));
}

TEST_F(GpuPartitionTest, BehindTheViews) {
  const Graph graph = typed_weighted_graph({.vertices = 90, .edges = 900, .hub_edges = 80, .seed = 9});
  int calls = 0;
  GraphViews views;
  views.partition_with([&, make = partition_on(loader_)](const Graph& g, const PartitionTable& table) {
    ++calls;
    return make(g, table);
  });
  const PartitionTable table = PartitionTable::parse("src-id=4,edge-type=1");
  EXPECT_EQ(list(views.tasks(graph, table, true)->edge), list(partition(graph, table).edge));
  EXPECT_EQ(calls, 1);
  views.tasks(graph, PartitionTable::parse("src-id=3"), false);
  EXPECT_EQ(calls, 1) << "these gTasks are cut on the host";
}

}  // namespace
}  // namespace nacre::test
