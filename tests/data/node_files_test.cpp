// Tests of features, labels and splits in files beside an edge list.
#include "data/fixtures.h"
#include "nacre/data/load.h"

namespace nacre {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

class NodeFiles : public ::testing::Test {
 protected:
  Dataset features(const std::string& bytes) { return load(&LoadOptions::features_file, bytes); }
  Dataset labels(const std::string& bytes) { return load(&LoadOptions::labels_file, bytes); }
  Dataset splits(const std::string& bytes) { return load(&LoadOptions::splits_file, bytes); }

  Dataset load(std::string LoadOptions::*file, const std::string& bytes) {
    LoadOptions options;
    options.*file = dir_.write("side", bytes);
    return load_dataset(dir_.write("g.txt", "0 1\n1 2\n"), options);
  }

  TempDir dir_;
};

std::vector<float> values(const Dataset& d) {
  return {d.features.data<float>(), d.features.data<float>() + d.features.size()};
}
std::vector<int32_t> labels_of(const Dataset& d) { return {d.labels.begin(), d.labels.end()}; }

TEST_F(NodeFiles, FeaturesInEveryForm) {
  const std::vector<float> expected = {1, 2, 3, 4, 5.5F, -6};
  for (const std::string& text : {std::string("1,2\n3,4\n5.5,-6\n"), std::string("a;b\n1;2\n3 ; 4\n5.5\t-6e0"),
                                  std::string("# c\n\n1 2\n# d\n3 4\n5.5 -6\n\n\n")}) {
    for (const std::string& bytes : {text, gzip(text)}) {
      const Dataset d = features(bytes);
      EXPECT_EQ(d.features.shape(), (Shape{3, 2}));
      EXPECT_EQ(values(d), expected);
    }
  }
  const std::string array = npy_f32(expected, "(3, 2)");
  EXPECT_EQ(values(features(array)), expected);
  EXPECT_EQ(values(features(zip({{"x.npy", array}, {"z.npy", npy_i64({1})}}))), expected);
  EXPECT_EQ(values(features(zip({{"whatever.npy", array}}))), expected);
}

TEST_F(NodeFiles, BadFeatures) {
  EXPECT_USER_ERROR(features("1 2\n3 4\n"), "features have 2 rows, but there are 3 nodes");
  EXPECT_USER_ERROR(features("1 2\n3\n5 6\n"), "side:2: does not have 2 columns");
  EXPECT_USER_ERROR(features("1 2\n3 4 5\n5 6\n"), "side:2: does not have 2 columns");
  EXPECT_USER_ERROR(features("1 2\nx 4\n5 6\n"), "side:2: 'x' is not a number");
  EXPECT_USER_ERROR(features("1 2\n3 4z\n5 6\n"), "side:2: '4z' is not a number");
  EXPECT_USER_ERROR(features("1 2\n3 nan\n5 6\n"), "side:2: 'nan' is not finite");
  EXPECT_USER_ERROR(features("1 2\n3 1e50\n5 6\n"), "side:2: '1e50' is not finite");
  EXPECT_USER_ERROR(features("1 2\n\n5 6\n3 3\n"), "side:2: is empty");
  EXPECT_USER_ERROR(features(""), "no rows");
  EXPECT_USER_ERROR(features("# nothing\n"), "no rows");
  EXPECT_USER_ERROR(features(zip({{"a.npy", npy_i64({1})}, {"b.npy", npy_i64({1})}})), "no array 'x'");
  LoadOptions options;
  options.features_file = dir_.path("absent");
  EXPECT_USER_ERROR(load_dataset(dir_.write("g.txt", "0 1\n"), options), "no such file");
}

TEST_F(NodeFiles, LabelsInEveryForm) {
  const std::vector<int32_t> expected = {2, -1, 0};
  for (const std::string& bytes : {std::string("2\n-1\n0\n"), std::string("label\n2\nnan\n0.0\n"), npy_i64({2, -7, 0}),
                                   zip({{"y.npy", npy_i64({2, -1, 0})}})}) {
    EXPECT_EQ(labels_of(labels(bytes)), expected);
  }
  EXPECT_EQ(labels_of(labels(gzip("nan\n1\n2\n"))), (std::vector<int32_t>{-1, 1, 2}));
  const Dataset many = labels("0 1 1\n1 0 0\n0 0 0\n");
  EXPECT_TRUE(many.multilabel());
  EXPECT_EQ(many.num_classes, 3);
  EXPECT_EQ(many.targets.data<uint8_t>()[2], 1);
  EXPECT_USER_ERROR(labels("0\n1\n"), "labels have 2 rows");
  EXPECT_USER_ERROR(labels("0\n1.5\n2\n"), "not a whole number");
  EXPECT_USER_ERROR(labels("0\n1e20\n2\n"), "not a whole number");
  EXPECT_USER_ERROR(labels("0\ninf\n2\n"), "not finite");
  EXPECT_USER_ERROR(labels("0\n5000000\n2\n"), "out of range");
  EXPECT_USER_ERROR(labels("0 1\n1 3\n1 1\n"), "0 or 1");
}

TEST_F(NodeFiles, SplitsInEveryForm) {
  for (const std::string& bytes :
       {std::string("train\nval\ntest\n"), gzip("# s\ntrain\nvalid\ntest\n\n"),
        zip({{"train_idx.npy", npy_i64({0})}, {"val_idx.npy", npy_i64({1})}, {"test_idx.npy", npy_i64({2})}})}) {
    const Dataset d = splits(bytes);
    ASSERT_EQ(d.splits.train.size(), 1);
    EXPECT_EQ(d.splits.train[0], 0u);
    EXPECT_EQ(d.splits.val[0], 1u);
    EXPECT_EQ(d.splits.test[0], 2u);
  }
  EXPECT_EQ(splits("none\n-\ntrain\n").splits.train[0], 2u);
  EXPECT_USER_ERROR(splits("train\nval\n"), "has 2 lines");
  EXPECT_USER_ERROR(splits("train\nval\ntest\ntest\n"), "side:4: has more lines");
  EXPECT_USER_ERROR(splits("train\nval\nTest!\n"), "side:3: 'Test!' is not train");
  EXPECT_USER_ERROR(splits("train\n\nval\ntest\n"), "side:2: is empty");
  EXPECT_USER_ERROR(splits("train 1\nval\ntest\n"), "is not train, val, test or none");
  EXPECT_USER_ERROR(splits(zip({{"a.npy", npy_i64({1})}})), "holds no split");
}

TEST_F(NodeFiles, DamagedText) {
  const std::string text = "a b\n1 2\n3.5 nan\n5 -6e2\n";
  for_each_flip(text, [&](const std::string& damaged, size_t at) {
    survives([&] { features(damaged); }, "byte " + std::to_string(at));
    survives([&] { labels(damaged); }, "byte " + std::to_string(at));
    survives([&] { splits(damaged); }, "byte " + std::to_string(at));
  });
}

}  // namespace
}  // namespace nacre
