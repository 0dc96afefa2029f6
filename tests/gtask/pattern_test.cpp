// Compares what find_patterns() counts in gTasks with plain counts by std::set.
#include "nacre/gtask/pattern.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "gtask/cases.h"
#include "nacre/base/parallel.h"
#include "support/big_graphs.h"

namespace nacre::test {
namespace {

using Value = std::pair<int64_t, int64_t>;
using ValueOf = std::function<Value(int64_t)>;  // value of an entry of the gTasks

AttributePattern plain_pattern(const GTasks& g, const ValueOf& value) {
  AttributePattern p;
  for (int64_t t = 0; t < g.num_tasks(); ++t) {
    std::set<Value> set;
    for (int64_t i = g.task_ptr[t]; i < g.task_ptr[t + 1]; ++i) set.insert(value(i));
    const auto n = static_cast<int64_t>(set.size());
    p.unique_total += n;
    p.unique_max = std::max(p.unique_max, n);
    size_t b = 0;
    while (n >= int64_t{2} << b) ++b;
    if (p.histogram.size() <= b) p.histogram.resize(b + 1, 0);
    ++p.histogram[b];
  }
  if (g.num_tasks() == 0) return p;
  p.unique_mean = static_cast<double>(p.unique_total) / static_cast<double>(g.num_tasks());
  p.duplication = static_cast<double>(g.num_edges()) / static_cast<double>(p.unique_total);
  return p;
}

void expect_same(const AttributePattern& got, const AttributePattern& want, const char* name) {
  EXPECT_EQ(got.unique_total, want.unique_total) << name;
  EXPECT_EQ(got.unique_max, want.unique_max) << name;
  EXPECT_DOUBLE_EQ(got.unique_mean, want.unique_mean) << name;
  EXPECT_DOUBLE_EQ(got.duplication, want.duplication) << name;
  EXPECT_EQ(got.histogram, want.histogram) << name;
}

void expect_counts(const GTasks& g) {
  const Graph& graph = g.graph;
  const Patterns p = find_patterns(g).patterns;
  EXPECT_EQ(p.tasks, g.num_tasks());
  EXPECT_EQ(p.edges, g.num_edges());
  std::vector<int64_t> out_degree(static_cast<size_t>(graph.num_src()), 0);
  for (const NodeId s : graph.col_idx()) ++out_degree[s];
  const auto check = [&](const AttributePattern& got, const char* name, const ValueOf& value) {
    expect_same(got, plain_pattern(g, value), name);
  };
  check(p.edge_id, "edge-id", [&](int64_t i) { return Value{g.edge_at(i), 0}; });
  check(p.src_id, "src-id", [&](int64_t i) { return Value{g.src[i], 0}; });
  check(p.dst_id, "dst-id", [&](int64_t i) { return Value{g.dst[i], 0}; });
  check(p.edge_type, "edge-type", [&](int64_t i) { return Value{g.type_at(i), 0}; });
  check(p.src_degree, "src-degree", [&](int64_t i) { return Value{out_degree[g.src[i]], 0}; });
  check(p.dst_degree, "dst-degree", [&](int64_t i) { return Value{graph.in_degree(g.dst[i]), 0}; });
  check(p.src_type_pair, "(src, type)", [&](int64_t i) { return Value{g.src[i], g.type_at(i)}; });
  check(p.dst_type_pair, "(dst, type)", [&](int64_t i) { return Value{g.dst[i], g.type_at(i)}; });
  const double change =
      p.edges == 0 ? 1 : static_cast<double>(p.dst_id.unique_total) / static_cast<double>(p.src_id.unique_total);
  EXPECT_DOUBLE_EQ(p.volume_change, change);
}

TEST(Patterns, CountsAreExact) {
  const std::vector<PartitionTable> tables = test_tables(31, 15);
  for (const GraphCase& c : test_graphs(32)) {
    for (const PartitionTable& table : tables) {
      SCOPED_TRACE(c.name + " by '" + table.text() + "'");
      expect_counts(partition(c.graph, table));
    }
  }
}

TEST(Patterns, CountsAreExactOnLargerGraphs) {
  // These graphs are so large that several counters share the work. The types of some graphs fit
  // the bits of one word, those of others do not.
  for (const int types : {5, 64, 65, 300}) {
    const Graph graph = typed_weighted_graph({.vertices = 400, .edges = 12000, .hub_edges = 4000, .types = types});
    for (const char* text : {"", "edge-id=1000", "src-id=16,dst-id=16", "dst-id=8", "edge-type=1", "src-id=8"}) {
      SCOPED_TRACE(std::to_string(types) + " types by '" + text + "'");
      expect_counts(partition(graph, PartitionTable::parse(text)));
    }
  }
}

std::vector<Outlier> plain_outliers(const GTasks& g) {
  const bool by_src = !g.table.free(Location::src, Attribute::id);
  const Array<NodeId>& end = by_src ? g.src : g.dst;
  std::map<int64_t, std::set<int64_t>> tasks_of;
  for (int64_t t = 0; t < g.num_tasks(); ++t) {
    for (int64_t i = g.task_ptr[t]; i < g.task_ptr[t + 1]; ++i) tasks_of[end[i]].insert(t);
  }
  const auto values = all_values(g.graph);
  const bool bounded = g.table.at(Location::edge, Attribute::id).kind == Restriction::exact;
  std::vector<Outlier> outliers;
  for (int64_t t = 0; t < g.num_tasks(); ++t) {
    const int64_t edges = g.task_ptr[t + 1] - g.task_ptr[t];
    bool thin = false;
    for (size_t a = 0; a < values.size(); ++a) {
      std::set<int64_t> set;
      for (int64_t i = g.task_ptr[t]; i < g.task_ptr[t + 1]; ++i) {
        set.insert(values[a][static_cast<size_t>(g.edge_at(i))]);
      }
      const Restriction& entry = g.table.at(kEntries[a].location, kEntries[a].attribute);
      thin = thin ||
             (entry.kind == Restriction::exact && static_cast<double>(set.size()) < static_cast<double>(entry.k) / 2);
    }
    int64_t shared = 0;
    for (int64_t i = g.task_ptr[t]; i < g.task_ptr[t + 1]; ++i) shared += tasks_of[end[i]].size() >= 9;
    const double mean = static_cast<double>(g.num_edges()) / static_cast<double>(g.num_tasks());
    Outlier outlier = shared * 2 > edges ? Outlier::frequent : Outlier::none;
    if (thin) outlier = Outlier::underfill;
    if (!bounded && edges >= 64 && static_cast<double>(edges) > 4 * mean) outlier = Outlier::overfill;
    outliers.push_back(outlier);
  }
  return outliers;
}

TEST(Patterns, OutliersFollowTheirDefinition) {
  const Graph graph = typed_weighted_graph({.vertices = 120, .edges = 500, .hub_edges = 300, .types = 12, .seed = 5});
  std::set<Outlier> met;
  for (const PartitionTable& table : test_tables(33, 20)) {
    const GTasks g = partition(graph, table);
    const PatternReport report = find_patterns(g);
    const std::vector<Outlier> want = plain_outliers(g);
    EXPECT_EQ(report.outlier, want) << table.text();
    std::map<Outlier, int64_t> tasks;
    std::map<Outlier, int64_t> edges;
    for (size_t t = 0; t < want.size(); ++t) {
      met.insert(want[t]);
      ++tasks[want[t]];
      edges[want[t]] += g.task_ptr[static_cast<int64_t>(t) + 1] - g.task_ptr[static_cast<int64_t>(t)];
    }
    const Patterns& p = report.patterns;
    EXPECT_EQ(p.underfill, tasks[Outlier::underfill]);
    EXPECT_EQ(p.overfill, tasks[Outlier::overfill]);
    EXPECT_EQ(p.frequent, tasks[Outlier::frequent]);
    EXPECT_EQ(p.underfill_edges, edges[Outlier::underfill]);
    EXPECT_EQ(p.overfill_edges, edges[Outlier::overfill]);
    EXPECT_EQ(p.frequent_edges, edges[Outlier::frequent]);
  }
  EXPECT_EQ(met.size(), 4U) << "the graph does not show every kind";
}

TEST(Patterns, NeighbourGroupingShowsThePapersOutliers) {
  const Graph graph = typed_weighted_graph({.vertices = 200, .edges = 1000, .hub_edges = 3200});
  // The pieces of the hub share it, and the others have fewer than 32 edges.
  const PatternReport report = find_patterns(partition(graph, PartitionTable::parse("dst-id=1,edge-id=32")));
  EXPECT_GE(report.patterns.frequent, 99);
  EXPECT_GT(report.patterns.underfill, 100);
  EXPECT_EQ(report.patterns.overfill, 0);
  // With one gTask per destination, the hub is far above the mean.
  EXPECT_EQ(find_patterns(partition(graph, PartitionTable::parse("dst-id=1"))).patterns.overfill, 1);
}

TEST(Patterns, AreTheSameOnAnyNumberOfThreads) {
  const Graph graph = typed_weighted_graph({.vertices = 500, .edges = 40000, .hub_edges = 5000});
  const GTasks g = partition(graph, PartitionTable::parse("src-id=16,dst-id=16"));
  set_num_threads(1);
  const PatternReport one = find_patterns(g);
  set_num_threads(4);
  const PatternReport four = find_patterns(g);
  set_num_threads(2);
  EXPECT_EQ(one.outlier, four.outlier);
  EXPECT_EQ(one.patterns.src_type_pair.histogram, four.patterns.src_type_pair.histogram);
  EXPECT_EQ(one.patterns.dst_degree.unique_total, four.patterns.dst_degree.unique_total);
  EXPECT_EQ(pattern_text(one.patterns), pattern_text(four.patterns));
}

TEST(Patterns, TextNamesTheFigures) {
  const Graph graph = random_graphs(3)[0].graph;
  const std::string text = pattern_text(find_patterns(partition(graph, PartitionTable::parse("dst-id=1"))).patterns);
  for (const char* word : {"gTasks of 36 edges", "src-id", "dst-id", "(src, type)", "volume", "underfill"}) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  }
  EXPECT_NE(pattern_text(find_patterns(partition(Graph(), {})).patterns).find("0 gTasks of 0 edges"),
            std::string::npos);
}

}  // namespace
}  // namespace nacre::test
