// Measures Table 7 of the νGNN paper: how well regressors predict the time of a training step on
// graphs that they have not seen.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench_nugnn.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/train/step_features.h"
#include "nacre/train/step_model.h"
#include "options.h"

namespace nacre::cli {
namespace {

std::vector<PartSource> sources_of(const NugnnCommand& c) {
  if (c.graphs.empty()) return generated_sources(c.config.seed);
  std::vector<PartSource> sources;
  for (const std::string& graph : split_list(c.graphs)) {
    RunConfig config = c.config;
    config.data = graph;
    const Dataset data = open_data(config);
    if (!data.features.defined() || data.num_classes < 1) {
      throw UserError(graph, "has no features or no classes of its nodes");
    }
    sources.push_back({graph, data.graph, data.num_features(), data.num_classes});
  }
  return sources;
}

std::string scientific(double value) { return fmt::format("{:.3e}", value); }

// Adds a table to `tables` with the errors of the chosen regressor on each graph.
void keep_graphs(const std::string& model, const std::vector<TimedPart>& parts, const RegressorScore& best,
                 Tables& tables) {
  std::map<std::string, std::vector<size_t>> by_graph;
  for (size_t i = 0; i < parts.size(); ++i) by_graph[parts[i].graph].push_back(i);
  Report report({"graph", "parts", "mape_percent", "worst_percent"});
  for (const auto& [graph, places] : by_graph) {
    double sum = 0;
    double worst = 0;
    for (const size_t i : places) {
      const double error = std::abs(best.by_step[i] / parts[i].step.seconds - 1) * 100;
      sum += error;
      worst = std::max(worst, error);
    }
    report.add({graph, std::to_string(places.size()), fmt::format("{:.1f}", sum / static_cast<double>(places.size())),
                fmt::format("{:.1f}", worst)});
  }
  tables.keep("table7-graphs-" + model,
              fmt::format("{}: {} ({}) on graphs that it did not learn from", model, best.regressor,
                          step_target_name(best.target)),
              report);
}

void keep_parts(const std::string& model, const std::vector<TimedPart>& parts, const RegressorScore& best,
                Tables& tables) {
  Report report({"graph", "nodes", "edges", "ms", "predicted_ms"});
  for (size_t i = 0; i < parts.size(); ++i) {
    const TimedPart& p = parts[i];
    report.add({p.graph, std::to_string(p.vertices), std::to_string(p.edges),
                fmt::format("{:.4f}", p.step.seconds * 1e3), fmt::format("{:.4f}", best.by_step[i] * 1e3)});
  }
  tables.keep("table7-parts-" + model, "", report);
}

}  // namespace

void bench_regressors(const NugnnCommand& c, Tables& tables) {
  const std::vector<PartSource> sources = sources_of(c);
  Report report({"model", "regressor", "target", "mse", "mae_ms", "mape_percent", "predict_us", "fit_ms", "kept"});
  for (const std::string& model : split_list(c.models)) {
    const RunConfig config = config_for(c, model);
    std::vector<TimedPart> parts = time_parts(config, sources, c.sampling);
    std::vector<TimedStep> steps;
    std::vector<double> ms;
    for (const TimedPart& part : parts) {
      steps.push_back(part.step);
      ms.push_back(part.step.seconds * 1e3);
    }
    log_info(fmt::format("{}: {} parts of {} graphs, steps of {:.3f} to {:.1f} ms", model, parts.size(), sources.size(),
                         *std::min_element(ms.begin(), ms.end()), *std::max_element(ms.begin(), ms.end())));
    const std::vector<RegressorScore> scores = compare_regressors(step_columns(), steps, c.folds, c.config.seed);
    const StepModel learned = learn_step_model(parts, scores, c.config.seed);
    for (const RegressorScore& s : scores) {
      const bool kept = s.regressor == learned.score.regressor && s.target == learned.score.target;
      report.add({model, s.regressor, step_target_name(s.target), scientific(s.errors.mse),
                  scientific(s.errors.mae * 1e3), fmt::format("{:.2f}", s.errors.mape * 100),
                  fmt::format("{:.2f}", s.predict_seconds * 1e6), fmt::format("{:.2f}", s.fit_seconds * 1e3),
                  kept ? "yes" : ""});
    }
    save_step_model(step_model_key(config, num_threads()), learned);
    keep_graphs(model, parts, learned.score, tables);
    keep_parts(model, parts, learned.score, tables);
  }
  tables.keep("table7", "Table 7: predicted time of a training step on graphs that were not learned from", report);
}

}  // namespace nacre::cli
