#include "nacre/data/load.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "data/fixtures.h"
#include "nacre/data/info.h"
#include "nacre/data/native.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

TEST(Load, RecognisesByContent) {
  const TempDir dir;
  const Dataset edges = load_dataset(dir.write("noextension", "0 1\n1 2\n"), {});
  EXPECT_EQ(edges.num_nodes(), 3);
  EXPECT_EQ(edges.name, "noextension");
  const Dataset packed = load_dataset(dir.write("g.edges.gz", gzip("0 1\n1 2\n")), {});
  EXPECT_EQ(packed.fingerprint(), edges.fingerprint());
  EXPECT_EQ(packed.name, "g");
  const Dataset npz = load_dataset(dir.write("g.npz", zip({{"edge_index.npy", npy_i64({0, 1, 1, 2}, "(2, 2)")}})), {});
  EXPECT_EQ(npz.fingerprint(), edges.fingerprint());
  write_native(edges, dir.path("x"));
  EXPECT_EQ(load_dataset(dir.path("x"), {}).fingerprint(), edges.fingerprint());
  EXPECT_EQ(load_dataset(dir.path("x"), {}).name, "noextension");
}

TEST(Load, TheFormatCanBeForced) {
  const TempDir dir;
  const std::string path = dir.write("g", "0 1\n");
  for (const auto& [format, message] :
       {std::pair{"npz", "no directory"}, {"nacre", "not a Nacre"}, {"xml", "unknown"}}) {
    LoadOptions options;
    options.format = format;
    EXPECT_USER_ERROR(load_dataset(path, options), message);
  }
}

TEST(Load, Undirected) {
  const TempDir dir;
  LoadOptions options;
  options.undirected = true;
  const Dataset d = load_dataset(dir.write("g", "0 1\n1 0\n1 2\n2 2\n"), options);
  EXPECT_EQ(d.graph.num_edges(), 5);
  ASSERT_EQ(d.notes.size(), 1u);
  EXPECT_EQ(d.notes[0], "made undirected: 4 edges became 5");
}

TEST(Load, Twins) {
  LoadOptions options;
  options.seed = 3;
  const Dataset d = load_dataset("twin:cora", options);
  EXPECT_EQ(d.num_nodes(), 2708);
  EXPECT_EQ(load_dataset("twin:cora", options).fingerprint(), d.fingerprint());
  EXPECT_FALSE(user_error([&] { load_dataset("twin:no-such-thing", options); }).empty());
}

TEST(Load, MissingFilesNameWhatIsNear) {
  const TempDir dir;
  dir.write("reddit_v2.npz", "x");
  dir.write("other.txt", "x");
  EXPECT_USER_ERROR(load_dataset(dir.path("redit_v2.npz"), {}), "nearby: " + dir.path("reddit_v2.npz"));
  EXPECT_USER_ERROR(load_dataset(dir.path("absent/redit.npz"), {}), "does not exist");
  EXPECT_USER_ERROR(load_dataset("cora", {}), "twin:cora");
  EXPECT_USER_ERROR(load_dataset(dir.path("."), {}), "no known layout");
  EXPECT_USER_ERROR(load_dataset(dir.path("."), {}), "reddit_v2.npz");
  EXPECT_USER_ERROR(load_dataset("", {}), "no such file");
}

TEST(Load, StrangersAreNamed) {
  const TempDir dir;
  EXPECT_USER_ERROR(load_dataset(dir.write("a", ""), {}), "is empty");
  EXPECT_USER_ERROR(load_dataset(dir.write("a", "\x89HDF\r\n"), {}), "HDF5");
  EXPECT_USER_ERROR(load_dataset(dir.write("a", npy_i64({1})), {}), "single array");
  EXPECT_USER_ERROR(load_dataset(dir.write("a", std::string("\x01\x02\x00", 3)), {}), "no known format");
  EXPECT_USER_ERROR(load_dataset("/dev/null", {}), "not a regular file");
}

TEST(Load, SideFilesAddButNeverReplace) {
  const TempDir dir;
  LoadOptions options;
  options.labels_file = dir.write("labels", "0\n1\n");
  write_native(load_dataset(dir.write("g", "0 1\n"), {}), dir.path("g.nacre"));
  const Dataset d = load_dataset(dir.path("g.nacre"), options);
  EXPECT_EQ(d.num_classes, 2);
  write_native(d, dir.path("g.nacre"));
  EXPECT_USER_ERROR(load_dataset(dir.path("g.nacre"), options), "already holds");
  EXPECT_USER_ERROR(load_dataset("twin:cora", options), "already holds");
}

TEST(Load, TheVertexCountMustAgree) {
  const TempDir dir;
  write_native(load_dataset(dir.write("g", "0 1\n"), {}), dir.path("g.nacre"));
  LoadOptions options;
  options.num_nodes = 2;
  EXPECT_EQ(load_dataset(dir.path("g.nacre"), options).num_nodes(), 2);
  options.num_nodes = 3;
  EXPECT_USER_ERROR(load_dataset(dir.path("g.nacre"), options), "has 2 nodes, not 3");
  options.num_nodes = -1;
  EXPECT_USER_ERROR(load_dataset(dir.path("g.nacre"), options), "negative");
}

TEST(Describe, SaysWhatThereIs) {
  const TempDir dir;
  LoadOptions options;
  options.labels_file = dir.write("labels", "0\n1\n0\n-1\n");
  options.features_file = dir.write("features", "1 0\n0 0\n0 1\n1 1\n");
  options.splits_file = dir.write("splits", "train\ntest\nval\nnone\n");
  options.num_nodes = 4;
  const Dataset d = load_dataset(dir.write("tiny", "0 1\n1 0\n2 2\n0 2\n"), options);
  const std::string text = describe(d);
  for (const char* expected :
       {"name        tiny", "nodes       4", "edges       4", "1 self loops", "directed", "50.0 % zeros", "2 classes",
        "1 unlabelled", "1 train, 1 val, 1 test", "0.500 of the edges", "fingerprint"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
  const std::string json = describe_json(d);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  for (const char* expected :
       {"\"num_nodes\":4", "\"homophily\":0.5", "\"class_counts\":[2,1]", "\"components\":2", "\"isolated\":1"}) {
    EXPECT_NE(json.find(expected), std::string::npos) << expected << "\n" << json;
  }
}

// Returns two users and three items; user 0 takes items 0 and 2 (vertices 2 and 4).
Dataset users_and_items() {
  EdgeList edges{5, {0, 0, 2}, {2, 4, 0}, {}, {0, 0, 1}, 2};
  Dataset d;
  d.graph = build_graph(edges, "test");
  d.node_types = {"user", "item"};
  d.node_offsets = {0, 2, 5};
  d.relations = {{0, "takes", 1}, {1, "taken", 0}};
  d.test_edges = {std::vector<NodeId>{1}, std::vector<NodeId>{3}, {}};
  d.type_features = {Tensor(), Tensor::zeros(DType::f32, {3, 2})};
  return d;
}

TEST(Kinds, MustFitTogether) {
  EXPECT_NO_THROW(validate(users_and_items(), "set"));
  const auto broken = [](const auto& change) {
    Dataset d = users_and_items();
    change(d);
    return user_error([&] { validate(d, "set"); });
  };
  EXPECT_NE(broken([](Dataset& d) { d.node_offsets = {0, 2, 4}; }).find("cover"), std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { d.node_types.clear(); }).find("no kinds"), std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { d.relations.pop_back(); }).find("1 relations for 2"), std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { d.relations[1].dst_type = 2; }).find("unknown kind"), std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { std::swap(d.relations[0], d.relations[1]); }).find("relation says"),
            std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { d.test_edges.dst = std::vector<NodeId>{0}; }).find("test edge 0"),
            std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { d.test_edges.src = std::vector<NodeId>{7}; }).find("test edge 0"),
            std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { d.features = Tensor::zeros(DType::f32, {5, 1}); }).find("both"), std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { d.type_features[0] = d.type_features[1]; }).find("user"), std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { d.type_features[1].data<float>()[3] = INFINITY; }).find("item 1"),
            std::string::npos);
  EXPECT_NE(broken([](Dataset& d) { d.node_names = {"a"}; }).find("names have 1 rows"), std::string::npos);
}

TEST(Kinds, CountInTheFingerprint) {
  const uint64_t whole = users_and_items().fingerprint();
  const auto changed = [&](const auto& change) {
    Dataset d = users_and_items();
    change(d);
    return d.fingerprint() != whole;
  };
  EXPECT_TRUE(changed([](Dataset& d) { d.node_types[0] = "reader"; }));
  EXPECT_TRUE(changed([](Dataset& d) { d.node_offsets[1] = 1; }));
  EXPECT_TRUE(changed([](Dataset& d) { d.relations[0].name = "likes"; }));
  EXPECT_TRUE(changed([](Dataset& d) { d.type_features[1].data<float>()[0] = 1; }));
  EXPECT_TRUE(changed([](Dataset& d) { std::swap(d.val_edges, d.test_edges); }));
  EXPECT_FALSE(changed([](Dataset& d) { d.original_ids = std::vector<int64_t>{1, 2, 3, 4, 5}; }));
}

}  // namespace
}  // namespace nacre
