// Mini-batches of several kinds of vertices on a GPU: tables in the memory of the device, and
// tables of the host whose rows are sent.
#include <gtest/gtest.h>

#include "device/gpu.h"
#include "nacre/device/device.h"
#include "support/sanitized.h"
#include "train/kinds.h"

namespace nacre::test {
namespace {

class HeteroGpu : public OnGpu, public testing::WithParamInterface<const char*> {
 protected:
  static RunConfig run_of(const std::string& model) {
    RunConfig config = kinds_run(model);
    config.device = "cuda";
    config.features_on = GetParam();
    return config;
  }
};

TEST_P(HeteroGpu, AllNeighboursAreFullGraphTraining) {
  for (const char* model : {"rgcn", "gat"}) {
    SCOPED_TRACE(model);
    expect_full_graph_training(run_of(model));
    if (sanitized()) break;
  }
}

TEST_P(HeteroGpu, KindsThatNoBatchReadsStayAsTheyAre) { expect_unread_kinds_to_stay(run_of("mlp")); }

// Small batches on the device give the weights of the host.
TEST_P(HeteroGpu, TrainsAsTheHostDoes) {
  std::vector<float> weights[2];
  for (const bool gpu : {false, true}) {
    RunConfig config = run_of("rgcn");
    if (!gpu) config.device = "cpu";
    if (!gpu) config.features_on = "auto";
    config.sampling.fanout = {2, 2};
    config.batch_size = 3;
    BatchSession session(kinds_data(), config);
    session.start();
    for (int64_t epoch = 0; epoch < 2; ++epoch) train_epoch(session, epoch, 0.1);
    const Parameters& p = session.parameters();
    weights[gpu ? 1 : 0].assign(p.data(), p.data() + p.size());
    const RowReads reads = session.rows_read();
    if (gpu) {
      EXPECT_EQ(reads.host == 0, config.features_on == "device");
    }
  }
  ASSERT_EQ(weights[0].size(), weights[1].size());
  for (size_t i = 0; i < weights[0].size(); ++i) ASSERT_NEAR(weights[0][i], weights[1][i], 1e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(Places, HeteroGpu, testing::Values("device", "host"),
                         [](const auto& place) { return std::string(place.param); });

}  // namespace
}  // namespace nacre::test
