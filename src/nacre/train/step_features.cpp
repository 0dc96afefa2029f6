#include "nacre/train/step_features.h"

#include <algorithm>

#include "nacre/base/error.h"
#include "nacre/cost/nominal.h"
#include "nacre/plan/work.h"

namespace nacre {
namespace {

// Holds the counted work of a step: amounts of all kernels together, and their nominal seconds.
struct CountedStep {
  Coefficients amounts{};
  double seconds = 0;
  double start_seconds = 0;  // the part of `seconds` that starting the kernels takes
};

// These are the indexes of the features that describe the model and its work. They follow those of
// the graph.
constexpr size_t kInputWidth = kGraphFeatures;
constexpr size_t kTableBytes = kInputWidth + 5;
constexpr size_t kAmounts = kTableBytes + 1;
constexpr size_t kStartSeconds = kAmounts + kFeatures;
constexpr size_t kSeconds = kStartSeconds + 1;

double& at(std::vector<double>& features, GraphFeature f) { return features[static_cast<size_t>(f)]; }

CountedStep count_step(const StepDescription& step) {
  const NominalProfile& nominal = step.gpu ? nominal_gpu() : nominal_cpu();
  CountedStep counted;
  for (const Kernel& kernel : step.plan.kernels) {
    if (kernel.once || kernel.kind == KernelKind::exchange) continue;
    const Work work = kernel_work(kernel, step.plan, step.blocks, nominal.cache_bytes);
    for (size_t f = 0; f < kFeatures; ++f) counted.amounts[f] += work.amount[f];
    counted.seconds += nominal.model.predict(work);
    Work start{.kind = work.kind};
    start[Feature::constant] = work[Feature::constant];
    counted.start_seconds += nominal.model.predict(start);
  }
  return counted;
}

}  // namespace

std::vector<FeatureColumn> step_columns() {
  std::vector<FeatureColumn> columns;
  for (int f = 0; f < kGraphFeatures; ++f) {
    const GraphFeatureInfo& info = graph_feature_info(static_cast<GraphFeature>(f));
    columns.push_back({std::string(info.name), info.by_logarithm});
  }
  for (const char* name : {"input_width", "hidden_width", "output_width", "layers", "heads", "table_bytes"}) {
    columns.push_back({name, true});
  }
  for (int f = 0; f < kFeatures; ++f) {
    columns.push_back({"counted_" + std::string(feature_name(static_cast<Feature>(f))), true});
  }
  columns.push_back({"start_seconds", false});
  columns.push_back({kCountedSeconds, true});
  return columns;
}

std::vector<double> step_features(const StepDescription& step) {
  const Graph& graph = step.blocks.layer(0);
  const GraphFeatures of_graph = graph_features(graph, step.own);
  std::vector<double> features(of_graph.value.begin(), of_graph.value.end());
  const ModelOptions& m = step.model;
  const int64_t widest = std::max({m.in_dim, m.hidden, m.out_dim});
  // The widest value of the vertices has this many bytes. Whether they fit a cache decides how fast
  // rows are gathered.
  const int64_t table_bytes = graph.num_src() * widest * 4;
  for (const int64_t number : {m.in_dim, m.hidden, m.out_dim, int64_t{m.layers}, int64_t{m.heads}, table_bytes}) {
    features.push_back(static_cast<double>(number));
  }
  const CountedStep counted = count_step(step);
  features.insert(features.end(), counted.amounts.begin(), counted.amounts.end());
  features.push_back(counted.start_seconds);
  features.push_back(counted.seconds);
  return features;
}

std::vector<double> scaled_features(std::vector<double> features, const PartGrowth& growth) {
  NACRE_CHECK(features.size() == kSeconds + 1, "there must be one number for each feature");
  const double columns = at(features, GraphFeature::columns);
  const double halo = columns * at(features, GraphFeature::halo_columns) * growth.halo;
  const double own = columns * (1 - at(features, GraphFeature::halo_columns)) * growth.rows;
  at(features, GraphFeature::rows) *= growth.rows;
  at(features, GraphFeature::nonzeros) *= growth.rows;
  at(features, GraphFeature::columns) = own + halo;
  const double cells = at(features, GraphFeature::rows) * (own + halo);
  at(features, GraphFeature::density) = cells > 0 ? at(features, GraphFeature::nonzeros) / cells : 0;
  at(features, GraphFeature::halo_columns) = own + halo > 0 ? halo / (own + halo) : 0;
  // The number of edges from the halo is taken to grow as the halo does.
  double& from_halo = at(features, GraphFeature::halo_nonzeros);
  from_halo = growth.rows > 0 ? std::clamp(from_halo * growth.halo / growth.rows, 0.0, 1.0) : 0;
  features[kTableBytes] *= columns > 0 ? (own + halo) / columns : 0;
  for (size_t f = 0; f < kFeatures; ++f) {
    if (static_cast<Feature>(f) != Feature::constant) features[kAmounts + f] *= growth.rows;
  }
  features[kSeconds] = features[kStartSeconds] + (features[kSeconds] - features[kStartSeconds]) * growth.rows;
  return features;
}

double counted_seconds(const std::vector<double>& features) { return features.at(kSeconds); }

}  // namespace nacre
