// Tests with the real data sets, if they are available: in NACRE_DATASETS, or in the folder beside
// the project.
#include <cstdlib>
#include <filesystem>
#include <map>

#include "data/fixtures.h"
#include "nacre/data/info.h"
#include "nacre/data/load.h"
#include "nacre/data/native.h"
#include "nacre/graph/stats.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

std::string data_file(const std::string& name) {
  const char* folder = std::getenv("NACRE_DATASETS");
  return (std::filesystem::path(folder != nullptr ? folder : NACRE_SOURCE_DIR "/../shared/datasets") / name).string();
}

#define REQUIRE_DATA(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here"

void check_planetoid(const std::string& path, const std::map<std::string, int64_t>& expected) {
  const Dataset d = load_dataset(path, {});
  EXPECT_EQ(d.num_nodes(), expected.at("nodes"));
  EXPECT_EQ(d.graph.num_edges(), expected.at("edges"));
  EXPECT_EQ(d.num_features(), expected.at("features"));
  EXPECT_EQ(d.num_classes, expected.at("classes"));
  EXPECT_EQ(d.splits.train.size(), expected.at("train"));
  EXPECT_EQ(d.splits.val.size(), 500);
  EXPECT_EQ(d.splits.test.size(), 1000);
  const GraphStats stats = compute_stats(d.graph);
  EXPECT_TRUE(stats.symmetric);
  EXPECT_EQ(stats.components, expected.at("components"));
  EXPECT_EQ(stats.largest_component, expected.at("largest"));
  EXPECT_EQ(stats.isolated, expected.at("isolated"));
  const TempDir dir;
  write_native(d, dir.path("a.nacre"));
  EXPECT_EQ(load_dataset(dir.path("a.nacre"), {}).fingerprint(), d.fingerprint());
}

TEST(RealData, Cora) {
  const std::string path = data_file("cora.npz");
  REQUIRE_DATA(path);
  check_planetoid(path, {{"nodes", 2708},
                         {"edges", 10556},
                         {"features", 1433},
                         {"classes", 7},
                         {"train", 140},
                         {"components", 78},
                         {"largest", 2485},
                         {"isolated", 0}});
  const Dataset d = load_dataset(path, {});
  EXPECT_NEAR(edge_homophily(d.graph, d.labels.span()), 0.81, 0.005);
  EXPECT_TRUE(d.notes.empty());
}

TEST(RealData, Citeseer) {
  const std::string path = data_file("citeseer.npz");
  REQUIRE_DATA(path);
  check_planetoid(path, {{"nodes", 3327},
                         {"edges", 9104},
                         {"features", 3703},
                         {"classes", 6},
                         {"train", 120},
                         {"components", 438},
                         {"largest", 2120},
                         {"isolated", 48}});
}

TEST(RealData, Gowalla) {
  const std::string path = data_file("gowalla.npz");
  REQUIRE_DATA(path);
  const Dataset d = load_dataset(path, {});
  EXPECT_EQ(d.node_types, (std::vector<std::string>{"user", "item"}));
  EXPECT_EQ(d.node_offsets, (std::vector<int64_t>{0, 29'858, 29'858 + 40'981}));
  EXPECT_EQ(d.graph.num_edges(), 2 * 810'128);
  EXPECT_EQ(d.test_edges.size(), 217'242);
}

}  // namespace
}  // namespace nacre
