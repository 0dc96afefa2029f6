#include "nacre/data/npz.h"

#include <limits>

#include "data/fixtures.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

using Arrays = std::vector<std::pair<std::string, std::string>>;

std::string npz(const Arrays& arrays, Pack pack = Pack::deflated) {
  std::vector<Member> members;
  for (const auto& [key, bytes] : arrays) members.push_back({key + ".npy", bytes, pack});
  return zip(members);
}

Dataset load(const std::string& bytes, const LoadOptions& options = {}) {
  Dataset data = read_npz(in_memory(bytes, "a.npz"), options);
  validate(data, "a.npz");
  return data;
}
Dataset load(const Arrays& arrays, const LoadOptions& options = {}) { return load(npz(arrays), options); }

// The edges 0→1, 1→2, 2→0, 0→3.
const std::string kEdges = npy_i64({0, 1, 2, 0, 1, 2, 0, 3}, "(2, 4)");

Arrays small() {
  return {{"edge_index", kEdges},        {"x", npy_f32({1, 2, 3, 4, 5, 6, 7, 8}, "(4, 2)")},
          {"y", npy_i64({0, 2, 1, -5})}, {"train_idx", npy_i64({2, 0})},
          {"val_idx", npy_i64({1})},     {"test_idx", npy_i64({})}};
}

template <class T>
std::vector<T> as_vector(const Array<T>& a) {
  return {a.begin(), a.end()};
}

TEST(Npz, ReadsADataSet) {
  for (const Pack pack : {Pack::stored, Pack::deflated}) {
    const Dataset d = load(npz(small(), pack));
    EXPECT_EQ(d.num_nodes(), 4);
    EXPECT_EQ(as_vector(d.graph.row_ptr()), (std::vector<int64_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(as_vector(d.graph.col_idx()), (std::vector<NodeId>{2, 0, 1, 0}));
    EXPECT_EQ(d.num_features(), 2);
    EXPECT_EQ(d.features.data<float>()[7], 8);
    EXPECT_EQ(as_vector(d.labels), (std::vector<int32_t>{0, 2, 1, -1}));
    EXPECT_EQ(d.num_classes, 3);
    EXPECT_FALSE(d.multilabel());
    EXPECT_EQ(as_vector(d.splits.train), (std::vector<NodeId>{2, 0}));
    EXPECT_EQ(as_vector(d.splits.val), (std::vector<NodeId>{1}));
    EXPECT_TRUE(d.splits.test.empty());
    EXPECT_TRUE(d.notes.empty());
  }
}

TEST(Npz, EdgesInEveryLayout) {
  const uint64_t expected = load({{"edge_index", kEdges}}).graph.fingerprint();
  const std::vector<Arrays> layouts = {
      {{"src", npy_i64({0, 1, 2, 0})}, {"dst", npy({"<u2", "(4,)"}, raw<uint16_t>({1, 2, 0, 3}))}},
      {{"edge_index", npy({"<i4", "(2, 4)", true}, raw<int32_t>({0, 1, 1, 2, 2, 0, 0, 3}))}},
      {{"edge_index", npy_i64({0, 1, 1, 2, 2, 0, 0, 3}, "(4, 2)")}},
      {{"edge_index", npy({"<i8", "(4, 2)", true}, raw<int64_t>({0, 1, 2, 0, 1, 2, 0, 3}))}},
      {{"edge_index", npy_f32({0, 1, 2, 0, 1, 2, 0, 3}, "(2, 4)")}},
  };
  for (const Arrays& arrays : layouts) EXPECT_EQ(load(arrays).graph.fingerprint(), expected);
  EXPECT_EQ(load(layouts[2]).notes.size(), 1u);
  EXPECT_EQ(load({{"edge_index", npy_i64({}, "(2, 0)")}, {"num_nodes", npy_i64({3}, "()")}}).num_nodes(), 3);
}

TEST(Npz, WeightsAndTypesFollowTheirEdges) {
  Arrays arrays = small();
  arrays.push_back({"edge_weight", npy({"<f8", "(4,)"}, raw<double>({10, 20, 30, 40}))});
  arrays.push_back({"edge_type", npy({"|u1", "(4,)"}, raw<uint8_t>({0, 1, 4, 1}))});
  const Dataset d = load(arrays);
  EXPECT_EQ(as_vector(d.graph.edge_weight()), (std::vector<float>{30, 10, 20, 40}));
  EXPECT_EQ(as_vector(d.graph.edge_type()), (std::vector<uint16_t>{4, 0, 1, 1}));
  EXPECT_EQ(d.graph.num_edge_types(), 5);
}

TEST(Npz, LabelsOfEveryKind) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(as_vector(load({{"edge_index", kEdges}, {"y", npy_f32({0, nan, 1, 1}, "(4, 1)")}}).labels),
            (std::vector<int32_t>{0, -1, 1, 1}));
  const NpyText fortran{"|b1", "(4, 2)", true};
  const Dataset d = load({{"edge_index", kEdges}, {"y", npy(fortran, raw<uint8_t>({1, 0, 0, 1, 1, 1, 0, 0}))}});
  EXPECT_TRUE(d.multilabel());
  EXPECT_EQ(d.num_classes, 2);
  const auto* y = d.targets.data<uint8_t>();
  EXPECT_EQ(std::vector<uint8_t>(y, y + 8), (std::vector<uint8_t>{1, 1, 0, 1, 0, 0, 1, 0}));
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"y", npy_i64({0, 1, 0, 2, 0, 0, 1, 1}, "(4, 2)")}}), "0 or 1");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"y", npy_i64({0, 1, 2'000'000, 2})}}), "out of range");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"y", npy_f32({0, 1, 1.5F, 2})}}), "whole number");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"y", npy_i64({0, 1})}, {"num_nodes", npy_i64({4})}}), "rows");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"y", npy_i64({1}, "()")}}), "is expected");
}

TEST(Npz, SplitsAsMasks) {
  Arrays arrays = {{"edge_index", kEdges}};
  arrays.push_back({"train_mask", npy({"|b1", "(4,)"}, raw<uint8_t>({1, 0, 0, 1}))});
  arrays.push_back({"valid_mask", npy_i64({0, 1, 0, 0})});
  arrays.push_back({"test_idx", npy({"|b1", "(4,)"}, raw<uint8_t>({0, 0, 1, 0}))});
  const Dataset d = load(arrays);
  EXPECT_EQ(as_vector(d.splits.train), (std::vector<NodeId>{0, 3}));
  EXPECT_EQ(as_vector(d.splits.val), (std::vector<NodeId>{1}));
  EXPECT_EQ(as_vector(d.splits.test), (std::vector<NodeId>{2}));
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"test_mask", npy_i64({0, 1})}}), "one value per node");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"test_mask", npy_i64({0, 1, 2, 0})}}), "a mask holds 0 and 1");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"test_mask", npy_i64({0, 1, 0, 0, 0, 0, 0, 0}, "(4, 2)")}}),
                    "several splits");
}

TEST(Npz, SplitsThatDoNotFit) {
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"train_idx", npy_i64({4})}}), "does not exist");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"train_idx", npy_i64({-1})}}), "does not exist");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"train_idx", npy_i64({1, 1})}}), "twice");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"train_idx", npy_i64({1})}, {"val_idx", npy_i64({1})}}),
                    "both train and val");
  Arrays arrays = small();
  arrays[5].second = npy_i64({3});
  EXPECT_USER_ERROR(load(arrays), "no label");
}

TEST(Npz, BadEdges) {
  EXPECT_USER_ERROR(load({{"edge_index", npy_i64({0, -1}, "(2, 1)")}}), "negative");
  EXPECT_USER_ERROR(load({{"edge_index", npy_i64({0, 4'294'967'295}, "(2, 1)")}}), "largest possible");
  EXPECT_USER_ERROR(load({{"edge_index", npy_f32({0, 0.5F}, "(2, 1)")}}), "whole number");
  EXPECT_USER_ERROR(load({{"edge_index", npy_i64({0, 1, 2})}}), "[2, E]");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"num_nodes", npy_i64({3})}}), "names node 3");
  EXPECT_USER_ERROR(load({{"src", npy_i64({0, 1})}, {"dst", npy_i64({0})}}), "differ in length");
  EXPECT_USER_ERROR(load({{"src", npy_i64({0, 1}, "(2, 1)")}, {"dst", npy_i64({0, 1})}}), "[E]");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"edge_weight", npy_f32({1})}}), "one value per edge");
  EXPECT_USER_ERROR(
      load({{"edge_index", kEdges}, {"edge_weight", npy_f32({1, 1, 1, std::numeric_limits<float>::infinity()})}}),
      "not finite");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"edge_type", npy_i64({0, 1, 65'535, 0})}}), "65,534");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"num_nodes", npy_i64({-3})}}), "num_nodes");
  EXPECT_USER_ERROR(load({{"edge_index", npy_i64({}, "(2, 0)")}}), "no nodes");
}

TEST(Npz, BadFeatures) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"x", npy_f32({1, 2, nan, 4}, "(4, 1)")}}), "feature 0 of node 2");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"num_nodes", npy_i64({4})}, {"x", npy_f32({1, 2}, "(2, 1)")}}),
                    "2 rows");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"x", npy_f32({}, "(4, 0)")}}), "is expected");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"x", npy({"|O", "(4,)"}, std::string(32, '\0'))}}), "objects");
  EXPECT_EQ(load({{"edge_index", kEdges}, {"x", npy_i64({1, 2, 3, 4})}}).features.shape(), (Shape{4, 1}));
}

TEST(Npz, EnormousVertexCounts) {
  const MemoryLimit limit;
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"num_nodes", npy_i64({4'000'000'000})}}), "renumber");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"num_nodes", npy_i64({INT64_MAX})}}), "num_nodes");
  EXPECT_USER_ERROR(load({{"edge_index", npy_i64({0, 4'000'000'000}, "(2, 1)")}}), "renumber");
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"x", npy_f32({}, "(2000000000, 0)")}}), "expected");
}

TEST(Npz, OptionsForTheVertexCount) {
  LoadOptions options;
  options.num_nodes = 6;
  EXPECT_EQ(load({{"edge_index", kEdges}}, options).num_nodes(), 6);
  EXPECT_USER_ERROR(load({{"edge_index", kEdges}, {"num_nodes", npy_i64({5})}}, options), "leave the option out");
}

TEST(Npz, KeysAreReported) {
  Arrays arrays = small();
  arrays.push_back({"extra", npy_i64({1})});
  arrays.push_back({"meta", "not even an array"});
  const Dataset d = load(arrays);
  ASSERT_EQ(d.notes.size(), 1u);
  EXPECT_EQ(d.notes[0], "arrays that were not used: extra, meta");
  EXPECT_USER_ERROR(load({{"adj", npy_i64({1})}, {"x", npy_i64({1})}}), "arrays found: adj, x");
  EXPECT_USER_ERROR(load({{"src", npy_i64({1})}}), "arrays found: src");
  EXPECT_USER_ERROR(load({{"train_user", npy_i64({1})}, {"train_item", npy_i64({1, 2})}}), "differ in length");
  EXPECT_USER_ERROR(load(zip({{"archive/data.pkl", "x"}})), "PyTorch");
  EXPECT_USER_ERROR(load(zip({})), "arrays found: none");
}

TEST(Npz, TruncatedAndDamagedAnywhere) {
  for (const Pack pack : {Pack::stored, Pack::deflated}) {
    const std::string bytes = npz(small(), pack);
    for_each_truncation(bytes, [](const std::string& cut, size_t n) {
      EXPECT_FALSE(survives([&] { load(cut); }, "cut at " + std::to_string(n))) << n;
    });
    for_each_flip(bytes, [](const std::string& damaged, size_t at) {
      survives([&] { load(damaged); }, "byte " + std::to_string(at));
    });
  }
}

}  // namespace
}  // namespace nacre
