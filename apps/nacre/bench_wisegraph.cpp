#include "bench_wisegraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "nacre/train/rank_devices.h"
#include "options.h"

namespace nacre::cli {
namespace {

struct Figure {
  const char* name;
  void (*run)(WiseBench&);
};
constexpr Figure kFigures[] = {{"13", bench_epochs},         {"15", bench_pictures},
                               {"16", bench_stages},         {"17", bench_duplication},
                               {"18", bench_batches},        {"19", bench_outliers},
                               {"20", bench_rank_placement}, {"t2", bench_rank_epochs},
                               {"t3", bench_overhead},       {"cost-model", bench_cost_model},
                               {"dkp", bench_placement},     {"partition", bench_partition}};

struct WiseCommand {
  WiseOptions options;
  std::string graphs, models, figures, devices;
  bool cost_model = false, outliers = false, dkp = false, partition = false;
};

// Returns the spec of a twin with its scale multiplied by `factor`: twin:arxiv@0.5 times 0.1 is
// twin:arxiv@0.05. Returns the spec of a file unchanged.
std::string scaled(const std::string& spec, double factor) {
  if (factor == 1 || !spec.starts_with("twin:")) return spec;
  const size_t at = spec.find('@');
  double scale = 1;
  if (at != std::string::npos) {
    const char* end = spec.data() + spec.size();
    const auto parsed = std::from_chars(spec.data() + at + 1, end, scale);
    if (parsed.ec != std::errc() || parsed.ptr != end) return spec;  // loading will refuse it
  }
  return fmt::format("{}@{:.6g}", spec.substr(0, at), scale * factor);
}

// Reads --devices into the options. Throws UserError if neither Fig. 20 nor Table 2 is measured,
// because only these use several devices.
void take_devices(WiseCommand& c) {
  std::vector<std::string>& figures = c.options.figures;
  const auto uses = [](const std::string& figure) { return figure == "20" || figure == "t2"; };
  if (std::none_of(figures.begin(), figures.end(), uses)) {
    throw UserError("--devices", "is for the figures 20 and t2, which are not measured",
                    "add --figures 20,t2, or leave it out");
  }
  c.options.devices.clear();
  for (const std::string& name : split_list(c.devices)) c.options.devices.push_back(device_name(name));
  RunConfig config = c.options.config;
  config.ranks.devices = c.options.devices;
  check_ranks(config);
}

void run_wisegraph(WiseCommand& c, const Command& command) {
  WiseOptions& o = c.options;
  if (!c.graphs.empty()) o.graphs = split_list(c.graphs);
  if (!c.models.empty()) o.models = split_list(c.models);
  o.figures = split_list(c.figures);
  if (c.outliers) o.figures.emplace_back("19");
  if (c.cost_model) o.figures.emplace_back("cost-model");
  if (c.dkp) o.figures.emplace_back("dkp");
  if (c.partition) o.figures.emplace_back("partition");
  if (o.figures.empty()) o.figures = {"13", "15", "16", "17", "18", "19", "t3"};
  for (const std::string& figure : o.figures) {
    if (std::none_of(std::begin(kFigures), std::end(kFigures), [&](const Figure& f) { return figure == f.name; })) {
      throw UserError("--figures", "'" + figure + "' is not a figure of this benchmark",
                      "choose from 13, 15, 16, 17, 18, 19, 20, t2 and t3");
    }
  }
  if (!c.devices.empty()) take_devices(c);
  for (const std::string& model : o.models) model_info(model);
  apply_execution(o.config);
  Situation situation = situation_of(o.config);
  situation.models = o.models;
  refuse_idle(command, situation);
  std::error_code failure;
  std::filesystem::create_directories(o.out, failure);
  if (failure) throw UserError(o.out, "cannot be made: " + failure.message());
  WiseBench bench(o);
  for (const Figure& figure : kFigures) {
    if (std::find(o.figures.begin(), o.figures.end(), figure.name) != o.figures.end()) figure.run(bench);
  }
  fmt::print("\nfiles:");
  for (const std::string& file : bench.files()) fmt::print(" {}", file);
  fmt::print("\n");
}

}  // namespace

WiseBench::WiseBench(const WiseOptions& options) : options_(options) { options_.config.epochs = 100; }

const DeviceProfile& WiseBench::profile() {
  if (!profile_) profile_ = machine_profile();
  return *profile_;
}

TimingOptions WiseBench::timing() const {
  TimingOptions how;
  how.rounds = std::min(3, options_.epochs);
  how.steps = (options_.epochs + how.rounds - 1) / how.rounds;
  how.limit = options_.limit;
  return how;
}

std::string WiseBench::graph_for(const std::string& graph, const std::string& model) const {
  return scaled(graph, options_.scale * (model == "sage-lstm" ? options_.lstm_scale : 1));
}

const Dataset& WiseBench::data(const std::string& spec) {
  if (data_spec_ != spec) {
    data_.reset();
    RunConfig config = options_.config;
    config.data = spec;
    const double start = now_seconds();
    data_ = open_data(config);
    load_seconds_ = now_seconds() - start;
    data_spec_ = spec;
  }
  return *data_;
}

RunConfig WiseBench::config_for(const std::string& model) const {
  RunConfig config = options_.config;
  config.model.model = model;
  if (model == "gat" && config.model.heads == 0) config.model.heads = 4;
  return config;
}

Workbench WiseBench::open(const std::string& graph, const std::string& model) {
  return {data(graph_for(graph, model)), config_for(model)};
}

void WiseBench::say(const std::string& line) const { log_info(line); }

void WiseBench::keep(const std::string& name, const std::string& title, const Report& report) {
  write(options_.out + "/" + name + ".csv", report.csv());
  write(options_.out + "/" + name + ".json", report.json());
  if (!title.empty()) fmt::print("\n{}\n{}", title, report.text());
  std::fflush(stdout);
}

void WiseBench::keep_svg(const std::string& name, const std::string& svg) {
  write(options_.out + "/" + name + ".svg", svg);
}

void WiseBench::write(const std::string& file, const std::string& content) {
  write_file(file, content);
  if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.push_back(file);
}

void add_bench_wisegraph(Command bench) {
  Command command = bench.add_subcommand(
      "wisegraph", "the planner compared with plans written by hand: figures of the WiseGraph paper");
  const auto c = std::make_shared<WiseCommand>();
  WiseOptions& o = c->options;
  o.config.model.layers = 3;
  o.config.model.hidden = 256;
  o.config.model.dropout = 0.5;
  o.config.device = "cpu";
  add_execution_options(command, o.config);
  // The figures choose their plans, and most of them also the CPU, by themselves, so the user
  // cannot set these options.
  command.without({"--device", "--precision", "--mode", "--plan", "--recompute", "--deterministic", "--no-plan-cache"});
  add_talk_options(command);
  command.add_option("--graphs", c->graphs, "data sets to measure, comma-separated; default: twin:arxiv and 3 more");
  command.add_option("--models", c->models, "models to measure, comma-separated; default: gcn,sage,gat,rgcn,sage-lstm");
  command.add_option("--figures", c->figures,
                     "figures to measure, from 13,15,16,17,18,19,20,t2,t3; default: all but 20 and t2, or none if a\n"
                     "flag below is given");
  command.add_option("--devices", c->devices,
                     "devices of the figures 20 and t2, as nacre train takes them; default cpu:1,cpu:1");
  command.add_option("--hidden", o.config.model.hidden).show_default().positive();
  command.add_option("--layers", o.config.model.layers).show_default().positive();
  command.add_option("--heads", o.config.model.heads, "attention heads of gat; default 4");
  command.add_option("--relations", o.config.relations).show_default();
  command.add_option("--epochs", o.epochs, "number of timed epochs of each plan").show_default().positive();
  command.add_option("--scale", o.scale, "factor on the size of every twin").show_default().positive();
  command.add_option("--lstm-scale", o.lstm_scale, "further factor on the size of twins for sage-lstm")
      .show_default()
      .positive();
  command.add_option("--limit-s", o.limit, "seconds of a step; slower plans are given up").show_default().positive();
  command.add_option("--out", o.out, "folder for CSV, JSON and SVG files").show_default();
  command.add_flag("--cost-model", c->cost_model, "measure how well the cost model ranks plans and predicts kernels");
  command.add_flag("--outliers", c->outliers, "Fig. 19: time kernels that run outliers separately, and like the rest");
  command.add_flag("--dkp", c->dkp,
                   "GCN with 3 widths of features and 3 hidden sizes: find by timing whether the planner chooses the\n"
                   "faster order of summing neighbours and multiplying by weights");
  command.add_flag("--partition", c->partition, "measure the time to partition twin:reddit, by size and table");
  command.callback([c, command] { run_wisegraph(*c, command); });
}

}  // namespace nacre::cli
