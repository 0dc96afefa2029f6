#include "nacre/train/step_features.h"

#include <algorithm>

#include "nacre/cost/nominal.h"
#include "nacre/plan/work.h"

namespace nacre {
namespace {

// The counted work of a step: amounts of all kernels together, and their nominal seconds.
struct CountedStep {
  Coefficients amounts{};
  double seconds = 0;
};

CountedStep count_step(const StepDescription& step) {
  const NominalProfile& nominal = step.gpu ? nominal_gpu() : nominal_cpu();
  CountedStep counted;
  for (const Kernel& kernel : step.plan.kernels) {
    if (kernel.once) continue;
    const Work work = kernel_work(kernel, step.plan, step.blocks, nominal.cache_bytes);
    for (size_t f = 0; f < kFeatures; ++f) counted.amounts[f] += work.amount[f];
    counted.seconds += nominal.model.predict(work);
  }
  return counted;
}

}  // namespace

std::vector<FeatureColumn> step_columns() {
  std::vector<FeatureColumn> columns;
  for (int f = 0; f < kGraphFeatures; ++f) {
    const GraphFeatureInfo& info = graph_feature_info(static_cast<GraphFeature>(f));
    columns.push_back({std::string(info.name), info.wide});
  }
  for (const char* name : {"input_width", "hidden_width", "output_width", "layers", "heads", "table_bytes"}) {
    columns.push_back({name, true});
  }
  for (int f = 0; f < kFeatures; ++f) {
    columns.push_back({"counted_" + std::string(feature_name(static_cast<Feature>(f))), true});
  }
  columns.push_back({kCountedSeconds, true});
  return columns;
}

std::vector<double> step_features(const StepDescription& step) {
  const Graph& graph = step.blocks.layer(0);
  const GraphFeatures of_graph = graph_features(graph, step.own);
  std::vector<double> features(of_graph.value.begin(), of_graph.value.end());
  const ModelOptions& m = step.model;
  const int64_t widest = std::max({m.in_dim, m.hidden, m.out_dim});
  // Rows of the widest value: whether they fit a cache decides how fast they are gathered.
  const int64_t table_bytes = graph.num_src() * widest * 4;
  for (const int64_t number : {m.in_dim, m.hidden, m.out_dim, int64_t{m.layers}, int64_t{m.heads}, table_bytes}) {
    features.push_back(static_cast<double>(number));
  }
  const CountedStep counted = count_step(step);
  features.insert(features.end(), counted.amounts.begin(), counted.amounts.end());
  features.push_back(counted.seconds);
  return features;
}

}  // namespace nacre
