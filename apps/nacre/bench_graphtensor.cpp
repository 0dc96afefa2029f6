#include "bench_graphtensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>

#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/parallel.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/philox.h"
#include "nacre/base/trace.h"
#include "options.h"

namespace nacre::cli {
namespace {

constexpr const char* kFigures[] = {"15", "16", "17", "18", "19", "20", "reuse"};

struct GraphTensorCommand {
  GraphTensorOptions options;
  std::string graphs, models, figures, variants, trace;
};

// Returns features in [-0.5, 0.5) that depend only on row and column. Times do not depend on their
// values.
Tensor made_up_features(int64_t rows, int64_t width) {
  Tensor x(DType::f32, {rows, width});
  parallel_for(rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* row = x.data<float>() + r * width;
      for (int64_t c = 0; c < width; c += 4) {
        const PhiloxBlock block = philox(0x6665617473, static_cast<uint64_t>(r), static_cast<uint64_t>(c));
        for (int64_t i = c; i < std::min(width, c + 4); ++i)
          row[i] = static_cast<float>(block[i - c]) * 0x1p-32F - 0.5F;
      }
    }
  });
  return x;
}

int64_t width_of(const std::string& graph, size_t at) {
  int64_t width = 0;
  const char* end = graph.data() + graph.size();
  const auto parsed = std::from_chars(graph.data() + at + 1, end, width);
  if (parsed.ec != std::errc() || parsed.ptr != end || width < 1)
    throw UserError("--graphs", "'" + graph + "' has no width after #", "write, for example, twin:gowalla#4353");
  return width;
}

void run_graphtensor(GraphTensorCommand& c, const Command& command) {
  GraphTensorOptions& o = c.options;
  if (!c.graphs.empty()) o.graphs = split_list(c.graphs);
  if (!c.models.empty()) o.models = split_list(c.models);
  o.figures = split_list(c.figures);
  o.variants = split_list(c.variants);
  for (const std::string& figure : o.figures) {
    if (std::none_of(std::begin(kFigures), std::end(kFigures), [&](const char* f) { return figure == f; }))
      throw UserError("--figures", "'" + figure + "' is not a figure of this benchmark",
                      "choose from 15, 16, 17, 18, 19, 20 and reuse");
  }
  if (o.config.loader.in_flight < 0) o.config.loader.in_flight = LoaderOptions{}.in_flight;
  if (o.config.loader.in_flight < 1) throw UserError("--prefetch", "must be at least 1 in this benchmark");
  if (o.config.shuffle == "adaptive")
    throw UserError("--shuffle adaptive", "follows the accuracy of a run, which this benchmark does not measure",
                    "use always or never");
  for (const std::string& model : o.models) model_info(model);
  loader_variants(o);  // refuses wrong names
  o.config.mode = "minibatch";
  apply_execution(o.config);
  Situation situation = situation_of(o.config);
  situation.models = o.models;
  situation.data = DataKind::nodes;
  refuse_idle(command, situation);
  std::error_code failure;
  std::filesystem::create_directories(o.out, failure);
  if (failure) throw UserError(o.out, "cannot be made: " + failure.message());
  GraphTensorBench bench(o);
  if (!c.trace.empty()) trace_start();
  if (bench.wants("15") || bench.wants("16") || bench.wants("17") || bench.wants("18")) bench_styles(bench);
  if (bench.wants("19")) bench_end_to_end(bench);
  if (bench.wants("reuse")) bench_reuse(bench);
  // Figure 20 is measured last, because it records a trace, which would slow the other figures and
  // cannot be switched off again.
  if (bench.wants("20")) bench_timeline(bench);
  if (!c.trace.empty()) trace_write(c.trace);
  fmt::print("\nfiles:");
  for (const std::string& file : bench.files()) fmt::print(" {}", file);
  fmt::print("\n");
}

}  // namespace

bool GraphTensorBench::wants(const char* figure) const {
  const auto& list = options_.figures;
  return list.empty() || std::find(list.begin(), list.end(), figure) != list.end();
}

const Dataset& GraphTensorBench::data(const std::string& graph) {
  if (data_spec_ == graph) return *data_;
  data_.reset();
  const size_t at = graph.find('#');
  RunConfig config = options_.config;
  config.data = graph.substr(0, at);
  data_ = open_data(config);
  if (at != std::string::npos) data_->features = made_up_features(data_->num_nodes(), width_of(graph, at));
  data_spec_ = graph;
  return *data_;
}

RunConfig GraphTensorBench::config_for(const std::string& model) const {
  RunConfig config = options_.config;
  config.model.model = model;
  config.normalize_features = "none";
  return config;
}

void GraphTensorBench::say(const std::string& line) const { log_info(line); }

void GraphTensorBench::keep(const std::string& name, const std::string& title, const Report& report) {
  write(name + ".csv", report.csv());
  write(name + ".json", report.json());
  if (!title.empty()) fmt::print("\n{}\n{}", title, report.text());
  std::fflush(stdout);
}

void GraphTensorBench::write(const std::string& name, const std::string& content) {
  const std::string file = options_.out + "/" + name;
  write_file(file, content);
  if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.push_back(file);
}

std::vector<LoaderVariant> loader_variants(const GraphTensorOptions& options) {
  const int in_flight = options.config.loader.in_flight;
  std::vector<LoaderVariant> list = {{"serial", {0, false, false, false}},
                                     {"+overlap", {in_flight, false, false, false}},
                                     {"+subtasks", {in_flight, true, false, false}},
                                     {"+relax", {in_flight, true, true, false}},
                                     {"+stream", {in_flight, true, true, true}}};
  const auto& wanted = options.variants;
  std::erase_if(list, [&](const LoaderVariant& v) {
    return !wanted.empty() && std::find(wanted.begin(), wanted.end(), v.name) == wanted.end();
  });
  if (list.size() < std::max<size_t>(1, wanted.size()))
    throw UserError("--variants", "holds an unknown variant",
                    "choose from serial, +overlap, +subtasks, +relax and +stream");
  return list;
}

EpochTimes run_epoch(BatchSession& session, int64_t epoch, int batches) {
  const int64_t all = session.steps_per_epoch();
  const int64_t first = std::max<int64_t>(0, all - batches);
  const LoaderTimes before = session.loader_times();
  const StepTimes steps = session.step_times();
  EpochTimes t;
  const double start = now_seconds();
  session.begin_epoch(epoch, first);
  // In the serial order, waiting for the loss ensures that the next batch is only requested when
  // the one before it is computed.
  const bool serial = session.config().loader.in_flight == 0;
  double loss = 0;
  for (int64_t b = first; b < all; ++b) {
    session.queue_step(epoch * all + b, session.config().optimizer.lr);
    if (serial) session.take_losses(loss);
  }
  session.take_losses(loss);
  t.seconds = now_seconds() - start;
  t.compute = session.step_times().host - steps.host;
  t.device = session.step_times().device - steps.device;
  t.batches = all - first;
  const LoaderTimes after = session.loader_times();
  t.loader = {after.sample_pick - before.sample_pick, after.sample_insert - before.sample_insert,
              after.reindex - before.reindex,         after.lookup - before.lookup,
              after.transfer - before.transfer,       after.prepare - before.prepare,
              after.waited - before.waited,           after.copied - before.copied};
  return t;
}

void add_bench_graphtensor(Command bench) {
  Command command = bench.add_subcommand("graphtensor", "mini-batches: execution styles and the tensor scheduler");
  const auto c = std::make_shared<GraphTensorCommand>();
  GraphTensorOptions& o = c->options;
  o.config.model.layers = 2;
  o.config.model.hidden = 64;
  o.config.batch_size = 300;
  o.config.sampling.fanout = {15, 10};
  // As in the paper, features and sampling are on the host, because the loader's work is what is
  // measured.
  o.config.features_on = o.config.sample_on = "host";
  add_execution_options(command, o.config);
  command.without({"--mode", "--reorder"});
  add_batch_options(command, o.config);
  command.without({"--staleness", "--schedule"});
  add_talk_options(command);
  command.add_option("--graphs", c->graphs,
                     "data sets to measure, comma-separated; SPEC#WIDTH changes the width of the features");
  command.add_option("--models", c->models, "models to measure, comma-separated; default: gcn,sage,ngcf");
  command.add_option("--figures", c->figures, "figures to measure, from 15,16,17,18,19,20,reuse; default: all");
  command.add_option("--hidden", o.config.model.hidden).show_default().positive();
  command.add_option("--layers", o.config.model.layers).show_default().positive();
  command.add_option("--variants", c->variants,
                     "variants of Fig. 19, from serial,+overlap,+subtasks,+relax,+stream; default: all");
  command.add_option("--trace", c->trace, "write a timeline that Perfetto opens");
  command.add_option("--rounds", o.rounds, "measurements, of which the median is shown").show_default().positive();
  command.add_option("--batches", o.batches, "number of batches of an epoch").show_default().positive();
  command.add_option("--blocks", o.blocks, "number of batches that a tuned plan is used for again")
      .show_default()
      .positive();
  command.add_option("--out", o.out, "folder for CSV, JSON and SVG files").show_default();
  command.callback([c, command] { run_graphtensor(*c, command); });
}

}  // namespace nacre::cli
