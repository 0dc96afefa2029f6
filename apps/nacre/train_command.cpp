#include "train_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/warnings.h"
#include "nacre/train/checkpoint.h"
#include "nacre/train/warm_start.h"
#include "options.h"
#include "ranks.h"
#include "recommend.h"
#include "seeds.h"

namespace nacre::cli {
namespace {

std::vector<std::string> log_names() { return {"csv", "tensorboard"}; }

std::vector<std::string> parse_logs(const std::string& text) {
  std::vector<std::string> logs;
  for (const std::string& given : split_list(text)) {
    const std::string name = choose_name("--log", "log", given, log_names(), {{"tb", "tensorboard"}});
    if (std::find(logs.begin(), logs.end(), name) == logs.end()) logs.push_back(name);
  }
  return logs;
}

void check_seeds(const TrainCommand& c, const Command& command) {
  if (c.seeds.empty()) return;
  if (command.given("--seed"))
    throw UserError("--seeds", "cannot be given together with --seed", "give one of the two");
  if (!c.trainer.metrics_file.empty()) {
    throw UserError("--metrics", "is one file, but --seeds trains several times",
                    "leave it out: every run folder holds a metrics.jsonl");
  }
  if (c.trainer.resume && has_checkpoint(c.trainer.run_folder)) {
    throw UserError("--seeds", "trains a run for each seed, but " + c.trainer.run_folder + " holds a single run",
                    "leave --seeds or --resume out, or name another --checkpoint folder");
  }
}

// Throws UserError if an option asks for another plan or another order of nodes than those of the
// run in `folder`.
void check_kept_plan(const std::string& folder, const TrainCommand& c, const Command& command) {
  const std::string settings = folder + "/config.json";
  if (!has_checkpoint(folder) || !std::filesystem::exists(settings)) return;
  const auto kept = parse_json<nlohmann::json>(read_file(settings), settings).value("execution", nlohmann::json());
  if (!kept.is_object() || kept.contains("devices")) return;
  const nlohmann::json asked = {{"plan", c.config.plan},
                                {"recompute", c.config.recompute},
                                {"reorder", c.config.reorder},
                                {"disable_pass", c.config.disabled_passes}};
  const RunConfig usual;
  const nlohmann::json unsaid = {{"plan", usual.plan},
                                 {"recompute", usual.recompute},
                                 {"reorder", usual.reorder},
                                 {"disable_pass", usual.disabled_passes}};
  for (const auto& [key, value] : asked.items()) {
    std::string option = "--" + key;
    std::replace(option.begin(), option.end(), '_', '-');
    if (!command.given(option) || kept.value(key, unsaid[key]) == value) continue;
    throw UserError(option, "has no effect, because the run in " + folder + " keeps its plan when it is resumed",
                    "leave it out, or start a new run (--init " + folder + " begins with the weights of this one)");
  }
}

// Throws UserError if an option asks for another plan or order of nodes than a resumed run has. The
// run keeps both, so that it continues bit for bit. With --seeds, each seed has a folder of its
// own, in which a run may be resumed.
void check_kept_plans(const TrainCommand& c, const Command& command) {
  if (!c.trainer.resume || c.config.ranks.several()) return;
  if (c.seeds.empty()) check_kept_plan(c.trainer.run_folder, c, command);
  for (const uint64_t seed : c.seeds) check_kept_plan(folder_of_seed(c.trainer.run_folder, seed), c, command);
}

// Forgets the devices that a resumed run had before if it now has another number of processes.
void forget_devices(TrainCommand& c, const Command& command) {
  RankOptions& ranks = c.config.ranks;
  if (c.processes == nullptr || command.given("--devices") ||
      ranks.devices.size() == static_cast<size_t>(c.processes->size()))
    return;
  ranks.devices.clear();
  if (!command.given("--shares")) ranks.shares.clear();
}

}  // namespace

Situation checked_situation(TrainCommand& c, const Command& command) {
  if (c.no_checkpoint && (c.trainer.resume || !c.trainer.run_folder.empty())) {
    throw UserError("--no-checkpoint", "cannot be given together with --checkpoint or --resume",
                    "leave one of them out");
  }
  if (c.trainer.resume && c.trainer.run_folder.empty())
    throw UserError("--resume", "needs the folder to continue from", "write --resume RUN, or add --checkpoint RUN");
  if (c.trainer.checkpoint_every < 0) throw UserError("--checkpoint-every", "must not be negative");
  if (c.trainer.keep < 1) throw UserError("--keep", "must be at least 1");
  check_seeds(c, command);
  check_kept_plans(c, command);
  check_training(c.config);
  forget_devices(c, command);
  // A process checks its own device only: other machines may have other GPUs.
  if (c.processes != nullptr) divide_devices(*c.processes, c.config.ranks);
  if (c.processes == nullptr && c.trainer.resume && !command.given("--devices")) join_devices(c.config.ranks);
  apply_execution(c.config);
  const bool named = c.config.ranks.several();  // whether the user has named devices
  if (c.processes != nullptr) take_processes(*c.processes, c.config);
  Situation situation = situation_of(c.config);
  situation.launched = c.processes != nullptr;
  situation.processes = situation.launched && !named;
  situation.keeps_run = !c.no_checkpoint;
  refuse_idle(command, situation);
  return situation;
}

int64_t loaded_bytes(const TrainCommand& c) {
  const int64_t resumed = c.trainer.resume ? checkpoint_bytes(c.trainer.run_folder) : 0;
  return resumed > 0 || c.config.init.empty() ? resumed : warm_start_bytes(c.config.init);
}

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

SessionNeeds needs_of(const TrainCommand& c, const std::string& first_plan) {
  SessionNeeds needs;
  needs.mpi = c.processes;
  needs.resumed_plan = first_plan;
  const std::string last_plan = c.trainer.run_folder + "/plan.json";
  if (c.trainer.resume && std::filesystem::exists(last_plan)) needs.resumed_plan = last_plan;
  return needs;
}

void add_train_options(Command command, TrainCommand& c) {
  add_data_options(command, c.config, true);
  add_model_options(command, c.config);
  add_training_options(command, c.config);
  add_execution_options(command, c.config);
  add_rank_options(command, c.config);
  add_pass_option(command, c.config);
  add_batch_options(command, c.config);
  add_recommend_options(command, c.recommend);
  command
      .add_call(
          "--seeds", [&c](const std::string& text) { c.seeds = parse_seeds(text); },
          "train once for each seed, for example 0-9 or 0,3,7, and print the mean and deviation of the scores")
      .group("Training");
  command.add_option("--init", c.config.init, "start with the weights of a run folder or .safetensors file")
      .group("Training");
  command.add_flag("--init-partial", c.init_partial, "take only those weights of --init that fit the model")
      .group("Training");
  command.add_option("--config", c.config_file,
                     "read settings from a TOML file or the config.json of a run; the command line wins");
  add_talk_options(command);
  command
      .add_option("--checkpoint", c.trainer.run_folder,
                  "run folder for checkpoints, metrics and final weights; default: a new one under runs/")
      .group("Output");
  command
      .add_flag(
          "--resume", c.trainer.resume,
          "--resume RUN: continue that run from its newest checkpoint, with its own settings; alone: continue the\n"
          "one in --checkpoint with the settings given, or start a new run if there is none")
      .group("Output");
  command.add_option("--checkpoint-every", c.trainer.checkpoint_every, "epochs between checkpoints; default: by time")
      .group("Output");
  command.add_option("--keep", c.trainer.keep, "number of newest checkpoints that are kept")
      .show_default()
      .group("Output");
  command.add_flag("--no-checkpoint", c.no_checkpoint, "write no run folder").group("Output");
  command
      .add_option("--metrics", c.trainer.metrics_file,
                  "JSON lines, one per epoch; default: metrics.jsonl in the run folder")
      .group("Output");
  command
      .add_call(
          "--log", [&c](const std::string& text) { c.trainer.logs = parse_logs(text); },
          "further logs in the run folder, separated by commas: csv (metrics.csv), tensorboard (event files)")
      .only_choices(log_names())
      .group("Output");
  command.add_option("--trace", c.trace, "write a timeline that Perfetto opens").group("Output");
  command.add_flag("--json", c.json, "print one JSON object on stdout, and nothing else").group("Output");
}

}  // namespace nacre::cli
