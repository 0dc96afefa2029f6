// Defines nacre bench daha, which times epochs of mini-batches under each schedule (guarantee DA8
// of docs/dev/contract.md). All schedules run in one engine, on the same data and model, and their
// predicted times come from one EPG.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench_graphtensor.h"
#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/warnings.h"
#include "nacre/train/batch_schedules.h"
#include "nacre/train/batch_scheduling.h"
#include "options.h"
#include "statistics.h"

namespace nacre::cli {
namespace {

struct DahaCommand {
  RunConfig config;
  std::string models = "gcn,sage";
  std::string schedules;  // names of schedules; empty: all that this machine can run
  int rounds = 5;         // epochs of each schedule that are timed
  std::string json;
};

// Holds the times of one schedule. The name `auto` stands for a session that follows no schedule.
struct Timed {
  std::string name;
  std::unique_ptr<BatchSession> session;
  std::vector<double> seconds;  // seconds of each epoch but the first
};

// Name of the schedule that the others are compared with.
constexpr const char* kBaseline = "cpu-sample";

std::vector<std::string> wanted_schedules(const DahaCommand& c, bool gpu) {
  std::vector<std::string> known = {"auto"};
  for (const ScheduleName& schedule : schedule_names()) known.push_back(schedule.name);
  std::vector<std::string> names = split_list(c.schedules);
  for (std::string& name : names) name = choose_name("--schedules", "schedule", name, known, {});
  if (!names.empty()) return names;
  std::erase_if(known, [&](const std::string& name) { return name != "auto" && !can_follow(name, gpu); });
  return known;
}

// Opens a session for each schedule. Schedules that the settings do not allow are left out, with a
// note, unless they were asked for.
std::vector<Timed> open_sessions(const DahaCommand& c, const Dataset& data, const RunConfig& config,
                                 const std::vector<std::string>& names) {
  std::vector<Timed> all;
  for (const std::string& name : names) {
    RunConfig own = config;
    own.batch_schedule = name;
    try {
      all.push_back({name, std::make_unique<BatchSession>(data, own, SessionNeeds{.evaluation = false}), {}});
      all.back().session->start();
    } catch (const UserError& error) {
      if (!c.schedules.empty()) throw;
      log_note(std::string("left out: ") + error.what());
      if (!all.empty() && all.back().name == name) all.pop_back();
    }
  }
  return all;
}

// Times the schedules, which take turns of one epoch each. The first epoch of each schedule is not
// counted, because it allocates memory.
void time_epochs(const DahaCommand& c, std::vector<Timed>& all) {
  for (int64_t epoch = 0; epoch <= c.rounds; ++epoch) {
    for (Timed& timed : all) {
      const auto batches = static_cast<int>(timed.session->batches_per_epoch());
      const EpochTimes times = run_epoch(*timed.session, epoch, batches);
      if (epoch > 0) timed.seconds.push_back(times.seconds);
    }
  }
}

Report report_columns() {
  return Report({"model", "schedule", "epoch_ms", "least_ms", "most_ms", "predicted_ms", "bound_ms", "gap_percent",
                 "measured_over_predicted", "speedup", "batches", "drawn_on_host", "computed_on_host"});
}

void add_rows(const std::string& model, const RunSchedules& planned, const std::vector<Timed>& all, Report& report) {
  const auto base = std::find_if(all.begin(), all.end(), [](const Timed& t) { return t.name == kBaseline; });
  const double scheduled = std::max(1, planned.graph.num_batches());
  for (const Timed& timed : all) {
    const double seconds = median(timed.seconds);
    const auto [least, most] = std::minmax_element(timed.seconds.begin(), timed.seconds.end());
    const double batches = static_cast<double>(timed.session->batches_per_epoch()) / scheduled;
    const NamedSchedule* found = planned.comparison.find(timed.name);
    const double predicted = found == nullptr ? -1 : found->timeline.makespan * batches;
    const double bound = planned.comparison.bound.seconds * batches;
    const ScheduleReport did = timed.session->schedule_report();
    report.add({model, timed.name, cell(seconds * 1e3), cell(*least * 1e3), cell(*most * 1e3),
                found == nullptr ? "" : cell(predicted * 1e3), cell(bound * 1e3),
                found == nullptr ? "" : cell(100 * std::max(0.0, gap_of(*found, planned.comparison.bound))),
                found == nullptr ? "" : cell(seconds / predicted),
                base == all.end() ? "" : cell(median(base->seconds) / seconds),
                std::to_string(timed.session->batches_per_epoch()), std::to_string(did.drawn_on_host),
                std::to_string(did.computed_on_host)});
  }
}

void run_daha(DahaCommand& c, const Command& command) {
  c.config.mode = "minibatch";
  apply_execution(c.config);
  const std::vector<std::string> models = split_list(c.models);
  for (const std::string& model : models) model_info(model);
  if (c.config.shuffle == "adaptive")
    throw UserError("--shuffle adaptive", "follows the accuracy of a run, which this benchmark does not measure",
                    "use always or never");
  Situation situation = situation_of(c.config);
  situation.models = models;
  situation.data = DataKind::nodes;
  refuse_idle(command, situation);
  if (!c.json.empty()) PendingFile::check(c.json);
  const std::vector<std::string> names = wanted_schedules(c, choose_device(c.config.device, c.config.precision).gpu);
  const Dataset data = open_data(c.config);
  Report report = report_columns();
  for (const std::string& model : models) {
    RunConfig config = c.config;
    config.model.model = model;
    RunConfig plain = config;
    plain.staleness = 0;
    RunSchedules planned;
    {
      BatchSession session(data, plain, {.evaluation = false});
      planned = find_schedules(session, config.staleness);
    }
    std::vector<Timed> all = open_sessions(c, data, config, names);
    time_epochs(c, all);
    add_rows(model, planned, all, report);
    if (!c.json.empty()) write_file(c.json, report.json() + "\n");
  }
  fmt::print("{}", report.text());
}

}  // namespace

void add_bench_daha(Command bench) {
  Command command = bench.add_subcommand("daha", "mini-batches: epochs by schedule, measured and predicted");
  const auto c = std::make_shared<DahaCommand>();
  c->config.data = "twin:arxiv@0.2";
  c->config.model.layers = 2;
  c->config.model.hidden = 64;
  c->config.batch_size = 512;
  c->config.sampling.fanout = {10, 5};
  add_data_options(command, c->config, false);
  add_execution_options(command, c->config);
  command.without({"--mode", "--reorder"});
  add_batch_options(command, c->config);
  command.without({"--schedule", "--no-subtasks", "--no-relax", "--no-stream", "--prefetch", "--sample-on",
                   "--locality", "--host-budget", "--pack", "--pack-folder"});
  add_talk_options(command);
  command.add_option("--models", c->models, "models to measure, comma-separated").show_default();
  command.add_option("--schedules", c->schedules,
                     "schedules to measure, comma-separated; auto = none; default: all that can run");
  command.add_option("--hidden", c->config.model.hidden).show_default().positive();
  command.add_option("--layers", c->config.model.layers).show_default().positive();
  command.add_option("--rounds", c->rounds, "epochs of each schedule, of which the median is shown")
      .show_default()
      .positive();
  command.add_option("--json", c->json, "also write the table to this file");
  command.callback([c, command] { run_daha(*c, command); });
}

}  // namespace nacre::cli
