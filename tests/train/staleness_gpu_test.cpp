// Tests --staleness on a GPU: batches read the same weights as on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "device/gpu.h"
#include "nacre/device/device.h"
#include "train/kinds.h"

namespace nacre::test {
namespace {

class StalenessGpu : public OnGpu {};

std::vector<float> trained(const Dataset& data, const RunConfig& config) {
  BatchSession session(data, config);
  const std::vector<std::string>& notes = session.notes();
  const bool useless = std::any_of(notes.begin(), notes.end(),
                                   [](const std::string& note) { return note.find("saves no time") < note.size(); });
  EXPECT_EQ(useless, config.device == "cuda" && config.staleness > 0);
  session.start();
  for (int64_t epoch = 0; epoch < 2; ++epoch) train_epoch(session, epoch, 0.1);
  const Parameters& p = session.parameters();
  return {p.data(), p.data() + p.size()};
}

TEST_F(StalenessGpu, BatchesReadTheWeightsThatTheyReadOnTheHost) {
  for (const char* what : {"batch norm", "learned features", "kinds"}) {
    SCOPED_TRACE(what);
    const std::string name = what;
    const bool learned = name == "learned features", kinds = name == "kinds";
    RunConfig config = kinds ? kinds_run("rgcn") : small_run("sage");
    config.mode = "minibatch";
    config.plan = "off";
    config.sampling.fanout = {2, 2};
    config.batch_size = kinds ? 3 : 6;
    config.optimizer = {.name = "sgd"};
    if (learned) config.load.features_file = "learned";
    if (!learned && !kinds) config.model.norm = "batch";
    const Dataset data = kinds ? kinds_data() : small_data({.features = !learned});
    std::vector<float> results[4];
    for (const int staleness : {0, 2}) {
      config.staleness = staleness;
      for (const char* device : {"cpu", "cuda"}) {
        config.device = device;
        results[staleness + (config.device == "cuda" ? 1 : 0)] = trained(data, config);
      }
    }
    double largest = 0;
    for (size_t i = 0; i < results[2].size(); ++i) {
      ASSERT_NEAR(results[2][i], results[3][i], 1e-4) << i;
      largest = std::max<double>(largest, std::abs(results[2][i] - results[0][i]));
    }
    EXPECT_GT(largest, 1e-3) << "staleness changes nothing";
  }
}

}  // namespace
}  // namespace nacre::test
