// nacre train
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "account.h"
#include "commands.h"
#include "matters.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/names.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/base/trace.h"
#include "nacre/base/warnings.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/checkpoint.h"
#include "nacre/train/warm_start.h"
#include "options.h"
#include "ranks.h"
#include "recommend.h"
#include "seeds.h"
#include "terminal.h"

namespace nacre::cli {
namespace {

struct TrainCommand {
  RunConfig config;
  RecommendOptions recommend;  // options for data of users and items
  TrainerOptions trainer;
  std::string config_file;  // read before the command line is parsed
  bool no_checkpoint = false;
  bool json = false;
  bool init_partial = false;
  std::vector<uint64_t> seeds;  // empty: one run
  std::string trace;
  MpiRanks* processes = nullptr;  // the processes that MPI has started; null if it has started none
};

struct TrainOutcome {
  TrainResult result;
  std::string metric;
  std::string json;
};

nlohmann::json or_null(double value) { return nlohmann::json::parse(json_number(value)); }

// Returns the peak of GPU memory in bytes; negative if there is no GPU.
double device_peak(const VertexModel& session) { return static_cast<double>(session.device().peak_bytes()); }

nlohmann::json fullest_of(const ResourceUse& use) {
  return use.all.empty() ? nlohmann::json() : nlohmann::json(use.all.front().name);
}

// Shares of the time that the steps of mini-batches took, in percent; negative if a share does not
// apply.
struct Shares {
  double waiting = -1, device = -1;
  ResourceUse use;  // on a GPU
};

Shares shares_of(VertexModel& session) {
  auto* batches = dynamic_cast<BatchSession*>(&session);
  if (batches == nullptr) return {};
  const StepTimes t = batches->step_times();
  if (t.all() <= 0) return {};
  const double waiting = 100 * t.waited / t.all();
  if (session.device().on_host()) return {waiting, -1, {}};
  return {waiting, 100 * t.device / t.all(), batches->resource_use()};
}

std::string result_json(VertexModel& session, const TrainResult& r, const std::string& folder,
                        const MemoryAccount& account) {
  const Shares shares = shares_of(session);
  const int64_t planned = session.device().on_host() ? account.planned() : total_bytes(session.memory());
  const nlohmann::ordered_json j = {{"test_acc", or_null(r.test_score)},
                                    {"val_acc", or_null(r.val_score)},
                                    {"train_acc", or_null(r.train_score)},
                                    {"last_test_acc", or_null(r.last_test_score)},
                                    {"metric", session.metric()},
                                    {"epochs", r.epochs},
                                    {"best_epoch", r.best_epoch},
                                    {"loss", r.final_loss},
                                    {"epoch_ms_median", r.epoch_ms_median},
                                    {"epoch_ms_p10", r.epoch_ms_p10},
                                    {"epoch_ms_p90", r.epoch_ms_p90},
                                    {"eval_ms_median", r.eval_ms_median},
                                    {"seconds", r.seconds},
                                    {"plan_s", session.plan_seconds()},
                                    {"peak_mb", static_cast<double>(peak_memory()) / (1 << 20)},
                                    {"planned_mb", static_cast<double>(planned) / (1 << 20)},
                                    {"host_planned_mb", static_cast<double>(account.planned()) / (1 << 20)},
                                    {"phases_mb", nlohmann::ordered_json::parse(account.phases_json())},
                                    {"device_peak_mb", or_null(device_peak(session) / (1 << 20))},
                                    {"waiting_percent", or_null(shares.waiting)},
                                    {"device_percent", or_null(shares.device)},
                                    {"host_threads_percent", or_null(shares.use.percent("host threads"))},
                                    {"launching_percent", or_null(shares.use.percent("launching thread"))},
                                    {"link_percent", or_null(shares.use.percent("link"))},
                                    {"fullest", fullest_of(shares.use)},
                                    {"device", device_text(session)},
                                    {"ranks", ranks_json(session)},
                                    {"plan", session.plan().name},
                                    {"plan_source", session.planning().source},
                                    {"model", session.config().model.model},
                                    {"data", session.dataset().name},
                                    {"seed", session.config().seed},
                                    {"interrupted", r.interrupted},
                                    {"stopped_early", r.stopped_early},
                                    {"run", folder},
                                    {"warnings", warnings_so_far()}};
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Prints the results of a run for people.
void say_result(VertexModel& session, const TrainResult& r, const TrainCommand& c, const MemoryAccount& account) {
  const std::string& folder = c.trainer.run_folder;
  const auto ms = [](double value) { return human_seconds(value / 1e3); };
  const auto strong = [&](const std::string& text) { return bold(text, c.json ? Stream::err : Stream::out); };
  say_interrupted(r, folder);
  if (r.epochs > 0) {
    say_line(c.json, fmt::format("{} in {}{}: {} per epoch (median; 10-90 %: {} to {})", counted(r.epochs, "epoch"),
                                 human_seconds(r.seconds), r.stopped_early ? ", stopped early" : "",
                                 strong(ms(r.epoch_ms_median)), ms(r.epoch_ms_p10), ms(r.epoch_ms_p90)));
  } else {
    say_line(c.json, "no epoch was finished in " + human_seconds(r.seconds));
  }
  if (const Shares shares = shares_of(session); shares.waiting >= 0) {
    say_line(
        c.json,
        fmt::format("{:.1f} % of the steps' time spent waiting for batches{}", shares.waiting,
                    shares.device < 0 ? "" : fmt::format(", steps under way on the device {:.1f} %", shares.device)));
    if (!shares.use.all.empty()) say_line(c.json, shares.use.text());
  }
  say_ranks(session, c.json);
  if (r.best_epoch > 0) {
    say_line(c.json, fmt::format("{}: test {}, validation {} (epoch {})", session.metric(),
                                 strong(score_text(r.test_score)), strong(score_text(r.val_score)), r.best_epoch));
  }
  if (!session.device().on_host()) {
    say_line(c.json, fmt::format("memory of the device: {} planned, {} at the peak",
                                 human_bytes(static_cast<double>(total_bytes(session.memory()))),
                                 human_bytes(device_peak(session))));
  }
  say_line(c.json, account.closing_line());
  if (!folder.empty()) say_line(c.json, "run folder: " + printable(folder));
}

// Returns the bytes of the checkpoint that the run continues from, or of the weights that it begins
// with.
int64_t loaded_bytes(const TrainCommand& c) {
  const int64_t resumed = c.trainer.resume ? checkpoint_bytes(c.trainer.run_folder) : 0;
  return resumed > 0 || c.config.init.empty() ? resumed : warm_start_bytes(c.config.init);
}

// Takes the weights of another run, unless the run continues with its own.
void take_first_weights(const TrainCommand& c, VertexModel& session) {
  if (c.config.init.empty()) return;
  if (c.trainer.resume && has_checkpoint(c.trainer.run_folder)) {
    log_note("--init is ignored, because the run continues from its checkpoint");
    return;
  }
  const int count = warm_start(c.config.init, c.init_partial, session.parameters());
  log_info(fmt::format("{} of {} parameters start with the values of {}", count, session.parameters().list().size(),
                       c.config.init));
}

// `first_plan` is the plan file of an earlier run that differs only in its seed; empty if there is
// none.
SessionNeeds needs_of(const TrainCommand& c, const std::string& first_plan) {
  SessionNeeds needs;
  needs.mpi = c.processes;
  needs.resumed_plan = first_plan;
  const std::string last_plan = c.trainer.run_folder + "/plan.json";
  if (c.trainer.resume && std::filesystem::exists(last_plan)) needs.resumed_plan = last_plan;
  return needs;
}

TrainOutcome train_vertices(TrainCommand& c, Dataset dataset, const std::string& first_plan, MemoryAccount& account) {
  const SessionNeeds needs = needs_of(c, first_plan);
  const std::unique_ptr<VertexModel> model = make_session(std::move(dataset), c.config, needs);
  VertexModel& session = *model;
  show_session(session);
  account.present(session.host());
  take_first_weights(c, session);
  session.start();
  if (!c.no_checkpoint && c.trainer.run_folder.empty()) {
    const std::string stem = std::filesystem::path(session.dataset().name).stem().string();
    c.trainer.run_folder = fresh_run_folder("runs", stem + "-" + session.config().model.model);
  }
  const TrainResult result = train(session, c.trainer);
  if (!c.trace.empty()) {
    // A last span in the timeline names the resource that was busiest.
    if (const Shares shares = shares_of(session); !shares.use.all.empty())
      const TraceSpan span("train", trace_name(shares.use.text()));
  }
  say_result(session, result, c, account);
  return {result, session.metric(), result_json(session, result, c.trainer.run_folder, account)};
}

void write_trace(const TrainCommand& c) {
  if (!c.trace.empty()) trace_write(c.trace);
}

// Trains one run for each seed, in a folder of its own, on the same data and, if the first plan was
// stored, with the same plan.
void train_seeds(TrainCommand c, const Dataset& dataset, MemoryAccount& account) {
  const std::string parent = c.trainer.run_folder;
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  std::vector<double> test, val;
  std::string plan, metric;
  bool interrupted = false;
  int signal = 0;
  for (const uint64_t seed : c.seeds) {
    log_info(fmt::format("seed {}", seed));
    c.config.seed = seed;
    c.trainer.run_folder = parent.empty() ? "" : fmt::format("{}/seed-{}", parent, seed);
    const TrainOutcome outcome = train_vertices(c, dataset, plan, account);
    metric = outcome.metric;
    runs.push_back(nlohmann::ordered_json::parse(outcome.json));
    test.push_back(outcome.result.test_score);
    val.push_back(outcome.result.val_score);
    interrupted = outcome.result.interrupted;
    signal = outcome.result.signal;
    if (interrupted) break;
    if (plan.empty() && !c.trainer.run_folder.empty()) plan = c.trainer.run_folder + "/plan.json";
  }
  write_trace(c);
  const Spread of_test = spread_of(test), of_val = spread_of(val);
  for (size_t i = 0; i < test.size(); ++i) {
    say_line(c.json,
             fmt::format("seed {}: test {}, validation {}", c.seeds[i], score_text(test[i]), score_text(val[i])));
  }
  say_line(c.json, fmt::format("{} of {} seeds: test {}, validation {}", metric, test.size(), spread_text(of_test),
                               spread_text(of_val)));
  if (!c.json) {
    if (interrupted) throw Interrupted{signal};
    return;
  }
  const nlohmann::ordered_json j = {
      {"metric", metric},
      {"seeds", std::vector<uint64_t>(c.seeds.begin(), c.seeds.begin() + static_cast<int64_t>(test.size()))},
      {"test_acc_mean", or_null(of_test.mean)},
      {"test_acc_std", or_null(of_test.deviation)},
      {"val_acc_mean", or_null(of_val.mean)},
      {"val_acc_std", or_null(of_val.deviation)},
      {"interrupted", interrupted},
      {"runs", runs}};
  fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  if (interrupted) throw Interrupted{signal};
}

void check_seeds(const TrainCommand& c, const Command& command) {
  if (c.seeds.empty()) return;
  if (command.given("--seed"))
    throw UserError("--seeds", "cannot be given together with --seed", "give one of the two");
  if (!c.trainer.metrics_file.empty()) {
    throw UserError("--metrics", "is one file, but --seeds trains several times",
                    "leave it out: every run folder holds a metrics.jsonl");
  }
}

// Throws UserError if several devices cannot do what the command asks for.
void refuse_with_ranks(const TrainCommand& c, const Dataset& dataset) {
  if (is_recommendation(dataset))
    throw UserError("--devices", "recommenders train on one device", "leave out --devices, or use --device");
  if (c.processes != nullptr && !c.seeds.empty())
    throw UserError("--seeds", "trains several times, but processes that MPI has started train once",
                    "start one run for each seed with --seed");
}

// A run that is resumed by another number of processes has other devices than before.
void forget_devices(TrainCommand& c, const Command& command) {
  RankOptions& ranks = c.config.ranks;
  if (c.processes == nullptr || command.given("--devices") ||
      ranks.devices.size() == static_cast<size_t>(c.processes->size()))
    return;
  ranks.devices.clear();
  if (!command.given("--shares")) ranks.shares.clear();
}

void run(TrainCommand& c, const Command& command) {
  if (c.no_checkpoint && (c.trainer.resume || !c.trainer.run_folder.empty())) {
    throw UserError("--no-checkpoint", "cannot be given together with --checkpoint or --resume",
                    "leave one of them out");
  }
  if (c.trainer.resume && c.trainer.run_folder.empty())
    throw UserError("--resume", "needs the folder to continue from", "write --resume RUN, or add --checkpoint RUN");
  if (c.trainer.checkpoint_every < 0) throw UserError("--checkpoint-every", "must not be negative");
  if (c.trainer.keep < 1) throw UserError("--keep", "must be at least 1");
  check_seeds(c, command);
  check_training(c.config);
  forget_devices(c, command);
  apply_execution(c.config);
  Situation situation = situation_of(c.config);
  situation.processes = c.processes != nullptr && !c.config.ranks.several();
  if (situation.processes) situation.gpu = false;
  situation.keeps_run = !c.no_checkpoint;
  refuse_idle(command, situation);
  if (c.processes != nullptr) take_processes(*c.processes, c.config);
  const bool follows = c.processes != nullptr && c.processes->rank() > 0;
  // An output that cannot be written must be refused before hours of training.
  for (const std::string& file : {c.trace, c.trainer.metrics_file}) {
    if (!file.empty() && !follows) PendingFile::check(file);
  }
  if (!c.trace.empty() && !follows) trace_start(c.trace);
  c.config.folder = std::filesystem::current_path().string();
  MemoryAccount account(c.config, {.trains = true, .loaded = loaded_bytes(c)});
  Dataset dataset = open_data(c.config);
  refuse_idle(command, with_data(situation, dataset));
  if (c.config.ranks.several()) refuse_with_ranks(c, dataset);
  if (follows) return follow_first(std::move(dataset), c.config, needs_of(c, ""));
  if (!is_recommendation(dataset)) {
    if (!c.seeds.empty()) return train_seeds(c, dataset, account);
    const TrainOutcome outcome = train_vertices(c, std::move(dataset), "", account);
    write_trace(c);
    if (c.json) fmt::print("{}\n", outcome.json);
    if (outcome.result.interrupted) throw Interrupted{outcome.result.signal};
    return;
  }
  c.recommend.batch_size = c.config.batch_size;
  const TrainResult result =
      train_recommender(std::move(dataset), {c.config, c.recommend, c.trainer, c.no_checkpoint, c.json}, account);
  write_trace(c);
  if (result.interrupted) throw Interrupted{result.signal};
}

}  // namespace

void add_train(Command app) {
  Command command = app.add_subcommand("train", "plan and train a model");
  const auto c = std::make_shared<TrainCommand>();
  add_data_options(command, c->config, true);
  add_model_options(command, c->config);
  add_training_options(command, c->config);
  add_execution_options(command, c->config);
  add_rank_options(command, c->config);
  add_pass_option(command, c->config);
  add_batch_options(command, c->config);
  add_recommend_options(command, c->recommend);
  command
      .add_call(
          "--seeds", [c = c.get()](const std::string& text) { c->seeds = parse_seeds(text); },
          "train once for each seed, for example 0-9 or 0,3,7, and print the mean and deviation of the scores")
      .group("Training");
  command.add_option("--init", c->config.init, "start with the weights of a run folder or .safetensors file")
      .group("Training");
  command.add_flag("--init-partial", c->init_partial, "take only those weights of --init that fit the model")
      .group("Training");
  command.add_option("--config", c->config_file,
                     "read settings from a TOML file or the config.json of a run; the command line wins");
  add_talk_options(command);
  command
      .add_option("--checkpoint", c->trainer.run_folder,
                  "run folder for checkpoints, metrics and final weights; default: a new one under runs/")
      .group("Output");
  command
      .add_flag(
          "--resume", c->trainer.resume,
          "--resume RUN: continue that run from its newest checkpoint, with its own settings; alone: continue the\n"
          "one in --checkpoint with the settings given, or start a new run if there is none")
      .group("Output");
  command.add_option("--checkpoint-every", c->trainer.checkpoint_every, "epochs between checkpoints; default: by time")
      .group("Output");
  command.add_option("--keep", c->trainer.keep, "number of newest checkpoints that are kept")
      .show_default()
      .group("Output");
  command.add_flag("--no-checkpoint", c->no_checkpoint, "write no run folder").group("Output");
  command
      .add_option("--metrics", c->trainer.metrics_file,
                  "JSON lines, one per epoch; default: metrics.jsonl in the run folder")
      .group("Output");
  command.add_option("--trace", c->trace, "write a timeline that Perfetto opens").group("Output");
  command.add_flag("--json", c->json, "print one JSON object on stdout, and nothing else").group("Output");
  command.callback([c, command] {
    run_launched([&](MpiRanks* processes) {
      c->processes = processes != nullptr && processes->size() > 1 ? processes : nullptr;
      run(*c, command);
    });
  });
}

}  // namespace nacre::cli
