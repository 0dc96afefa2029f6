#include "nacre/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "nacre/base/error.h"
#include "nacre/base/folder_lock.h"
#include "nacre/base/json_text.h"
#include "nacre/base/log.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/trace.h"
#include "nacre/base/warnings.h"
#include "nacre/tier/row_file.h"
#include "nacre/train/epoch_log.h"
#include "nacre/train/metrics_file.h"
#include "nacre/train/stop_signal.h"

namespace nacre {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::lround(q * static_cast<double>(values.size() - 1))];
}

json number(double x) { return std::isfinite(x) ? json(x) : json(nullptr); }

class Loop {
 public:
  Loop(Trainee& trainee, const TrainerOptions& options)
      : trainee_(trainee), options_(options), config_(trainee.config()) {
    best_ = Tensor(DType::f32, {trainee.parameters().size()});
    keep_best();
    state_.seed = config_.seed;
    state_.config_json = with_outputs(trainee.settings_json());
    state_.result_json = result_settings_json(config_);
    state_.plan_json = plan_json(trainee.plan_as_bound());
    state_.fingerprint = trainee.fingerprint();
    if (config_.shuffle != "always") state_.shuffled_from = kNeverShuffled;
  }

  TrainResult run() {
    std::optional<StopSignalGuard> guard;
    if (!options_.interrupted) guard.emplace();
    const double start = now_seconds();
    open_run_folder();
    const std::string metrics_path = !options_.metrics_file.empty() ? options_.metrics_file
                                     : options_.run_folder.empty()  ? ""
                                                                    : options_.run_folder + "/metrics.jsonl";
    metrics_ = std::make_unique<MetricsFile>(metrics_path, state_.epoch, state_.unwritten_metrics);
    state_.unwritten_metrics.clear();
    for (const std::string& name : options_.logs)
      logs_.push_back(open_epoch_log(name, {options_.run_folder, state_.epoch, trainee_.metric(), metrics_path}));
    Progress progress("training", config_.epochs);
    last_save_ = now_seconds();
    trainee_.expect_epochs(config_.epochs);
    trainee_.shuffle_from(state_.shuffled_from);
    while (state_.epoch < config_.epochs && !stop_early() && !asked_to_stop()) {
      if (epoch(progress)) maybe_save();
    }
    result_.interrupted = state_.epoch < config_.epochs && !stop_early();
    if (guard) result_.signal = StopSignalGuard::signal();
    result_.stopped_early = state_.epoch < config_.epochs && !result_.interrupted;
    finish();
    result_.seconds = now_seconds() - start;
    return result_;
  }

 private:
  // Adds the settings of the outputs, so that a resumed run writes the same ones.
  std::string with_outputs(const std::string& settings) const {
    json all = parse_json<json>(settings, "settings");
    all["output"] = {{"checkpoint_every", options_.checkpoint_every}, {"keep", options_.keep}};
    if (!options_.logs.empty()) all["output"]["log"] = options_.logs;
    if (!options_.metrics_file.empty()) all["output"]["metrics"] = fs::absolute(options_.metrics_file).string();
    return all.dump(2, ' ', false, json::error_handler_t::replace);
  }

  bool asked_to_stop() const { return options_.interrupted ? options_.interrupted() : StopSignalGuard::signal() != 0; }
  bool by_loss() const { return config_.select == "loss"; }
  bool stop_early() const { return told_to_stop_ || (config_.patience > 0 && state_.since_best >= config_.patience); }
  // Keeps the weights as the best so far. If there is a moving average, keeps the average, because
  // that was evaluated.
  void keep_best() {
    trainee_.use_average(true);
    std::copy_n(trainee_.parameters().data(), trainee_.parameters().size(), best_.data<float>());
    trainee_.use_average(false);
    const float* weights = best_.data<float>();
    if (std::all_of(weights, weights + trainee_.parameters().size(), [](float w) { return std::isfinite(w); })) return;
    throw RuntimeError(fmt::format("epoch {}", state_.epoch),
                       "the weights are no longer numbers; start again with a lower --lr");
  }

  void open_run_folder() {
    if (options_.run_folder.empty()) return;
    std::error_code error;
    fs::create_directories(options_.run_folder, error);
    if (error)
      throw UserError(options_.run_folder, "cannot be created: " + error.message(),
                      "choose another --checkpoint folder");
    lock_ = FolderLock(options_.run_folder, "wait until that run has ended, or choose another --checkpoint folder");
    if (options_.resume) {
      const auto found =
          load_newest_checkpoint(options_.run_folder, state_, trainee_.parameters(), trainee_.optimizer(), best_);
      if (found) {
        trainee_.weights_changed();
        const TrainState fresh = state_;
        state_ = *found;
        state_.config_json = fresh.config_json;
        state_.plan_json = fresh.plan_json;
        log_info(fmt::format("resuming after epoch {}{} from {}", state_.epoch,
                             state_.batch > 0 ? fmt::format(" and {} batches", state_.batch) : "",
                             options_.run_folder));
        if (state_.epoch > config_.epochs) {
          throw UserError("--epochs",
                          fmt::format("{} is less than the {} epochs that the run in {} has already done",
                                      config_.epochs, state_.epoch, options_.run_folder),
                          "give a larger number, or choose another --checkpoint folder");
        }
        // The final weights are those of the shorter run. They are removed, so that the weights of
        // the checkpoint are used until this run ends.
        if (state_.epoch < config_.epochs) fs::remove(options_.run_folder + "/model.safetensors", error);
      } else {
        log_info("no checkpoint in " + options_.run_folder + " yet; starting a new run");
      }
    } else if (!fs::is_empty(options_.run_folder)) {
      for (const auto& entry : fs::directory_iterator(options_.run_folder)) {
        if (entry.path().filename().string().starts_with("epoch-")) {
          throw UserError(options_.run_folder, "already holds checkpoints of a run",
                          "continue it with --resume or choose another --checkpoint folder");
        }
      }
    }
    write_file(options_.run_folder + "/config.json", state_.config_json + "\n");
    write_warnings();
    write_file(options_.run_folder + "/plan.json", state_.plan_json + "\n");
  }

  // Writes the warnings so far, one on each line. Called at the start and at the end of a run that
  // has any.
  void write_warnings() const {
    std::string lines;
    for (const std::string& warning : warnings_so_far()) lines += warning + "\n";
    if (!lines.empty()) write_file(options_.run_folder + "/warnings.txt", lines);
  }

  // Adds the losses that are not known yet to the sum of the epoch, and waits for their steps.
  // Throws RuntimeError if the sum is not finite.
  void take_losses() {
    trainee_.take_losses(state_.loss_sum);
    if (std::isfinite(state_.loss_sum)) return;
    throw RuntimeError(fmt::format("epoch {}", state_.epoch + 1),
                       "the loss is no longer a number; start again with a lower --lr");
  }

  // Runs the steps of an epoch. Returns false if the run was asked to stop before the last step.
  bool steps(Progress& progress, double lr) {
    const TraceSpan span("train", "epoch");
    const int64_t count = trainee_.batches_per_epoch();
    trainee_.begin_epoch(state_.epoch, state_.batch);
    for (; state_.batch < count; state_.batch += trainee_.batches_in_step(state_.batch), ++state_.step) {
      if (state_.batch > 0) {
        if (asked_to_stop()) return false;
        if (options_.checkpoint_every == 0) maybe_save();
        if (progress.due()) {
          take_losses();
          const double part = static_cast<double>(state_.batch) / static_cast<double>(count);
          progress.update(static_cast<double>(state_.epoch) + part,
                          fmt::format("epoch {}/{}  batch {}/{}  loss {:.4f}", state_.epoch + 1, config_.epochs,
                                      state_.batch, count, state_.loss_sum / static_cast<double>(state_.batch)));
        }
      }
      try {
        trainee_.queue_step(state_.step, lr);
      } catch (const ReadFailure&) {
        if (state_.step > 0) save_before_failing();
        throw;
      }
    }
    take_losses();
    result_.final_loss = state_.loss_sum / static_cast<double>(count);
    last_loss_sum_ = state_.loss_sum;
    state_.batch = 0;
    state_.loss_sum = 0;
    ++state_.epoch;
    return true;
  }

  bool epoch(Progress& progress) {
    const double start = now_seconds();
    const double lr =
        scheduled_lr(config_.schedule, config_.optimizer.lr, state_.epoch, config_.epochs) * state_.plateau.factor;
    const bool whole = state_.batch == 0;
    if (!steps(progress, lr)) return false;
    const double seconds = now_seconds() - start;
    if (whole) epoch_seconds_.push_back(seconds);
    json line = {{"epoch", state_.epoch}, {"loss", number(result_.final_loss)}, {"lr", lr}, {"seconds", seconds}};
    std::string note = fmt::format("epoch {}/{}  loss {:.4f}", state_.epoch, config_.epochs, result_.final_loss);
    bool evaluated = state_.epoch % config_.eval_every == 0 || state_.epoch == config_.epochs;
    if (evaluated) evaluate_or_save();
    EpochReport report{state_.epoch, result_.final_loss, lr, seconds, evaluated, evaluated ? scores_ : Scores()};
    ask_caller(report);
    if (told_to_stop_ && !evaluated) {
      evaluate_or_save();
      evaluated = true;
      report.scores = scores_;
    }
    if (evaluated) {
      line["train"] = number(scores_.train);
      line["val"] = number(scores_.val);
      line["test"] = number(scores_.test);
      if (by_loss()) line["val_loss"] = number(scores_.val_loss);
      if (!std::isnan(scores_.val)) note += fmt::format("  val {:.4f}", scores_.val);
    }
    if (config_.mode == "minibatch") line["shuffled"] = state_.epoch > state_.shuffled_from;
    if (evaluated) observe_elbow();
    if (const std::string reads = trainee_.take_disk_reads(); !reads.empty())
      line["disk"] = parse_json<json>(reads, "reads from disk");
    if (metrics_->writes()) {
      if (const std::string rows = trainee_.take_feature_rows(); !rows.empty())
        line["feature_rows"] = parse_json<json>(rows, "counts of rows");
      if (const std::string ranks = trainee_.take_rank_times(); !ranks.empty())
        line["ranks"] = parse_json<json>(ranks, "times of ranks");
    }
    try {
      metrics_->add(line.dump());
    } catch (const RuntimeError&) {
      // The run writes this line when it is resumed.
      state_.unwritten_metrics = line.dump();
      save_before_failing();
      throw;
    }
    write_logs(report);
    progress.update(state_.epoch, note);
    return true;
  }

  // Adds the epoch to the logs. If a write fails and a log lacks the epoch, a resumed run takes it
  // from the metrics.
  void write_logs(const EpochReport& report) {
    try {
      for (const auto& log : logs_) log->add(report);
    } catch (const RuntimeError&) {
      save_before_failing();
      throw;
    }
  }

  void ask_caller(const EpochReport& report) {
    if (options_.after_epoch && !options_.after_epoch(report)) told_to_stop_ = true;
  }

  void measure() {
    const TraceSpan span("train", "evaluate");
    const double start = now_seconds();
    trainee_.use_average(true);
    scores_ = trainee_.evaluate(by_loss());
    trainee_.use_average(false);
    eval_seconds_.push_back(now_seconds() - start);
  }

  void evaluate() {
    measure();
    observe_plateau();
    // Without a validation split, every epoch counts as the best so far. If an earlier epoch had a
    // score and this one has none, training has diverged, and this epoch is not the best.
    const bool better = by_loss() ? scores_.val_loss < state_.best_loss : scores_.val > state_.best_val;
    if (std::isnan(scores_.val) ? state_.best_val < 0 : better) {
      if (by_loss() && !std::isnan(scores_.val_loss)) state_.best_loss = scores_.val_loss;
      state_.best_val = std::isnan(scores_.val) ? -1 : scores_.val;
      state_.best_test = std::isnan(scores_.test) ? -1 : scores_.test;
      state_.best_epoch = state_.epoch;
      state_.since_best = 0;
      keep_best();
    } else {
      ++state_.since_best;
    }
  }

  // Evaluates the epoch. If features cannot be read, saves the state before the end of the epoch,
  // so that a resumed run evaluates the epoch.
  void evaluate_or_save() {
    try {
      evaluate();
    } catch (const ReadFailure&) {
      trainee_.use_average(false);
      --state_.epoch;
      state_.batch = trainee_.batches_per_epoch();
      state_.loss_sum = last_loss_sum_;
      save_before_failing();
      throw;
    }
  }

  // Gives the plateau schedule the value that --select compares or, without validation nodes, the
  // training loss.
  void observe_plateau() {
    const bool losses = by_loss() || std::isnan(scores_.val);
    const double loss = std::isnan(scores_.val_loss) ? result_.final_loss : scores_.val_loss;
    state_.plateau.observe(config_.schedule, losses ? loss : scores_.val, losses);
  }

  // With --shuffle adaptive, starts to shuffle when the accuracy curve has bent. The last epoch is
  // always evaluated, but its score counts only if --eval-every asks for it, so that a longer run
  // continues a shorter one bit for bit.
  void observe_elbow() {
    if (config_.shuffle != "adaptive" || state_.elbow.found() || state_.epoch % config_.eval_every != 0) return;
    state_.elbow.observe(state_.epoch, std::isnan(scores_.val) ? scores_.train : scores_.val);
    if (!state_.elbow.found()) return;
    state_.shuffled_from = state_.epoch;
    trainee_.shuffle_from(state_.shuffled_from);
    log_info(fmt::format("the accuracy curve bends at epoch {}; nodes are shuffled from epoch {} on",
                         state_.elbow.epoch, state_.epoch + 1));
  }

  void save() {
    if (options_.run_folder.empty()) return;
    const TraceSpan span("train", "checkpoint");
    const double start = now_seconds();
    take_losses();
    metrics_->sync();  // so that no checkpoint is ahead of the metrics
    save_checkpoint(options_.run_folder, state_, trainee_.parameters(), trainee_.optimizer(), best_, options_.keep);
    last_save_ = now_seconds();
    save_seconds_ = last_save_ - start;
  }

  // Saves what has been learned so far, if possible. The failure that ends the run is reported in
  // any case.
  void save_before_failing() {
    try {
      save();
    } catch (const std::exception& error) {
      log_warning(std::string("the checkpoint was not written: ") + error.what());
    }
  }

  void maybe_save() {
    const bool due = options_.checkpoint_every > 0
                         ? state_.epoch % options_.checkpoint_every == 0
                         : now_seconds() - last_save_ > std::min(600.0, std::max(30.0, 100 * save_seconds_));
    if (due) save();
  }

  void finish() {
    save();
    // A run that was resumed after its last epoch has no scores yet, so it is evaluated here. An
    // interrupted run is not evaluated, because it should end soon.
    if (eval_seconds_.empty() && !result_.interrupted) measure();
    result_.epochs = state_.epoch;
    result_.best_epoch = state_.best_epoch;
    result_.val_score = state_.best_val;
    result_.test_score = state_.best_test;
    result_.last_test_score = scores_.test;
    if (config_.select == "last") {
      keep_best();
      result_.val_score = scores_.val;
      result_.test_score = scores_.test;
      result_.best_epoch = state_.epoch;
    }
    result_.train_score = scores_.train;
    std::vector<double> ms;
    for (const double s : epoch_seconds_) ms.push_back(s * 1e3);
    result_.epoch_ms_median = quantile(ms, 0.5);
    result_.epoch_ms_p10 = quantile(ms, 0.1);
    result_.epoch_ms_p90 = quantile(ms, 0.9);
    result_.eval_ms_median = quantile(eval_seconds_, 0.5) * 1e3;
    if (!options_.run_folder.empty() && !result_.interrupted) {
      save_weights(options_.run_folder + "/model.safetensors", trainee_.parameters(), best_,
                   weights_config_json(config_));
      write_warnings();
    }
  }

  Trainee& trainee_;
  const TrainerOptions& options_;
  const RunConfig& config_;
  TrainState state_;
  TrainResult result_;
  FolderLock lock_;  // lock of the run folder
  std::unique_ptr<MetricsFile> metrics_;
  std::vector<std::unique_ptr<EpochLog>> logs_;
  Tensor best_;
  Scores scores_;
  std::vector<double> epoch_seconds_;
  std::vector<double> eval_seconds_;
  double last_save_ = 0;
  double last_loss_sum_ = 0;  // sum of the losses of the last epoch that was finished
  double save_seconds_ = 0;
  bool told_to_stop_ = false;  // set by TrainerOptions::after_epoch
};

}  // namespace

void check_training(const RunConfig& c) {
  check_optimizer(c.optimizer);
  check_schedule(c.schedule);
  if (c.epochs < 1) throw UserError("--epochs", "must be at least 1");
  if (c.eval_every < 1) throw UserError("--eval-every", "must be at least 1");
  check_most_staleness(c.staleness);
  if (c.shuffle != "always" && c.shuffle != "never" && c.shuffle != "adaptive")
    throw UserError("--shuffle", "unknown choice '" + c.shuffle + "'", "choose always, never or adaptive");
  if (c.shuffle == "adaptive" && c.eval_every > c.epochs)
    throw UserError("--shuffle adaptive",
                    "follows the accuracy during training, but with this --eval-every it is never computed",
                    "lower --eval-every, or use --shuffle always");
  if (c.patience < 0) throw UserError("--patience", "must not be negative");
  if (c.select != "best" && c.select != "loss" && c.select != "last")
    throw UserError("--select", "unknown choice '" + c.select + "'", "choose best, loss or last");
}

TrainResult train(Trainee& trainee, const TrainerOptions& options) {
  check_training(trainee.config());
  return Loop(trainee, options).run();
}

std::string fresh_run_folder(const std::string& parent, const std::string& name) {
  std::string safe = name;
  for (char& ch : safe) {
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0 && ch != '-' && ch != '.') ch = '-';
  }
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) throw UserError(parent, "cannot be created: " + error.message(), "choose a folder with --checkpoint");
  for (int k = 1; k < 1000000; ++k) {
    const fs::path folder = fs::path(parent) / fmt::format("{}-{}", safe, k);
    if (fs::create_directory(folder, error)) return folder.string();
    if (error)
      throw UserError(folder.string(), "cannot be created: " + error.message(), "choose a folder with --checkpoint");
  }
  throw UserError(parent, "holds too many runs of this name", "choose a folder with --checkpoint");
}

}  // namespace nacre
