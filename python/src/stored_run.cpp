#include "stored_run.h"

#include "nacre/base/error.h"
#include "options.h"

namespace nacre::python {
namespace {

RunConfig config_on(const std::string& device) {
  RunConfig config;
  config.device = cli::device_name(device);
  cli::apply_execution(config);
  return config;
}

}  // namespace

Dataset data_of(const GraphData* graph, RunConfig& config) {
  if (graph == nullptr) return load_dataset(config.data, config.load);
  config.data = graph->spec;
  config.load = graph->load;
  return graph->dataset;
}

RunPurpose purpose_of(const GraphData* graph, bool trains, int64_t loaded) {
  return {.trains = trains, .loaded = loaded, .embedded = true, .data_in_memory = graph != nullptr};
}

StoredRun::StoredRun(const GraphData* graph, const std::string& path, const std::string& device)
    : config(config_on(device)), trained(read_trained_model(path)) {
  apply_config_json(trained.config_json, trained.file, config);
  if (graph == nullptr && config.data.starts_with("memory:")) {
    throw UserError(path, "was trained on a graph of a Python program, which is not stored with it",
                    "give the graph: nacre.load_run(path, graph)");
  }
}

}  // namespace nacre::python
