// Defines the command nacre bench nugnn, and what its tables share.
#include "bench_nugnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/names.h"
#include "nacre/base/pending_file.h"
#include "nacre/train/share_rules.h"
#include "options.h"

namespace nacre::cli {
namespace {

// Lists what can be measured. Several figures and tables of the paper come from one sweep.
struct NugnnFigure {
  std::string name;
  void (*measure)(const NugnnCommand& c, Tables& tables);
};
const std::vector<NugnnFigure>& nugnn_figures() {
  static const std::vector<NugnnFigure> all = {{"10", bench_shares},     {"11", bench_shares},    {"12", bench_shares},
                                               {"13", bench_shares},     {"t5", bench_shares},    {"t6", bench_shares},
                                               {"t2", bench_precisions}, {"t7", bench_regressors}};
  return all;
}

void run_nugnn(NugnnCommand& c, const Command& command) {
  std::vector<std::string> names;
  for (const NugnnFigure& figure : nugnn_figures()) names.push_back(figure.name);
  std::vector<void (*)(const NugnnCommand&, Tables&)> asked;
  for (const std::string& name : split_list(c.figures)) {
    const auto found = std::find_if(nugnn_figures().begin(), nugnn_figures().end(),
                                    [&](const NugnnFigure& figure) { return figure.name == name; });
    if (found == nugnn_figures().end()) {
      throw UserError("--figures", "'" + name + "' is not a figure of this benchmark", "choose " + listed(names));
    }
    if (std::find(asked.begin(), asked.end(), found->measure) == asked.end()) asked.push_back(found->measure);
  }
  const std::vector<std::string> models = split_list(c.models);
  for (const std::string& model : models) model_info(model);
  for (const std::string& method : split_list(c.methods))
    choose_name("--methods", "way to share out the work", method, share_rule_names());
  apply_execution(c.config);
  for (const std::string& devices : c.device_sets) {
    RunConfig config = c.config;
    config.ranks.devices = split_list(devices);
    check_ranks(config);
  }
  Situation situation = situation_of(c.config);
  situation.models = models;
  refuse_idle(command, situation);
  std::error_code failure;
  std::filesystem::create_directories(c.out, failure);
  if (failure) throw UserError(c.out, "cannot be made: " + failure.message());
  Tables tables(c.out);
  for (const auto measure : asked) measure(c, tables);
  fmt::print("\nfiles:{}\n", tables.files());
}

}  // namespace

RunConfig config_for(const NugnnCommand& c, const std::string& model) {
  RunConfig config = c.config;
  config.model.model = model;
  const bool gcn = model == "gcn";
  if (config.model.layers == 0) config.model.layers = gcn ? 4 : 3;
  if (config.model.hidden == 0) config.model.hidden = gcn ? 256 : 128;
  if (config.model.heads == 0 && model_info(model).heads > 0) config.model.heads = 4;
  return config;
}

void Tables::keep(const std::string& name, const std::string& title, const Report& report) {
  const std::string file = folder_ + "/" + name + ".csv";
  write_file(file, report.csv());
  if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.push_back(file);
  if (!title.empty()) fmt::print("\n{}\n{}", title, report.text());
  std::fflush(stdout);
}

std::string Tables::files() const {
  std::string text;
  for (const std::string& file : files_) text += " " + file;
  return text;
}

void add_bench_nugnn(Command bench) {
  Command command =
      bench.add_subcommand("nugnn", "shares of unequal devices, and predicted steps: figures of the νGNN paper");
  const auto c = std::make_shared<NugnnCommand>();
  c->config.model.layers = 0;
  c->config.model.hidden = 0;
  c->config.device = "cpu";
  add_execution_options(command, c->config);
  // All figures train on whole graphs, or on parts of graphs as if each part were a whole graph,
  // and take plans by rules. The user therefore cannot set these options.
  command.without({"--mode", "--plan", "--recompute", "--reorder", "--deterministic", "--no-plan-cache"});
  add_talk_options(command);
  command
      .add_option(
          "--figures", c->figures,
          "what to measure: 10 to 13, t5 and t6 (unequal devices; one sweep gives all of them), t2 (precisions),\n"
          "t7 (regressors)")
      .show_default();
  command.add_list(
      "--devices", [c = c.get()](const std::vector<std::string>& sets) { c->device_sets = sets; },
      "a set of devices of figures 10 to 13, t2, t5 and t6, as nacre train takes it; may be repeated;\n"
      "default: cpu:1,cpu:2, and one device for t2");
  command.add_option("--methods", c->methods, "ways to share out the work (--shares of nacre train), comma-separated")
      .show_default();
  command.add_option("--epochs", c->epochs, "epochs of the run that shares are chosen for, and of a run of t2")
      .show_default()
      .positive();
  command.add_option("--timed", c->timed, "number of timed epochs for figures 10 to 13, t5 and t6")
      .show_default()
      .positive();
  command.add_option("--models", c->models, "models to measure, comma-separated").show_default();
  command.add_option("--graphs", c->graphs, "data sets, comma-separated; default: small twins");
  command.add_option("--layers", c->config.model.layers, "number of layers; default: 4 for gcn, 3 for other models")
      .positive();
  command
      .add_option("--hidden", c->config.model.hidden,
                  "width of hidden layers; default: 256 for gcn, 128 for other models")
      .positive();
  command.add_option("--heads", c->config.model.heads, "number of attention heads; default: 4");
  command.add_option("--seconds", c->sampling.seconds, "seconds of timing for each model").show_default().positive();
  command.add_option("--most-nodes", c->sampling.most_vertices, "the most nodes that a part has")
      .show_default()
      .positive();
  command.add_option("--most-edges", c->sampling.most_edges, "the most edges that a part has, approximately")
      .show_default()
      .positive();
  command.add_option("--folds", c->folds, "sets of graphs that take turns as the unseen ones")
      .show_default()
      .positive();
  command.add_option("--seed", c->config.seed).show_default();
  command.add_option("--out", c->out, "folder for CSV files").show_default();
  command.callback([c, command] { run_nugnn(*c, command); });
}

}  // namespace nacre::cli
