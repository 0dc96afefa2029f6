// Defines nacre train, which trains a model, and prints its results.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "account.h"
#include "commands.h"
#include "disk_report.h"
#include "feature_report.h"
#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/base/trace.h"
#include "nacre/train/checkpoint.h"
#include "nacre/train/warm_start.h"
#include "operation_report.h"
#include "options.h"
#include "ranks.h"
#include "recommend.h"
#include "run_pictures.h"
#include "seeds.h"
#include "terminal.h"
#include "train_command.h"
#include "train_result.h"

namespace nacre::cli {
namespace {

nlohmann::json or_null(double value) { return nlohmann::json::parse(json_number(value)); }

struct TrainOutcome {
  TrainResult result;
  std::string metric;
  std::string json;
};

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
    if (const std::string line = features_line(session); !line.empty()) say_line(c.json, line);
  }
  if (const std::string line = schedule_line(session, r.epoch_ms_median); !line.empty()) say_line(c.json, line);
  if (const std::string line = disk_line(session); !line.empty()) say_line(c.json, line);
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
  if (folder.empty()) return;
  say_line(c.json, "run folder: " + printable(folder));
  if (r.interrupted) return;
  if (const std::string page = write_run_report(folder); !page.empty()) say_line(c.json, "report: " + printable(page));
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
    // Record a last span, whose name tells which resource was busiest.
    if (const Shares shares = shares_of(session); !shares.use.all.empty())
      const TraceSpan span("train", trace_name(shares.use.text()));
  }
  const std::string json = train_result_json(session, result, c.trainer.run_folder, account);
  write_result(session, json, c.trainer.run_folder, account);
  say_result(session, result, c, account);
  return {result, session.metric(), json};
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
    c.trainer.run_folder = parent.empty() ? "" : folder_of_seed(parent, seed);
    const TrainOutcome outcome = train_vertices(c, dataset, plan, account);
    metric = outcome.metric;
    runs.push_back(nlohmann::ordered_json::parse(outcome.json));
    test.push_back(outcome.result.test_score);
    val.push_back(outcome.result.val_score);
    signal = outcome.result.signal;
    // A signal in the last epoch of a run leaves that run complete, but no further seed is trained.
    interrupted = outcome.result.interrupted || (signal != 0 && seed != c.seeds.back());
    if (interrupted) break;
    if (plan.empty() && !c.trainer.run_folder.empty()) plan = c.trainer.run_folder + "/plan.json";
  }
  write_trace(c);
  const Spread of_test = spread_of(test), of_val = spread_of(val);
  for (size_t i = 0; i < test.size(); ++i) {
    say_line(c.json,
             fmt::format("seed {}: test {}, validation {}", c.seeds[i], score_text(test[i]), score_text(val[i])));
  }
  say_line(c.json,
           fmt::format("{} of {}: test {}, validation {}", metric, counted(static_cast<int64_t>(test.size()), "seed"),
                       spread_text(of_test), spread_text(of_val)));
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

// Throws UserError if several devices cannot do what the command asks for.
void refuse_with_ranks(const TrainCommand& c, const Dataset& dataset) {
  if (is_recommendation(dataset)) refuse_several_devices(c.config);
  if (c.processes != nullptr && !c.seeds.empty())
    throw UserError("--seeds", "trains several times, but processes that MPI has started train once",
                    "start one run for each seed with --seed");
}

void run_train(TrainCommand& c, const Command& command) {
  const Situation situation = checked_situation(c, command);
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
  const TrainedRecommender trained =
      train_recommender(std::move(dataset), {c.config, c.recommend, c.trainer, c.no_checkpoint, c.json}, account);
  write_trace(c);
  if (trained.result.interrupted) throw Interrupted{trained.result.signal};
}

}  // namespace

void add_train(Command app) {
  Command command = app.add_subcommand("train", "plan and train a model");
  const auto c = std::make_shared<TrainCommand>();
  add_train_options(command, *c);
  command.callback([c, command] {
    run_launched(c->config.ranks.timeout, [&](MpiRanks* processes) {
      c->processes = processes != nullptr && processes->size() > 1 ? processes : nullptr;
      run_train(*c, command);
    });
  });
}

}  // namespace nacre::cli
