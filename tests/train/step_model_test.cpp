#include "nacre/train/step_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "nacre/base/error.h"
#include "nacre/base/parallel.h"
#include "nacre/data/twin.h"
#include "nacre/train/step_features.h"
#include "support/cache_folder.h"

namespace nacre {
namespace {

RunConfig small_config(const std::string& model) {
  RunConfig config;
  config.device = "cpu";
  config.model.model = model;
  config.model.layers = 2;
  config.model.hidden = 8;
  return config;
}

std::vector<PartSource> small_sources() {
  std::vector<PartSource> sources;
  for (const char* twin : {"cora@0.3", "pubmed@0.05"}) {
    sources.push_back({twin, make_twin(twin, 1).graph, 16, 3});
  }
  return sources;
}

TEST(StepColumns, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const FeatureColumn& c : step_columns()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
  EXPECT_TRUE(names.count(kCountedSeconds) > 0);
  EXPECT_GT(names.size(), 50);
}

TEST(StepSamples, OneRoundOfEveryModel) {
  for (const char* model : {"gcn", "sage", "gat", "rgcn", "gin"}) {
    const std::vector<TimedPart> parts = time_parts(small_config(model), small_sources(), {.seconds = 1e-9});
    ASSERT_EQ(parts.size(), 2) << model;
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].step.group, static_cast<int>(i));
      EXPECT_GT(parts[i].step.seconds, 0);
      EXPECT_EQ(parts[i].step.features.size(), step_columns().size());
      EXPECT_GT(parts[i].step.features.back(), 0);  // counted seconds
    }
  }
}

TEST(StepSamples, RefuseAGraphWithoutFeatures) {
  EXPECT_THROW(time_parts(small_config("gcn"), {{"bare", make_twin("cora@0.1", 1).graph, 0, 3}}, {}), UserError);
}

TEST(StepModel, IsLearnedOnceAndKept) {
  const test::CacheFolder cache;
  const RunConfig config = small_config("gcn");
  const std::string key = step_model_key(config, num_threads());
  EXPECT_FALSE(load_step_model(key).has_value());
  const PerformanceModel learned = step_model(config, small_sources(), {.seconds = 1});
  const std::optional<PerformanceModel> stored = load_step_model(key);
  ASSERT_TRUE(stored.has_value());
  EXPECT_EQ(stored->json(), learned.json());
  EXPECT_EQ(step_model(config, {}, {}).json(), learned.json());  // nothing is timed again
  EXPECT_NE(key, step_model_key(small_config("sage"), num_threads()));
  EXPECT_NE(key, step_model_key(config, num_threads() + 1));
  for (const auto& file : std::filesystem::directory_iterator(cache.path()))
    std::filesystem::resize_file(file.path(), 20);
  EXPECT_FALSE(load_step_model(key).has_value());
}

}  // namespace
}  // namespace nacre
