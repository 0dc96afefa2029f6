#include "recommend.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "options.h"

namespace nacre::cli {
namespace {

nlohmann::json or_null(double value) { return nlohmann::json::parse(json_number(value)); }

std::string result_json(const RecommendSession& session, const TrainResult& r, const std::string& folder) {
  const RankingScores& test = session.test_ranking();
  const nlohmann::ordered_json j = {{"metric", session.metric()},
                                    {"test", or_null(r.test_score)},
                                    {"val", or_null(r.val_score)},
                                    {"last_recall", or_null(test.recall)},
                                    {"last_ndcg", or_null(test.ndcg)},
                                    {"users", test.users},
                                    {"epochs", r.epochs},
                                    {"steps_per_epoch", session.steps_per_epoch()},
                                    {"best_epoch", r.best_epoch},
                                    {"loss", r.final_loss},
                                    {"epoch_ms_median", r.epoch_ms_median},
                                    {"eval_ms_median", r.eval_ms_median},
                                    {"seconds", r.seconds},
                                    {"plan_s", session.plan_seconds()},
                                    {"peak_mb", static_cast<double>(peak_memory()) / (1 << 20)},
                                    {"planned_mb", static_cast<double>(total_bytes(session.memory())) / (1 << 20)},
                                    {"device", session.device_name()},
                                    {"plan", session.plan().name},
                                    {"plan_source", session.planning().source},
                                    {"model", session.config().model.model},
                                    {"data", session.dataset().name},
                                    {"seed", session.config().seed},
                                    {"interrupted", r.interrupted},
                                    {"stopped_early", r.stopped_early},
                                    {"run", folder}};
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void say_result(const RecommendSession& session, const TrainResult& r, const std::string& folder) {
  say_interrupted(r, folder);
  const RankingScores& test = session.test_ranking();
  const int64_t k = parse_ranking_metric(session.metric()).k;
  fmt::print("{} epochs of {} steps in {}{}: {:.1f} ms per epoch (median)\n", r.epochs, session.steps_per_epoch(),
             human_seconds(r.seconds), r.stopped_early ? ", stopped early" : "", r.epoch_ms_median);
  fmt::print("{}: test {}, validation {} (epoch {})\n", session.metric(), json_number(r.test_score),
             json_number(r.val_score), r.best_epoch);
  fmt::print("last epoch: recall@{} {}, ndcg@{} {} over {} users\n", k, json_number(test.recall), k,
             json_number(test.ndcg), human_count(test.users));
  if (!folder.empty()) fmt::print("run folder: {}\n", folder);
}

void set_positives(const std::string& text, RecommendOptions& options) {
  if (text != "users" && text != "pairs")
    throw UserError("--positives", "'" + text + "' means nothing", "use users or pairs");
  options.positives = text == "users" ? Positives::users : Positives::pairs;
}

}  // namespace

void add_recommend_options(Command command, RecommendOptions& options) {
  command
      .add_option("--embedding-decay", options.embedding_decay,
                  "recommendation: L2 penalty of a batch's learned rows, per triple")
      .show_default()
      .group("Training");
  command.add_option("--embedding-init", options.init_std, "recommendation: deviation that learned rows start from")
      .show_default()
      .group("Training");
  command
      .add_call(
          "--positives", [&options](const std::string& text) { set_positives(text, options); },
          "recommendation: items learned from are those of users drawn one by one (users), or every pair once in an "
          "epoch (pairs); default: users")
      .group("Training");
}

void train_recommender(Dataset dataset, RecommendRun run) {
  RecommendNeeds needs;
  const std::string last_plan = run.trainer.run_folder + "/plan.json";
  if (run.trainer.resume && std::filesystem::exists(last_plan)) needs.resumed_plan = last_plan;
  RecommendSession session(std::move(dataset), run.config, run.options, needs);
  for (const std::string& note : session.notes()) log_info("note: " + note);
  log_info("plan " + how_found(session.planning()));
  std::string bill = memory_text(session.memory());
  bill.pop_back();
  log_info("memory:\n" + bill);
  session.start();
  if (!run.no_checkpoint && run.trainer.run_folder.empty()) {
    const std::string stem = std::filesystem::path(session.dataset().name).stem().string();
    run.trainer.run_folder = fresh_run_folder("runs", stem + "-" + session.config().model.model);
  }
  const TrainResult result = train(session, run.trainer);
  say_result(session, result, run.trainer.run_folder);
  if (run.json) fmt::print("{}\n", result_json(session, result, run.trainer.run_folder));
}

}  // namespace nacre::cli
