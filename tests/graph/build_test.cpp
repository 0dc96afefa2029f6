// Compares build_graph() with a plain sort, and tests what it refuses.
#include <gtest/gtest.h>

#include "graph/edges.h"
#include "nacre/base/error.h"
#include "nacre/base/parallel.h"

namespace nacre::test {
namespace {

TEST(BuildGraph, SortsByDestinationSourceAndInputOrder) {
  for (const EdgeList& list : all_lists()) {
    const Graph graph = build_graph(list, "test");
    ASSERT_EQ(graph.num_nodes(), list.num_nodes);
    ASSERT_EQ(graph.num_dst(), list.num_nodes);
    ASSERT_EQ(graph.num_edges(), static_cast<int64_t>(list.src.size()));
    EXPECT_EQ(graph.num_edge_types(), list.num_types);
    EXPECT_TRUE(same_edges(edges_of(graph), sorted_edges(list)));
    EXPECT_EQ(graph.row_ptr()[0], 0);
    EXPECT_EQ(graph.row_ptr()[graph.num_dst()], graph.num_edges());
  }
}

TEST(BuildGraph, IsTheSameOnAnyNumberOfThreads) {
  const EdgeList list = random_list({70000, 1200000, true, true, true, 9});
  set_num_threads(1);
  const Graph one = build_graph(list, "test");
  set_num_threads(4);
  const Graph four = build_graph(list, "test");
  set_num_threads(2);
  EXPECT_TRUE(same_edges(edges_of(one), edges_of(four)));
  EXPECT_EQ(one.fingerprint(), four.fingerprint());
  EXPECT_TRUE(std::equal(one.out().edge_id.begin(), one.out().edge_id.end(), four.out().edge_id.begin()));
}

TEST(BuildGraph, RefusesVerticesOutOfRange) {
  for (const bool source : {true, false}) {
    EdgeList list = random_list({.nodes = 5});
    (source ? list.src : list.dst)[17] = 5;
    try {
      build_graph(list, "edges.txt");
      ADD_FAILURE() << "accepted";
    } catch (const UserError& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.rfind("edges.txt: ", 0), 0U) << what;
      EXPECT_NE(what.find("node 5"), std::string::npos) << what;
    }
  }
  EdgeList none;
  EXPECT_EQ(build_graph(none, "empty").num_nodes(), 0);
  none.src = none.dst = {0};
  EXPECT_THROW(build_graph(none, "no vertices"), UserError);
}

TEST(BuildGraph, RefusesColumnsThatDiffer) {
  const EdgeList good = random_list({.weighted = true, .typed = true});
  for (int column = 0; column < 4; ++column) {
    EdgeList list = good;
    if (column == 0) list.src.pop_back();
    if (column == 1) list.dst.pop_back();
    if (column == 2) list.weight.pop_back();
    if (column == 3) list.type.pop_back();
    EXPECT_THROW(build_graph(list, "test"), InternalError) << column;
  }
}

TEST(BuildGraph, RefusesTypesOutOfRange) {
  EdgeList list = random_list({.typed = true});
  list.type[3] = 6;
  EXPECT_THROW(build_graph(list, "test"), UserError);
}

}  // namespace
}  // namespace nacre::test
