#include "recommend.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/base/names.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/printable.h"
#include "nacre/base/warnings.h"
#include "nacre/data/npz_write_arrays.h"
#include "nacre/train/checkpoint.h"
#include "options.h"
#include "run_pictures.h"
#include "terminal.h"
#include "vertex_names.h"

namespace nacre::cli {
namespace {

nlohmann::json or_null(double value) { return nlohmann::json::parse(json_number(value)); }

std::string result_json(const RecommendSession& session, const TrainResult& r, const std::string& folder,
                        const MemoryAccount& account) {
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
                                    {"planned_mb", static_cast<double>(account.planned()) / (1 << 20)},
                                    {"phases_mb", nlohmann::ordered_json::parse(account.phases_json())},
                                    {"device", session.device().name()},
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

// Writes the results and the memory bill as result.json into the run folder, if there is one.
void write_result(const RecommendSession& session, const std::string& json, const std::string& folder,
                  const MemoryAccount& account) {
  if (folder.empty()) return;
  auto all = nlohmann::ordered_json::parse(json);
  all["bill"] = nlohmann::ordered_json::parse(account.bill_json());
  if (!session.device().on_host()) {
    const auto parts = nlohmann::ordered_json::parse(items_json(session.memory()));
    all["bill"].push_back({{"phase", "device"}, {"items", parts}});
  }
  write_file(folder + "/result.json", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void say_result(const RecommendSession& session, const TrainResult& r, const RecommendRun& run,
                const MemoryAccount& account) {
  const std::string& folder = run.trainer.run_folder;
  say_interrupted(r, folder);
  const RankingScores& test = session.test_ranking();
  const int64_t k = parse_ranking_metric(session.metric()).k;
  const auto strong = [&](const std::string& text) { return bold(text, run.json ? Stream::err : Stream::out); };
  if (r.epochs > 0) {
    say_line(run.json,
             fmt::format("{} of {} in {}{}: {} per epoch (median)", counted(r.epochs, "epoch"),
                         counted(session.steps_per_epoch(), "step"), human_seconds(r.seconds),
                         r.stopped_early ? ", stopped early" : "", strong(human_seconds(r.epoch_ms_median / 1e3))));
  } else {
    say_line(run.json, "no epoch was finished in " + human_seconds(r.seconds));
  }
  if (r.best_epoch > 0) {
    say_line(run.json, fmt::format("{}: test {}, validation {} (epoch {})", session.metric(),
                                   strong(score_text(r.test_score)), strong(score_text(r.val_score)), r.best_epoch));
  }
  if (test.users > 0) {
    say_line(run.json, fmt::format("last epoch: recall@{} {}, ndcg@{} {} over {}", k, score_text(test.recall), k,
                                   score_text(test.ndcg), counted(test.users, "user")));
  }
  say_line(run.json, account.closing_line());
  if (folder.empty()) return;
  say_line(run.json, "run folder: " + printable(folder));
  if (r.interrupted) return;
  if (const std::string page = write_run_report(folder); !page.empty())
    say_line(run.json, "report: " + printable(page));
}

void set_positives(const std::string& text, RecommendOptions& options) {
  const std::string way = choose_name("--positives", "choice", text, {"users", "pairs"});
  options.positives = way == "users" ? Positives::users : Positives::pairs;
}

}  // namespace

void add_recommend_options(Command command, RecommendOptions& options) {
  command
      .add_option("--embedding-decay", options.embedding_decay,
                  "recommendation: L2 penalty on the learned rows of a batch")
      .show_default()
      .group("Training");
  command
      .add_option("--embedding-init", options.init_std,
                  "recommendation: standard deviation of the learned rows at the start")
      .show_default()
      .group("Training");
  command
      .add_call(
          "--positives", [&options](const std::string& text) { set_positives(text, options); },
          "recommendation: each step draws users and one item of each (users), or every pair is used once "
          "in an epoch (pairs); default: users")
      .group("Training");
}

void refuse_several_devices(const RunConfig& config) {
  if (config.ranks.several())
    throw UserError("--devices", "recommenders train on one device", "leave out --devices, or use --device");
}

TrainedRecommender train_recommender(Dataset dataset, RecommendRun run, MemoryAccount& account) {
  refuse_several_devices(run.config);
  RecommendNeeds needs;
  const std::string last_plan = run.trainer.run_folder + "/plan.json";
  if (run.trainer.resume && std::filesystem::exists(last_plan)) needs.resumed_plan = last_plan;
  RecommendSession session(std::move(dataset), run.config, run.options, needs);
  for (const std::string& note : session.notes()) log_note(note);
  log_info("plan " + how_found(session.planning()));
  account.present(session.host());
  session.start();
  if (!run.no_checkpoint && run.trainer.run_folder.empty()) {
    const std::string stem = std::filesystem::path(session.dataset().name).stem().string();
    run.trainer.run_folder = fresh_run_folder("runs", stem + "-" + session.config().model.model);
  }
  const TrainResult result = train(session, run.trainer);
  const std::string json = result_json(session, result, run.trainer.run_folder, account);
  write_result(session, json, run.trainer.run_folder, account);
  if (!run.silent) say_result(session, result, run, account);
  if (run.json) fmt::print("{}\n", json);
  return {result, json, run.trainer.run_folder};
}

std::unique_ptr<RecommendSession> open_recommender(Dataset dataset, const RunConfig& config,
                                                   const RecommenderUse& use) {
  auto session = std::make_unique<RecommendSession>(std::move(dataset), config, RecommendOptions{},
                                                    RecommendNeeds{.training = false});
  for (const std::string& note : session->notes()) log_note(note);
  HostMemory host = session->host();
  if (use.writing) host.writing = {{"output being written", use.writing(*session)}};
  use.account.present(host);
  load_weights(use.trained.read_weights(), use.trained.file, session->parameters());
  session->start();
  return session;
}

void evaluate_recommender(Dataset dataset, const RunConfig& config, const RecommenderUse& use, bool json) {
  const auto session = open_recommender(std::move(dataset), config, use);
  const Scores scores = session->evaluate(false);
  const int64_t k = parse_ranking_metric(session->metric()).k;
  const RankingScores& test = session->test_ranking();
  say_line(json, fmt::format("{}: validation {}, test {}", session->metric(), score_text(scores.val),
                             score_text(scores.test)));
  say_line(json, fmt::format("test: recall@{} {}, ndcg@{} {} over {}", k, score_text(test.recall), k,
                             score_text(test.ndcg), counted(test.users, "user")));
  if (!json) return;
  const nlohmann::ordered_json j = {{"metric", session->metric()}, {"test", or_null(scores.test)},
                                    {"val", or_null(scores.val)},  {"recall", or_null(test.recall)},
                                    {"ndcg", or_null(test.ndcg)},  {"users", test.users}};
  fmt::print("{}\n", j.dump());
}

void write_best_items(Dataset dataset, const RunConfig& config, const RecommenderUse& use, const BestItems& wanted) {
  const bool csv = wanted.output.ends_with(".csv");
  if (!csv && !wanted.output.ends_with(".npy")) {
    throw UserError("--output", "'" + wanted.output + "' has an unknown ending",
                    "items are written to .csv or .npy, --embeddings to .safetensors too");
  }
  const auto most = [&](const RecommendSession& s) { return std::min(wanted.top, s.sides().num_items); };
  const auto session =
      open_recommender(std::move(dataset), config,
                       {use.trained, use.account, [&](const RecommendSession& s) { return s.ranking_bytes(most(s)); }});
  const Dataset& d = session->dataset();
  const UserItemSides& sides = session->sides();
  const int64_t width = session->embedding_width();
  const float* rows = session->embeddings();
  const auto row = [&](int64_t vertex) { return rows + vertex * width; };
  std::vector<NodeId> users(sides.num_users);
  std::iota(users.begin(), users.end(), NodeId{0});
  const int64_t k = most(*session);
  const std::vector<NodeId> best =
      best_items({row(sides.first_user), row(sides.first_item), width}, session->taken(), users, k);
  if (csv) {
    PendingFile out(wanted.output);
    out.append("user,rank,item,score\n");
    for (int64_t u = 0; u < sides.num_users; ++u) {
      const int64_t user = sides.first_user + u;
      const std::string name = csv_name(d, user);
      std::string lines;
      for (int64_t r = 0; r < k && best[u * k + r] != kNoItem; ++r) {
        const int64_t item = sides.first_item + int64_t{best[u * k + r]};
        const double score = std::inner_product(row(user), row(user) + width, row(item), 0.0);
        lines += fmt::format("{},{},{},{:.6g}\n", name, r + 1, csv_name(d, item), score);
      }
      out.append(lines);
    }
    out.commit();
  } else {
    write_npy<int64_t>(wanted.output, {sides.num_users, k}, [&](int64_t i) {
      const NodeId item = best[i];
      return item == kNoItem ? -1 : original_id(d, sides.first_item + int64_t{item});
    });
  }
  fmt::print("{} items for each of {} users: {}\n", k, human_count(sides.num_users), printable(wanted.output));
}

}  // namespace nacre::cli
