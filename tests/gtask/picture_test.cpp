#include "nacre/gtask/picture.h"

#include <gtest/gtest.h>

#include <set>

#include "nacre/base/error.h"
#include "support/big_graphs.h"

namespace nacre::test {
namespace {

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

Graph small_graph() {
  EdgeList list;
  list.num_nodes = 6;
  list.src = {0, 1, 3, 5, 5};
  list.dst = {1, 1, 2, 4, 4};
  return build_graph(list, "small");
}

TEST(Picture, DrawsEveryEdgeInItsPlace) {
  const GTasks g = partition(small_graph(), PartitionTable::parse("dst-id=1"));
  const std::string svg = partition_svg(g, {.vertices = 6});
  EXPECT_EQ(svg.rfind("<svg ", 0), 0U);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  // Three gTasks have three colours. The two edges into 1 are neighbours, and the two from 5 to 4
  // are the same dot.
  EXPECT_EQ(count(svg, "<path "), 3U);
  EXPECT_EQ(count(svg, "M0 1h2v1h-2z"), 1U);
  EXPECT_EQ(count(svg, "M3 2h1v1h-1z"), 1U);
  EXPECT_EQ(count(svg, "M5 4h1v1h-1z"), 1U);
  EXPECT_NE(svg.find("dst-id=1: 3 gTasks, 5 edges; here 0 to 5: 3 gTasks, 5 edges"), std::string::npos) << svg;
}

TEST(Picture, ShowsTheSquareAskedFor) {
  const GTasks g = partition(small_graph(), PartitionTable::parse("dst-id=1"));
  const std::string svg = partition_svg(g, {.vertices = 2, .first = 2});
  EXPECT_EQ(count(svg, "<path "), 1U);
  EXPECT_EQ(count(svg, "M1 0h1v1h-1z"), 1U);
  EXPECT_EQ(count(partition_svg(g, {.vertices = 10, .first = 100}), "<path "), 0U);
  EXPECT_EQ(count(partition_svg(partition(Graph(), {}), {}), "<path "), 0U);
}

TEST(Picture, EscapesTheTitle) {
  const GTasks g = partition(small_graph(), {});
  const std::string svg = partition_svg(g, {.title = "a<b> & \"c\"\n"});
  EXPECT_EQ(count(svg, "a&lt;b&gt; &amp; &quot;c&quot; "), 2U);
  EXPECT_EQ(svg.find("a<b>"), std::string::npos);
  EXPECT_NE(svg.find("no restriction"), std::string::npos);
}

TEST(Picture, HasManyColoursAndStaysSmall) {
  EdgeList list;
  list.num_nodes = 200;
  for (NodeId s = 0; s < 200; ++s) {
    for (NodeId d = 0; d < 200; ++d) {
      list.src.push_back(s);
      list.dst.push_back(d);
    }
  }
  const std::string svg = partition_svg(partition(build_graph(list, "full"), PartitionTable::parse("edge-id=1")), {});
  std::set<std::string> colours;
  for (size_t at = svg.find("<path fill=\""); at != std::string::npos; at = svg.find("<path fill=\"", at + 1)) {
    colours.insert(svg.substr(at + 12, 7));
  }
  EXPECT_EQ(colours.size(), 24U);
  EXPECT_LT(svg.size(), 1000000U);
}

TEST(Picture, RefusesSquaresThatAreNone) {
  const GTasks g = partition(small_graph(), {});
  EXPECT_THROW(partition_svg(g, {.vertices = 0}), UserError);
  EXPECT_THROW(partition_svg(g, {.vertices = 1000000}), UserError);
  EXPECT_THROW(partition_svg(g, {.first = -1}), UserError);
}

}  // namespace
}  // namespace nacre::test
