// Checks on graphs of every kind that partitions hold every edge once, in the order of sort_keys.h,
// that no gTask breaks a restriction, and that none is closed too early.
#include "nacre/gtask/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "gtask/cases.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/gtask/sort_orders.h"
#include "support/big_graphs.h"

namespace nacre::test {
namespace {

using Values = std::vector<std::vector<int64_t>>;

void expect_every_edge_once(const GTasks& g) {
  const int64_t edges = g.graph.num_edges();
  ASSERT_EQ(g.num_edges(), edges);
  ASSERT_EQ(g.dst.size(), edges);
  ASSERT_TRUE(g.edge.empty() || g.edge.size() == edges);
  std::vector<bool> seen(static_cast<size_t>(edges), false);
  for (int64_t i = 0; i < edges; ++i) {
    const int64_t e = g.edge_at(i);
    ASSERT_LT(e, edges);
    ASSERT_FALSE(seen[static_cast<size_t>(e)]);
    seen[static_cast<size_t>(e)] = true;
    ASSERT_EQ(g.src[i], g.graph.col_idx()[e]);
    ASSERT_EQ(g.dst[i], g.graph.edge_dst()[e]);
    ASSERT_EQ(g.type_at(i), g.graph.typed() ? g.graph.edge_type()[e] : 0);
  }
  ASSERT_EQ(g.task_ptr[0], 0);
  ASSERT_EQ(g.task_ptr[g.num_tasks()], edges);
  for (int64_t t = 0; t < g.num_tasks(); ++t) ASSERT_LT(g.task_ptr[t], g.task_ptr[t + 1]);
}

// Returns the number of distinct values among the entries [from, to).
int64_t distinct(const GTasks& g, const std::vector<int64_t>& values, int64_t from, int64_t to) {
  std::set<int64_t> set;
  for (int64_t i = from; i < to; ++i) set.insert(values[static_cast<size_t>(g.edge_at(i))]);
  return static_cast<int64_t>(set.size());
}

bool fits(const GTasks& g, const Values& values, int64_t from, int64_t to) {
  for (size_t a = 0; a < values.size(); ++a) {
    const Restriction& entry = g.table.at(kEntries[a].location, kEntries[a].attribute);
    if (entry.kind == Restriction::exact && distinct(g, values[a], from, to) > entry.k) return false;
  }
  return true;
}

void expect_greedy(const GTasks& g, const Values& values) {
  for (int64_t t = 0; t < g.num_tasks(); ++t) {
    EXPECT_TRUE(fits(g, values, g.task_ptr[t], g.task_ptr[t + 1])) << "gTask " << t << " breaks a restriction";
    if (t + 1 < g.num_tasks()) {
      EXPECT_FALSE(fits(g, values, g.task_ptr[t], g.task_ptr[t + 1] + 1)) << "gTask " << t << " closed too early";
    }
  }
}

// Returns the order of sort_keys.h, computed by comparing all keys of an edge at once.
std::vector<int64_t> sorted_edges(const Graph& graph, const PartitionTable& table, const Values& values) {
  std::vector<std::vector<int64_t>> keys(static_cast<size_t>(graph.num_edges()));
  for (const SortKey& key : sort_keys(table)) {
    size_t a = 0;
    while (kEntries[a].location != key.location || kEntries[a].attribute != key.attribute) ++a;
    for (size_t e = 0; e < keys.size(); ++e) keys[e].push_back(values[a][e] / key.block);
  }
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)]; });
  return order;
}

TEST(Partition, KeepsItsPromisesOnAllGraphsAndTables) {
  const std::vector<PartitionTable> tables = test_tables(11, 60);
  for (const GraphCase& c : test_graphs(21)) {
    const Values values = all_values(c.graph);
    for (const PartitionTable& table : tables) {
      SCOPED_TRACE(c.name + " by '" + table.text() + "'");
      const GTasks g = partition(c.graph, table);
      EXPECT_EQ(g.table, table);
      expect_every_edge_once(g);
      if (testing::Test::HasFatalFailure()) return;
      expect_greedy(g, values);
      const std::vector<int64_t> order = sorted_edges(c.graph, table, values);
      for (int64_t i = 0; i < g.num_edges(); ++i) ASSERT_EQ(g.edge_at(i), order[static_cast<size_t>(i)]);
    }
  }
}

TEST(Partition, OwnedEndsAreNeverSplit) {
  int64_t owned = 0;
  const std::vector<PartitionTable> tables = test_tables(12, 300);
  for (const GraphCase& c : test_graphs(22)) {
    for (const PartitionTable& table : tables) {
      const GTasks g = partition(c.graph, table);
      for (const Location end : {Location::src, Location::dst}) {
        if (!table.owns(end)) continue;
        ++owned;
        const Array<NodeId>& vertex = end == Location::src ? g.src : g.dst;
        std::vector<int64_t> task_of(static_cast<size_t>(c.graph.num_src()), -1);
        for (int64_t t = 0; t < g.num_tasks(); ++t) {
          for (int64_t i = g.task_ptr[t]; i < g.task_ptr[t + 1]; ++i) {
            int64_t& task = task_of[vertex[i]];
            ASSERT_TRUE(task == -1 || task == t) << c.name << " by '" << table.text() << "', vertex " << vertex[i];
            task = t;
          }
        }
      }
    }
  }
  EXPECT_GT(owned, 1000);
}

TEST(Partition, SharedSortOrdersChangeNothing) {
  const std::vector<PartitionTable> tables = test_tables(13, 40);
  for (const GraphCase& c : test_graphs(23)) {
    const auto orders = make_sort_orders(c.graph);
    for (int round = 0; round < 2; ++round) {
      const int64_t sorts = orders->sorts();
      for (const PartitionTable& table : tables) {
        const GTasks alone = partition(c.graph, table);
        const GTasks shared = partition(c.graph, table, orders.get());
        SCOPED_TRACE(c.name + " by '" + table.text() + "'");
        EXPECT_TRUE(std::ranges::equal(alone.task_ptr, shared.task_ptr));
        EXPECT_TRUE(std::ranges::equal(alone.edge, shared.edge));
        EXPECT_TRUE(std::ranges::equal(alone.src, shared.src));
        EXPECT_TRUE(std::ranges::equal(alone.dst, shared.dst));
      }
      if (round == 1) {
        EXPECT_EQ(orders->sorts(), sorts) << "sorted again what it had";
      }
    }
  }
  const auto orders = make_sort_orders(random_graphs(1)[0].graph);
  EXPECT_THROW(partition(random_graphs(1)[1].graph, {}, orders.get()), InternalError);
}

TEST(Partition, TablesShareSorts) {
  const Graph graph = typed_weighted_graph({.vertices = 50, .edges = 400, .hub_edges = 10});
  const auto orders = make_sort_orders(graph);
  const auto sorts_after = [&](const char* text) {
    partition(graph, PartitionTable::parse(text), orders.get());
    return orders->sorts();
  };
  // In-CSR and out-CSC order exist already.
  for (const char* text : {"", "dst-id=1", "dst-id=1,edge-id=32", "edge-id=1", "edge-id=64", "dst-id=64", "src-id=64",
                           "src-id=1,dst-id=8", "src-id=64,dst-id=1"}) {
    EXPECT_EQ(sorts_after(text), 0) << text;
  }
  EXPECT_EQ(sorts_after("edge-type=1"), 1);
  EXPECT_EQ(sorts_after("dst-id=1,edge-type=1"), 1);
  EXPECT_EQ(sorts_after("dst-id=64,edge-type=1"), 1);
  EXPECT_EQ(sorts_after("edge-type=1,edge-id=9"), 1);
  EXPECT_EQ(sorts_after("src-id=64,edge-type=1"), 2);
  EXPECT_EQ(sorts_after("src-id=256,edge-type=1"), 2);
  EXPECT_EQ(sorts_after("dst-degree=1"), 3);
  EXPECT_EQ(sorts_after("dst-degree=min,dst-id=8"), 3);
  EXPECT_EQ(sorts_after("src-id=8,dst-id=8"), 5);
}

TEST(Partition, InCsrTablesCopyNothing) {
  const Graph graph = typed_weighted_graph({.vertices = 50, .edges = 400, .hub_edges = 10});
  for (const char* text : {"", "dst-id=1", "dst-id=1,edge-id=32", "edge-id=1", "edge-id=64", "dst-id=64"}) {
    const GTasks g = partition(graph, PartitionTable::parse(text));
    EXPECT_TRUE(g.edge.empty()) << text;
    EXPECT_EQ(g.src.data(), graph.col_idx().data()) << text;
    EXPECT_EQ(g.dst.data(), graph.edge_dst().data()) << text;
    EXPECT_EQ(g.type.data(), graph.edge_type().data()) << text;
    EXPECT_EQ(g.bytes(), 8 * (g.num_tasks() + 1)) << text;
  }
  const int64_t edges = graph.num_edges();
  const GTasks by_src = partition(graph, PartitionTable::parse("src-id=4"));
  EXPECT_EQ(by_src.edge.data(), graph.out().edge_id.data());
  EXPECT_EQ(by_src.bytes(), 8 * (by_src.num_tasks() + 1) + 6 * edges);
  const GTasks by_type = partition(graph, PartitionTable::parse("edge-type=1"));
  EXPECT_EQ(by_type.bytes(), 8 * (by_type.num_tasks() + 1) + 14 * edges);
}

int64_t count_tasks(const Graph& graph, const char* text) {
  return partition(graph, PartitionTable::parse(text)).num_tasks();
}

TEST(Partition, FamiliarPlansHaveTheirNumberOfTasks) {
  const Graph graph = typed_weighted_graph({.vertices = 300, .edges = 3000, .hub_edges = 500, .types = 5});
  const int64_t edges = graph.num_edges();
  std::set<int64_t> degrees;
  std::set<std::pair<int64_t, int>> dst_types;
  int64_t rows = 0;
  int64_t pieces = 0;
  for (int64_t v = 0; v < graph.num_dst(); ++v) {
    const int64_t degree = graph.in_degree(v);
    rows += degree > 0;
    pieces += (degree + 31) / 32;
    if (degree > 0) degrees.insert(degree);
    for (int64_t e = graph.row_ptr()[v]; e < graph.row_ptr()[v + 1]; ++e) dst_types.insert({v, graph.edge_type()[e]});
  }
  EXPECT_EQ(count_tasks(graph, ""), 1);
  EXPECT_EQ(count_tasks(graph, "dst-id=1"), rows);
  EXPECT_EQ(count_tasks(graph, "dst-id=16,dst-degree=min"), (rows + 15) / 16);
  EXPECT_EQ(count_tasks(graph, "edge-id=1"), edges);
  EXPECT_EQ(count_tasks(graph, "edge-id=64"), (edges + 63) / 64);
  EXPECT_EQ(count_tasks(graph, "dst-id=1,edge-id=32"), pieces);
  EXPECT_EQ(count_tasks(graph, "dst-degree=1"), static_cast<int64_t>(degrees.size()));
  EXPECT_EQ(count_tasks(graph, "edge-type=1"), 4);
  EXPECT_EQ(count_tasks(graph, "dst-id=1,edge-type=1"), static_cast<int64_t>(dst_types.size()));
}

TEST(Partition, MinimumSortsDestinationsByDegree) {
  const Graph graph = typed_weighted_graph({.vertices = 300, .edges = 2000, .hub_edges = 300});
  const GTasks g = partition(graph, PartitionTable::parse("dst-id=16,dst-degree=min"));
  for (int64_t i = 1; i < g.num_edges(); ++i) {
    const int64_t before = graph.in_degree(g.dst[i - 1]);
    const int64_t now = graph.in_degree(g.dst[i]);
    ASSERT_TRUE(before < now || (before == now && g.dst[i - 1] <= g.dst[i])) << i;
  }
}

TEST(Partition, TwoDimensionsAreTiles) {
  // A full 64 × 64 matrix is cut exactly into its 16 × 16 tiles.
  EdgeList list;
  list.num_nodes = 64;
  for (NodeId s = 0; s < 64; ++s) {
    for (NodeId d = 0; d < 64; ++d) {
      list.src.push_back(s);
      list.dst.push_back(d);
    }
  }
  const GTasks g = partition(build_graph(list, "full"), PartitionTable::parse("src-id=16,dst-id=16"));
  ASSERT_EQ(g.num_tasks(), 16);
  for (int64_t t = 0; t < 16; ++t) {
    ASSERT_EQ(g.task_ptr[t + 1] - g.task_ptr[t], 256);
    for (int64_t i = g.task_ptr[t]; i < g.task_ptr[t + 1]; ++i) {
      EXPECT_EQ(g.src[i] / 16, t % 4);
      EXPECT_EQ(g.dst[i] / 16, t / 4);
    }
  }
}

TEST(Partition, GraphsWithoutEdgesHaveNoTasks) {
  EdgeList list;
  list.num_nodes = 5;
  for (const Graph& graph : {Graph(), build_graph(list, "none")}) {
    for (const PartitionTable& table : test_tables(14, 20)) {
      const GTasks g = partition(graph, table);
      EXPECT_EQ(g.num_tasks(), 0) << table.text();
      EXPECT_EQ(g.task_ptr.size(), 1);
      EXPECT_EQ(g.task_ptr[0], 0);
      EXPECT_EQ(g.num_edges(), 0);
    }
  }
}

TEST(Partition, UntypedGraphsHaveOneType) {
  for (const GraphCase& c : random_graphs(7)) {
    if (c.graph.typed() || c.graph.num_edges() == 0) continue;
    EXPECT_EQ(count_tasks(c.graph, "edge-type=1"), 1) << c.name;
    EXPECT_EQ(count_tasks(c.graph, "dst-id=2,edge-type=1"), count_tasks(c.graph, "dst-id=2")) << c.name;
  }
}

TEST(Partition, SortsKeysOfSeveralDigits) {
  const Graph graph = typed_weighted_graph({.vertices = 5000, .edges = 300000, .hub_edges = 90000, .types = 600});
  std::vector<int64_t> out_degree(static_cast<size_t>(graph.num_src()), 0);
  for (const NodeId s : graph.col_idx()) ++out_degree[s];
  for (const char* text : {"src-id=3,dst-id=4", "src-id=2,dst-degree=min", "dst-id=8,src-degree=min", "edge-type=1",
                           "src-id=8,edge-type=9", "dst-degree=1,src-degree=1,edge-type=1"}) {
    const GTasks g = partition(graph, PartitionTable::parse(text));
    expect_every_edge_once(g);
    const std::vector<SortKey> keys = sort_keys(g.table);
    const auto key_at = [&](int64_t i) {
      std::vector<int64_t> values;
      for (const SortKey& key : keys) {
        const bool at_src = key.location == Location::src;
        int64_t value = at_src ? g.src[i] : g.dst[i];
        if (key.attribute == Attribute::degree) value = at_src ? out_degree[g.src[i]] : graph.in_degree(g.dst[i]);
        if (key.attribute == Attribute::type) value = g.type_at(i);
        values.push_back(value / key.block);
      }
      values.push_back(g.edge_at(i));  // ties keep in-CSR order
      return values;
    };
    for (int64_t i = 1; i < g.num_edges(); ++i) ASSERT_LT(key_at(i - 1), key_at(i)) << text << ", entry " << i;
  }
}

TEST(Partition, IsTheSameOnAnyNumberOfThreads) {
  // The graph is large enough for several chunks of the sort.
  const Graph graph = typed_weighted_graph({.vertices = 30000, .edges = 600000, .hub_edges = 100000, .types = 40});
  for (const char* text : {"src-id=64,dst-id=64", "src-id=64,edge-type=1", "dst-id=16,dst-degree=min",
                           "src-degree=2,dst-degree=3,edge-id=100", "dst-id=64"}) {
    const PartitionTable table = PartitionTable::parse(text);
    set_num_threads(1);
    const GTasks one = partition(graph, table);
    set_num_threads(4);
    const GTasks four = partition(graph, table);
    set_num_threads(2);
    EXPECT_TRUE(std::ranges::equal(one.task_ptr, four.task_ptr)) << text;
    EXPECT_TRUE(std::ranges::equal(one.edge, four.edge)) << text;
    EXPECT_TRUE(std::ranges::equal(one.src, four.src)) << text;
    EXPECT_TRUE(std::ranges::equal(one.dst, four.dst)) << text;
    expect_every_edge_once(four);
  }
}

}  // namespace
}  // namespace nacre::test
