// nacre bench nugnn: tables of the νGNN paper. Table 7 compares regressors that predict the time of
// a training step on graphs that they have not seen.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/train/step_features.h"
#include "nacre/train/step_model.h"
#include "options.h"
#include "report.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

struct NugnnCommand {
  RunConfig config;
  std::string figures = "t7";
  std::string models = "gcn,gat";
  std::string graphs;
  PartSampling sampling;
  int folds = 12;
  std::string out = "bench-nugnn";
};

// Fills in the paper's settings where the user gave none: GCN has 4 layers of width 256, the others
// have 3 layers of width 128, and GAT has 4 heads.
RunConfig config_for(const NugnnCommand& c, const std::string& model) {
  RunConfig config = c.config;
  config.model.model = model;
  const bool gcn = model == "gcn";
  if (config.model.layers == 0) config.model.layers = gcn ? 4 : 3;
  if (config.model.hidden == 0) config.model.hidden = gcn ? 256 : 128;
  if (config.model.heads == 0 && model_info(model).heads > 0) config.model.heads = 4;
  return config;
}

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

// The tables of one run, one file each.
class Tables {
 public:
  explicit Tables(std::string folder) : folder_(std::move(folder)) {}

  void keep(const std::string& name, const std::string& title, const Report& report) {
    const std::string file = folder_ + "/" + name + ".csv";
    write_file(file, report.csv());
    files_ += " " + file;
    if (!title.empty()) fmt::print("\n{}\n{}", title, report.text());
    std::fflush(stdout);
  }
  const std::string& files() const { return files_; }

 private:
  std::string folder_;
  std::string files_;
};

std::string scientific(double value) { return fmt::format("{:.3e}", value); }

// Errors of the chosen regressor on each graph.
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

void table7(const NugnnCommand& c, Tables& tables) {
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
    save_step_model(step_model_key(config), learned);
    keep_graphs(model, parts, learned.score, tables);
    keep_parts(model, parts, learned.score, tables);
  }
  tables.keep("table7", "Table 7: predicted time of a training step on graphs that were not learned from", report);
}

void run(NugnnCommand& c, const Command& command) {
  for (const std::string& figure : split_list(c.figures)) {
    if (figure != "t7") {
      throw UserError("--figures", "'" + figure + "' is not a figure of this benchmark", "choose t7");
    }
  }
  const std::vector<std::string> models = split_list(c.models);
  for (const std::string& model : models) model_info(model);
  apply_execution(c.config);
  Situation situation = situation_of(c.config);
  situation.models = models;
  refuse_idle(command, situation);
  std::error_code failure;
  std::filesystem::create_directories(c.out, failure);
  if (failure) throw UserError(c.out, "cannot be made: " + failure.message());
  Tables tables(c.out);
  table7(c, tables);
  fmt::print("\nfiles:{}\n", tables.files());
}

}  // namespace

void add_bench_nugnn(Command bench) {
  Command command =
      bench.add_subcommand("nugnn", "how well regressors predict the time of a step: tables of the νGNN paper");
  const auto c = std::make_shared<NugnnCommand>();
  c->config.model.layers = 0;
  c->config.model.hidden = 0;
  c->config.device = "cpu";
  add_execution_options(command, c->config);
  // Parts of graphs are trained on as a whole, with plans by rules.
  command.without({"--mode", "--plan", "--recompute", "--deterministic", "--no-plan-cache"});
  add_talk_options(command);
  command.add_option("--figures", c->figures, "tables to measure; only t7 so far").show_default();
  command.add_option("--models", c->models, "comma-separated").show_default();
  command.add_option("--graphs", c->graphs,
                     "data sets to cut parts from, comma-separated; default: twelve small twins");
  command.add_option("--layers", c->config.model.layers, "default 4 for gcn, 3 for others").positive();
  command.add_option("--hidden", c->config.model.hidden, "default 256 for gcn, 128 for others").positive();
  command.add_option("--heads", c->config.model.heads, "attention heads; default 4");
  command.add_option("--seconds", c->sampling.seconds, "seconds of timing for each model").show_default().positive();
  command.add_option("--most-nodes", c->sampling.most_vertices, "largest part").show_default().positive();
  command.add_option("--most-edges", c->sampling.most_edges, "edges of the largest part, about")
      .show_default()
      .positive();
  command.add_option("--folds", c->folds, "sets of graphs that take turns as the unseen ones")
      .show_default()
      .positive();
  command.add_option("--seed", c->config.seed).show_default();
  command.add_option("--out", c->out, "folder for CSV files").show_default();
  command.callback([c, command] { run(*c, command); });
}

}  // namespace nacre::cli
