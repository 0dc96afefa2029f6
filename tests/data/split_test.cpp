// Tests of drawn splits: every labelled node is drawn at most once, the shares are those asked for,
// and the result is the same on any number of threads.
#include "nacre/data/split.h"

#include <map>
#include <set>

#include "data/fixtures.h"
#include "nacre/base/parallel.h"
#include "nacre/data/load.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

// Returns a path of nodes. The class is node % 4 in the first half and 3 in the rest; every tenth
// node has no label.
Dataset path_of(int64_t nodes) {
  EdgeList edges;
  edges.num_nodes = nodes;
  std::vector<int32_t> labels;
  for (int64_t v = 0; v < nodes; ++v) {
    if (v > 0) {
      edges.src.push_back(static_cast<NodeId>(v - 1));
      edges.dst.push_back(static_cast<NodeId>(v));
    }
    labels.push_back(v % 10 == 0 ? -1 : v < nodes / 2 ? static_cast<int32_t>(v % 4) : 3);
  }
  Dataset data;
  data.graph = build_graph(std::move(edges), "test");
  data.labels = std::move(labels);
  data.num_classes = 4;
  return data;
}

std::vector<NodeId> list(const Array<NodeId>& part) { return {part.begin(), part.end()}; }

std::map<int32_t, int64_t> by_class(const Dataset& d, const Array<NodeId>& part) {
  std::map<int32_t, int64_t> counts;
  for (const NodeId v : part) ++counts[d.labels[v]];
  return counts;
}

TEST(Split, RandomSharesOfTheLabelledNodes) {
  Dataset d = path_of(1000);
  draw_split("random:0.5/0.25/0.25", 3, d);
  EXPECT_EQ(d.splits.train.size(), 450);
  EXPECT_EQ(d.splits.val.size() + d.splits.test.size(), 450);
  validate(d, "test");  // checks for overlapping parts and unlabelled nodes
  std::set<NodeId> all;
  for (const auto* part : {&d.splits.train, &d.splits.val, &d.splits.test}) all.insert(part->begin(), part->end());
  EXPECT_EQ(all.size(), 900U);
  // The training nodes are not simply the first ones: of 450 drawn from 900, about half lie in the
  // first half.
  const auto early = std::count_if(d.splits.train.begin(), d.splits.train.end(), [](NodeId v) { return v < 500; });
  EXPECT_NEAR(static_cast<double>(early), 225, 60);
  draw_split("random:0.1/0/0.2", 3, d);
  EXPECT_EQ(d.splits.train.size(), 90);
  EXPECT_EQ(d.splits.val.size(), 0);
  EXPECT_EQ(d.splits.test.size(), 180);
}

TEST(Split, DependsOnTheSeedAlone) {
  const int threads = num_threads();
  Dataset a = path_of(50'000), b = a, c = a;
  draw_split("random:0.6/0.2/0.2", 7, a);
  set_num_threads(1);
  draw_split("random:0.6/0.2/0.2", 7, b);
  draw_split("random:0.6/0.2/0.2", 8, c);
  set_num_threads(threads);
  EXPECT_EQ(list(a.splits.train), list(b.splits.train));
  EXPECT_EQ(list(a.splits.test), list(b.splits.test));
  EXPECT_NE(list(a.splits.train), list(c.splits.train));
}

TEST(Split, StratifiedKeepsTheSharesOfEveryClass) {
  Dataset d = path_of(1000);
  draw_split("stratified:0.6/0.2/0.2", 0, d);
  validate(d, "test");
  std::map<int32_t, int64_t> all;
  for (const int32_t label : d.labels) ++all[label];
  const auto train = by_class(d, d.splits.train), val = by_class(d, d.splits.val), test = by_class(d, d.splits.test);
  for (const int32_t k : {0, 1, 2, 3}) {
    EXPECT_NEAR(static_cast<double>(train.at(k)), 0.6 * static_cast<double>(all.at(k)), 0.51);
    EXPECT_NEAR(static_cast<double>(val.at(k)), 0.2 * static_cast<double>(all.at(k)), 1.01);
    EXPECT_EQ(train.at(k) + val.at(k) + test.at(k), all.at(k));
  }
}

TEST(Split, PerClassNumbers) {
  Dataset d = path_of(1000);
  draw_split("per-class:20/100/200", 1, d);
  validate(d, "test");
  for (const auto& [label, count] : by_class(d, d.splits.train)) EXPECT_EQ(count, 20) << label;
  EXPECT_EQ(d.splits.train.size(), 80);
  EXPECT_EQ(d.splits.val.size(), 100);
  EXPECT_EQ(d.splits.test.size(), 200);
  EXPECT_USER_ERROR(draw_split("per-class:20/500/1000", 1, d), "only 820 labelled nodes remain");
}

TEST(Split, SaysWhatIsWrong) {
  Dataset d = path_of(20);
  for (const char* text : {"", "random", "random:", "random:0.6/0.2", "random:0.6/0.2/0.2/0", "random:a/b/c",
                           "kfold:1/2/3", "random:nan/0/0", "0.6/0.2/0.2"}) {
    EXPECT_USER_ERROR(parse_split(text), "--split");
  }
  EXPECT_USER_ERROR(parse_split("random:60/20/20"), "between 0 and 1");
  EXPECT_USER_ERROR(parse_split("random:0.6/0.3/0.2"), "more than 1");
  EXPECT_USER_ERROR(parse_split("random:0/0.5/0.5"), "no nodes to train on");
  EXPECT_USER_ERROR(parse_split("per-class:2.5/1/1"), "whole numbers");
  EXPECT_USER_ERROR(draw_split("random:0.001/0.1/0.1", 0, d), "leaves none of the 18 labelled nodes");
  d.labels = {};
  EXPECT_USER_ERROR(draw_split("random:0.6/0.2/0.2", 0, d), "no labels");
  d.targets = Tensor::zeros(DType::u8, {20, 4});
  EXPECT_USER_ERROR(draw_split("stratified:0.6/0.2/0.2", 0, d), "several classes at once");
  draw_split("random:0.6/0.2/0.2", 0, d);
  EXPECT_EQ(d.splits.train.size(), 12);
}

TEST(Split, TakesTheOptionsOfTheLoader) {
  const TempDir dir;
  LoadOptions options;
  options.labels_file = dir.write("y.txt", "0\n1\n0\n1\n-1\n");
  options.split = "random:0.5/0.25/0.25";
  options.ignore_edge_weights = true;
  const Dataset d = load_dataset(dir.write("g.txt", "0 1 0.5\n1 2 2\n3 4 1\n"), options);
  EXPECT_EQ(d.splits.train.size(), 2);
  EXPECT_FALSE(d.graph.weighted());
  EXPECT_EQ(d.graph.num_edges(), 3);
  options.splits_file = dir.write("s.txt", "train\nval\ntest\nnone\nnone\n");
  EXPECT_USER_ERROR(load_dataset(dir.path("g.txt"), options), "give one of the two");
}

}  // namespace
}  // namespace nacre
