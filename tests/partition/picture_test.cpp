#include "nacre/partition/picture.h"

#include <gtest/gtest.h>

namespace nacre::test {
namespace {

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

Graph path() {
  EdgeList list;
  list.num_nodes = 4;
  list.src = {0, 1, 2};
  list.dst = {1, 2, 3};
  return build_graph(list, "path");
}

TEST(PartitionPicture, ShowsPartsAndTheEdgesBetweenThem) {
  const std::vector<double> shares = {1, 1};
  const PartitionStats stats = partition_stats(path(), {2, std::vector<int32_t>{0, 0, 1, 1}}, shares, {});
  const std::string svg = parts_svg(stats, "a<b> & c");
  EXPECT_EQ(svg.rfind("<svg ", 0), 0U);
  EXPECT_EQ(count(svg, "a&lt;b&gt; &amp; c"), 2U);
  EXPECT_EQ(count(svg, ">part "), 2U);
  EXPECT_EQ(count(svg, "fill-opacity"), 3U);  // one edge in each part, and one between them
  EXPECT_EQ(count(svg, "1 of 3 edges are cut (33.33 %)"), 1U);
  EXPECT_EQ(count(svg, "<g "), count(svg, "</g>"));
}

TEST(PartitionPicture, EmptyGraphsAndManyParts) {
  const std::vector<double> one = {1};
  EXPECT_EQ(count(parts_svg(partition_stats(Graph(), {1, {}}, one, {}), "empty"), "</svg>"), 1U);
  const std::vector<double> many(1000, 1);
  const std::string svg =
      parts_svg(partition_stats(path(), {1000, std::vector<int32_t>{0, 1, 2, 999}}, many, {}), "many");
  EXPECT_EQ(count(svg, ">part "), 0U);
  EXPECT_EQ(count(svg, "nan"), 0U);
}

}  // namespace
}  // namespace nacre::test
