// Trains the model of gated_mean.cpp with Nacre's engine; registering the model was all it took.
//   own_model [data]
// data is a file or twin:NAME[@scale]. The exit code is 0 if the model learned something.
#include <cstdio>
#include <exception>
#include <string>

#include "nacre/data/load.h"
#include "nacre/train/session.h"
#include "nacre/train/trainer.h"

namespace {

int run(const std::string& data) {
  nacre::RunConfig config;
  config.data = data;
  config.epochs = 60;
  config.model.model = "gated-mean";
  config.model.hidden = 32;
  config.model.dropout = 0.5;
  config.model.knobs["sharpness"] = 2;
  nacre::Session session(nacre::load_dataset(config.data, config.load), config);
  session.start();
  const nacre::TrainResult result = nacre::train(session, {});
  const double chance = 1.0 / static_cast<double>(session.dataset().num_classes);
  std::printf("%s on %s: test %s %.3f after %d epochs of %.2f ms\n", config.model.model.c_str(), data.c_str(),
              session.metric().c_str(), result.test_score, result.epochs, result.epoch_ms_median);
  return result.test_score > 2 * chance ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "twin:cora");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
