#include "nacre/data/load.h"

#include <cstdlib>

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
  EXPECT_USER_ERROR(load_dataset(dir.path("g.nacre"), options), "has 2 vertices, not 3");
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
       {"name        tiny", "vertices    4", "edges       4", "1 self loops", "directed", "50.0 % zeros", "2 classes",
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

}  // namespace
}  // namespace nacre
