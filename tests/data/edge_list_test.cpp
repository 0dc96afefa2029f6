#include "nacre/data/edge_list.h"

#include "data/fixtures.h"
#include "nacre/base/parallel.h"
#include "nacre/base/philox.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

Dataset load(const std::string& text, const LoadOptions& options = {}) {
  return read_edge_list(in_memory(text, "g.txt"), options);
}

template <class T>
std::vector<T> as_vector(const Array<T>& a) {
  return {a.begin(), a.end()};
}

const char* const kPlain = "0 1\n1 2\n2 0\n0 3\n";

TEST(EdgeList, SpellingsOfOneGraph) {
  const uint64_t expected = load(kPlain).graph.fingerprint();
  for (const char* text : {
           "0\t1\n1\t2\n2\t0\n0\t3",
           "0,1\n1,2\n2,0\n0,3\n",
           "0;1\r\n1;2\r\n2;0\r\n0;3\r\n",
           "# Nodes: 4\n% konect\n\n0 1\n\n1 2\n   \n# inside\n2 0\n0 3\n\n\n",
           "  0   1  \n\t1\t \t2\n2 , 0\n0 ,3\n",
           "\xEF\xBB\xBF"
           "0 1\n1 2\n2 0\n0 3\n",
           "src,dst\n0,1\n1,2\n2,0\n0,3\n",
           "\"source\" \"target\"\n0 1\n1 2\n2 0\n0 3\n",
           "# comment\nFromNodeId\tToNodeId\n0\t1\n1\t2\n2\t0\n0\t3\n",
           "dst,src\n1,0\n2,1\n0,2\n3,0\n",
           "time,src,dst,label\n9,0,1,x\n9,1,2,y\n9,2,0,z\n9,0,3,zz\n",
           "0000 01\n1 2\n2 0\n0 3\n",
       }) {
    EXPECT_EQ(load(text).graph.fingerprint(), expected) << text;
    EXPECT_EQ(load(gzip(text)).graph.fingerprint(), expected) << text;
  }
  // A gzip file may have several members one after the other, and padding.
  EXPECT_EQ(
      load(gzip("0 1\n1 ") + gzip("2\n2 0\n") + gzip("") + gzip("0 3\n") + std::string(512, '\0')).graph.fingerprint(),
      expected);
}

TEST(EdgeList, WeightsAndTypes) {
  const Dataset d = load("0 1 0.5\n1 0 -2e3\n1 1 1e-320\n");
  EXPECT_EQ(as_vector(d.graph.edge_weight()), (std::vector<float>{-2000, 0.5F, 0}));
  EXPECT_EQ(d.notes.size(), 1u);
  const Dataset typed = load("type;weight;src;dst\n3;1.5;0;1\n0;2.5;1;0\n");
  EXPECT_EQ(as_vector(typed.graph.edge_type()), (std::vector<uint16_t>{0, 3}));
  EXPECT_EQ(as_vector(typed.graph.edge_weight()), (std::vector<float>{2.5F, 1.5F}));
  EXPECT_EQ(typed.graph.num_edge_types(), 4);
  EXPECT_EQ(load("src dst time\n0 1 9\n").notes[0], "columns that were not used: 'time'");
}

TEST(EdgeList, ErrorsNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"0 1\n1 x\n", "g.txt:2: 'x' is not a node id"},
      {"0 1\n# c\n\n-1 2\n", "g.txt:4: '-1' is a negative node id"},
      {"0 1\n1 4294967295\n", "g.txt:2: '4294967295' is beyond"},
      {"0 1\n1 99999999999999999999999999\n", "g.txt:2: '99999999999999999999999999' is beyond"},
      {"0 1\n1.0 2\n", "g.txt:2: '1.0' is not a node id"},
      {"0 1\n1\n", "g.txt:2: does not have 2 columns"},
      {"0 1\n1 2 3\n", "g.txt:2: does not have 2 columns"},
      {"0 1 1\n1 2\n", "g.txt:2: does not have 3 columns"},
      {"0 1\n1,,2\n", "g.txt:2: '' is not a node id"},
      {"0,1\n1,2,\n", "g.txt:2: '2' is not a node id"},
      {"0 1 nan\n", "g.txt:1: 'nan' is not a finite edge weight"},
      {"0 1 1\n0 1 inf\n", "g.txt:2: 'inf' is not a finite"},
      {"0 1 1\n0 1 1e39\n", "g.txt:2: '1e39' is not a finite"},
      {"0 1 abc\n", "g.txt:1: 'abc' is not a finite"},
      {"src dst type\n0 1 65535\n", "g.txt:2: '65535' is not an edge type"},
      {"src dst type\n0 1 -1\n", "g.txt:2: '-1' is not an edge type"},
      {"0\n", "g.txt:1: has 1 column"},
      {"0 1 2 3\n", "g.txt:1: has 4 columns"},
      {"hello world\n0 1\n", "g.txt:1: 'hello' is neither"},
      {"src,source\n0 1\n", "g.txt:1: two columns"},
      {"%%MatrixMarket matrix\n3 3 1\n1 2 1\n", "Matrix Market"},
  };
  for (const auto& one : cases) {
    EXPECT_USER_ERROR(load(one.first), one.second);
    EXPECT_USER_ERROR(load(gzip(one.first)), one.second);
  }
  EXPECT_USER_ERROR(load(std::string("0 1\n0 \0001\n", 9)), "g.txt:2: '?");
}

TEST(EdgeList, NoEdges) {
  for (const char* text : {"", "\n", "# only\n# comments", "src,dst\n"}) {
    EXPECT_USER_ERROR(load(text), "holds no edges");
    LoadOptions options;
    options.num_nodes = 5;
    EXPECT_EQ(load(text, options).num_nodes(), 5);
  }
}

TEST(EdgeList, VertexCount) {
  LoadOptions options;
  options.num_nodes = 10;
  EXPECT_EQ(load(kPlain, options).num_nodes(), 10);
  options.num_nodes = 3;
  EXPECT_USER_ERROR(load(kPlain, options), "names node 3");
  EXPECT_TRUE(load(kPlain).notes.empty());
  const Dataset sparse = load("5 100\n7 5\n");
  EXPECT_EQ(sparse.num_nodes(), 101);
  ASSERT_EQ(sparse.notes.size(), 1u);
  EXPECT_NE(sparse.notes[0].find("98 of 101 node ids are not used"), std::string::npos);
  const MemoryLimit limit;
  EXPECT_USER_ERROR(load("0 4294967294\n"), "renumber");
}

// The text is long enough for several pieces and blocks, and the error is in the last line.
TEST(EdgeList, ManyBlocks) {
  constexpr int count = 200'000;
  constexpr NodeId nodes = 100'003;
  const std::string padding(90, ' ');
  std::string text;
  EdgeList expected;
  expected.num_nodes = nodes;
  for (int i = 0; i < count; ++i) {
    const PhiloxBlock r = philox(1, 0, static_cast<uint64_t>(i));
    expected.src.push_back(r[0] % nodes);
    expected.dst.push_back(r[1] % nodes);
    text += std::to_string(expected.src.back()) + padding.substr(0, 1 + r[2] % 90) +
            std::to_string(expected.dst.back()) + padding + "\n";
    if (i % 1000 == 0) text += "# a comment line\n";
  }
  ASSERT_GT(text.size(), size_t{17} << 20);
  const uint64_t fingerprint = build_graph(std::move(expected), "expected").fingerprint();
  LoadOptions options;
  options.num_nodes = nodes;
  const int before = num_threads();
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    EXPECT_EQ(load(text, options).graph.fingerprint(), fingerprint);
  }
  set_num_threads(before);
  EXPECT_EQ(load(gzip(text), options).graph.fingerprint(), fingerprint);
  const std::string line = std::to_string(count + count / 1000 + 1);
  EXPECT_USER_ERROR(load(text + "0 oops"), "g.txt:" + line + ": 'oops'");
  EXPECT_USER_ERROR(load(gzip(text + "0 oops")), "g.txt:" + line + ": 'oops'");
}

TEST(EdgeList, EndlessLines) {
  EXPECT_USER_ERROR(load(std::string(size_t{17} << 20, '1')), "line is longer");
  EXPECT_USER_ERROR(load(gzip(std::string(size_t{17} << 20, ' '))), "line is longer");
}

TEST(EdgeList, TruncatedAnywhere) {
  const std::string text = "# head\nsrc,dst,weight,type\n0,1,0.5,1\n12,2,1e3,0\n";
  for_each_truncation(
      text, [](const std::string& cut, size_t n) { survives([&] { load(cut); }, "cut at " + std::to_string(n)); });
  for_each_truncation(gzip(text), [](const std::string& cut, size_t n) {
    EXPECT_FALSE(survives([&] { load(cut); }, "cut at " + std::to_string(n))) << n;
  });
}

TEST(EdgeList, DamagedAnywhere) {
  const std::string text = "# head\nsrc,dst,weight,type\n0,1,0.5,1\n12,2,1e3,0\n";
  for_each_flip(text, [](const std::string& damaged, size_t at) {
    survives([&] { load(damaged); }, "byte " + std::to_string(at));
  });
  const uint64_t fingerprint = load(text).graph.fingerprint();
  for_each_flip(gzip(text), [&](const std::string& damaged, size_t at) {
    // Only in the ten bytes of the gzip header are there bits that do not matter.
    survives([&] { EXPECT_TRUE(load(damaged).graph.fingerprint() == fingerprint || at < 10) << at; },
             "byte " + std::to_string(at));
  });
}

}  // namespace
}  // namespace nacre
