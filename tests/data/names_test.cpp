// Tests of nodes and classes that are words, labels by node, and features made from the graph.
#include <algorithm>
#include <cmath>

#include "data/fixtures.h"
#include "nacre/data/load.h"
#include "nacre/data/named_lines.h"
#include "nacre/data/native.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using Words = std::vector<std::string>;

class Names : public ::testing::Test {
 protected:
  Dataset load(const std::string& edges, const std::string& labels = "", const std::string& splits = "",
               const std::string& features = "") {
    LoadOptions options;
    if (!labels.empty()) options.labels_file = dir_.write("labels.csv", labels);
    if (!splits.empty()) options.splits_file = dir_.write("splits.csv", splits);
    if (!features.empty()) options.features_file = dir_.write("features.csv", features);
    return load_dataset(dir_.write("g.csv", edges), options);
  }
  TempDir dir_;
};

std::vector<int32_t> labels_of(const Dataset& d) { return {d.labels.begin(), d.labels.end()}; }
std::vector<NodeId> list(const Array<NodeId>& part) { return {part.begin(), part.end()}; }

TEST(NamedLines, FieldsOfEveryKind) {
  const auto fields = [](const std::string& line) { return named_fields(line, separator_of(line), "f", 1); };
  EXPECT_EQ(fields("a b"), (Words{"a", "b"}));
  EXPECT_EQ(fields("  a \t b c "), (Words{"a", "b c"})) << "a tab separates, blanks do not";
  EXPECT_EQ(fields("New York, Bonn"), (Words{"New York", "Bonn"}));
  EXPECT_EQ(fields("\"Smith, J\",x"), (Words{"Smith, J", "x"}));
  EXPECT_EQ(fields("\"a \"\"b\"\"\";c"), (Words{"a \"b\"", "c"}));
  EXPECT_EQ(fields("a,"), (Words{"a", ""}));
  EXPECT_EQ(fields("a,,b"), (Words{"a", "", "b"}));
  EXPECT_USER_ERROR(fields("\"a,b"), "not closed");
}

TEST_F(Names, EdgesBetweenWords) {
  for (const std::string& text : {std::string("alice bob\nbob carol\ncarol alice\n"),
                                  std::string("source,target\nalice,bob\nbob,carol\ncarol,alice\n"),
                                  std::string("# friends\nto;weight;from\nbob;1;alice\ncarol;2;bob\nalice;3;carol\n"),
                                  std::string("alice\tbob\r\nbob\tcarol\r\ncarol\talice")}) {
    for (const std::string& bytes : {text, gzip(text)}) {
      const Dataset d = load(bytes);
      Words names = d.node_names;
      std::sort(names.begin(), names.end());
      EXPECT_EQ(names, (Words{"alice", "bob", "carol"})) << text;
      ASSERT_EQ(d.graph.num_edges(), 3);
      for (int64_t v = 0; v < 3; ++v) {
        const std::string& from = d.node_names[d.graph.col_idx()[d.graph.row_ptr()[v]]];
        const std::string& to = d.node_names[static_cast<size_t>(v)];
        EXPECT_TRUE((from == "alice" && to == "bob") || (from == "bob" && to == "carol") ||
                    (from == "carol" && to == "alice"))
            << from << " " << to;
      }
    }
  }
  EXPECT_TRUE(load("a b 0.5\nb c 2\n").graph.weighted());
  EXPECT_EQ(load("1 2\n2 0\n").node_names, Words()) << "numbers stay numbers";
}

TEST_F(Names, BadEdges) {
  EXPECT_USER_ERROR(load("a b\nb\n"), "g.csv:2: has 1 columns");
  EXPECT_USER_ERROR(load("a b\nb c d\n"), "g.csv:2: has 3 columns");
  EXPECT_USER_ERROR(load("a b x\nb c y\n"), "'x' is not a finite edge weight");
  EXPECT_USER_ERROR(load("paper,cites\n1,2\n"), "neither a node id nor the name of a column");
  EXPECT_USER_ERROR(load("src,dst\na,\n"), "empty name");
  EXPECT_USER_ERROR(load("0 1\n1 x\n"), "--format names");
}

TEST_F(Names, LabelsByNode) {
  const std::string edges = "alice bob\nbob carol\ncarol dave\n";
  for (const char* text :
       {"node,label\ncarol,red\nalice,blue\nbob,red\n", "bob\tred\ncarol\tred\nalice\tblue\ndave\t\n",
        "dave,nan\nalice,blue\nbob,red\ncarol,red\n"}) {
    const Dataset d = load(edges, text);
    EXPECT_EQ(d.class_names, (Words{"blue", "red"}));
    EXPECT_EQ(labels_of(d), (std::vector<int32_t>{0, 1, 1, -1})) << text;
  }
  EXPECT_EQ(labels_of(load("0 1\n1 2\n", "2,7\n0,1\n")), (std::vector<int32_t>{1, -1, 7}));
  EXPECT_EQ(labels_of(load("0 1\n1 2\n", "id;class\n2;1.0\n1;-1\n0;0.0\n")), (std::vector<int32_t>{0, -1, 1}));
  EXPECT_TRUE(load("0 1\n1 2\n", "1 0\n0 1\n1 1\n").multilabel()) << "columns of 0 and 1 are classes of their own";
  EXPECT_EQ(load("0 1\n1 2\n", "cat\ndog\ncat\n").class_names, (Words{"cat", "dog"}));
  const Dataset some = load(edges, "alice,1\nzoe,0\n");
  EXPECT_EQ(labels_of(some), (std::vector<int32_t>{1, -1, -1, -1}));
  EXPECT_NE(some.notes.back().find("'zoe'"), std::string::npos);
}

TEST_F(Names, BadLabels) {
  EXPECT_USER_ERROR(load("0 1\n1 2\n", "node,label\n3,1\n"), "labels.csv:2: '3' is not a node");
  EXPECT_USER_ERROR(load("a b\n", "a,1\na,0\n"), "labels.csv:2: gives the node 'a' a label again");
  EXPECT_USER_ERROR(load("a b\n", "x,1\ny,0\n"), "names no node of the graph");
  EXPECT_USER_ERROR(load("a b\n", "a,1\nb,0,3\n"), "labels.csv:2: has 3 columns");
}

TEST_F(Names, SplitsAndFeaturesByNode) {
  const Dataset d =
      load("a b\nb c\nc a\n", "a,0\nb,1\nc,1\n", "node,split\nc,test\na,train\nb,val\n", "name,x,y\nb,1,2\nc,3,4\n");
  EXPECT_EQ(list(d.splits.train), (std::vector<NodeId>{0}));
  EXPECT_EQ(list(d.splits.val), (std::vector<NodeId>{1}));
  EXPECT_EQ(list(d.splits.test), (std::vector<NodeId>{2}));
  const std::vector<float> x(d.features.data<float>(), d.features.data<float>() + 6);
  EXPECT_EQ(x, (std::vector<float>{0, 0, 1, 2, 3, 4}));
  EXPECT_USER_ERROR(load("a b\n", "", "", "a,1\nb,x\n"), "'x' is not a number");
  EXPECT_USER_ERROR(load("a b\n", "", "", "a,1\nb,1,2\n"), "features.csv:2");
  EXPECT_USER_ERROR(load("a b\n", "", "a,maybe\n"), "'maybe' is not train, val, test or none");
}

TEST_F(Names, NamesStayInNacreFiles) {
  const Dataset d = load("alice bob\nbob carol\n", "alice,red\nbob,blue\n");
  write_native(d, dir_.path("g.nacre"), {});
  const Dataset back = load_dataset(dir_.path("g.nacre"), {});
  EXPECT_EQ(back.node_names, d.node_names);
  EXPECT_EQ(back.class_names, (Words{"blue", "red"}));
  EXPECT_EQ(back.fingerprint(), d.fingerprint());
}

TEST_F(Names, MadeFeatures) {
  LoadOptions options;
  options.features_file = "degree";
  const std::string graph = dir_.write("d.txt", "0 1\n2 1\n3 1\n1 0\n");
  const Dataset degree = load_dataset(graph, options);
  ASSERT_EQ(degree.features.shape(), (Shape{4, 18}));
  const auto at = [&](int64_t v, int64_t j) { return degree.features.data<float>()[v * 18 + j]; };
  EXPECT_FLOAT_EQ(at(1, 0), std::log(4.0F));
  EXPECT_FLOAT_EQ(at(1, 1), std::log(2.0F));
  EXPECT_FLOAT_EQ(at(2, 0), 0);
  EXPECT_EQ(at(2, 2), 1) << "no edge leads to node 2";
  EXPECT_EQ(at(1, 4), 1) << "three do to node 1: two bits";
  EXPECT_EQ(at(1, 2), 0);
  options.features_file = "onehot";
  const Dataset own = load_dataset(graph, options);
  ASSERT_EQ(own.features.shape(), (Shape{4, 4}));
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(own.features.data<float>()[i], i % 5 == 0 ? 1 : 0);
  options.num_nodes = 20'000;
  EXPECT_USER_ERROR(load_dataset(graph, options), "--features learned");
  options.num_nodes = 0;
  options.features_file = "learned";
  EXPECT_FALSE(load_dataset(graph, options).features.defined());
}

}  // namespace
}  // namespace nacre
