#include "train_result.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "disk_report.h"
#include "feature_report.h"
#include "nacre/base/machine.h"
#include "nacre/base/pending_file.h"
#include "nacre/base/warnings.h"
#include "nacre/train/batch_session.h"
#include "operation_report.h"
#include "options.h"
#include "ranks.h"
#include "run_pictures.h"

namespace nacre::cli {
namespace {

nlohmann::json or_null(double value) { return nlohmann::json::parse(json_number(value)); }

nlohmann::json fullest_of(const ResourceUse& use) {
  return use.all.empty() ? nlohmann::json() : nlohmann::json(use.all.front().name);
}

// Returns the kernels that the result.json in `folder` holds if none of `kernels` was timed, which
// happens if a finished run is resumed; otherwise returns `kernels`. Both are kernels of the plan
// that the run keeps.
nlohmann::ordered_json timed_kernels(nlohmann::ordered_json kernels, const std::string& folder) {
  const std::string path = folder + "/result.json";
  const bool timed = std::any_of(kernels.begin(), kernels.end(), [](const auto& k) { return !k.at("ms").is_null(); });
  std::error_code ignored;
  if (timed || !std::filesystem::is_regular_file(path, ignored)) return kernels;
  const auto before = nlohmann::ordered_json::parse(read_file(path), nullptr, false);
  const auto known = before.is_object() ? before.find("kernels") : before.end();
  return known != before.end() && known->is_array() && known->size() == kernels.size() ? *known : kernels;
}

}  // namespace

double device_peak(const VertexModel& session) { return static_cast<double>(session.device().peak_bytes()); }

Shares shares_of(VertexModel& session) {
  BatchSession* batches = batches_of(session);
  if (batches == nullptr) return {};
  const StepTimes t = batches->step_times();
  if (t.all() <= 0) return {};
  const double waiting = 100 * t.waited / t.all();
  if (session.device().on_host()) return {waiting, -1, {}};
  return {waiting, 100 * t.device / t.all(), batches->resource_use()};
}

std::string train_result_json(VertexModel& session, const TrainResult& r, const std::string& folder,
                              const MemoryAccount& account) {
  const Shares shares = shares_of(session);
  const int64_t host = account.planned();
  const int64_t planned = session.device().on_host() ? host : total_bytes(session.memory());
  const auto phases = nlohmann::ordered_json::parse(account.phases_json());
  const nlohmann::ordered_json j = {
      {"test_acc", or_null(r.test_score)},
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
      {"host_planned_mb", static_cast<double>(host) / (1 << 20)},
      {"phases_mb", phases},
      {"device_peak_mb", or_null(device_peak(session) / (1 << 20))},
      {"waiting_percent", or_null(shares.waiting)},
      {"device_percent", or_null(shares.device)},
      {"host_threads_percent", or_null(shares.use.percent("host threads"))},
      {"launching_percent", or_null(shares.use.percent("launching thread"))},
      {"link_percent", or_null(shares.use.percent("link"))},
      {"fullest", fullest_of(shares.use)},
      {"features", features_json(session)},
      {"disk", nlohmann::ordered_json::parse(disk_report_json(session))},
      {"schedule", nlohmann::ordered_json::parse(schedule_report_json(session, r.epoch_ms_median))},
      {"device", device_text(session)},
      {"ranks", ranks_json(session)},
      {"halo_rows", halo_rows_json(session)},
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

void write_result(VertexModel& session, const std::string& json, const std::string& folder,
                  const MemoryAccount& account) {
  if (folder.empty()) return;
  auto all = nlohmann::ordered_json::parse(json);
  auto& bill = all["bill"];
  bill = nlohmann::ordered_json::parse(account.bill_json());
  if (!session.device().on_host()) {
    const auto parts = nlohmann::ordered_json::parse(items_json(session.memory()));
    bill.push_back({{"phase", "device"}, {"items", parts}});
  }
  write_partition_picture(session, folder);
  all["kernels"] = timed_kernels(nlohmann::ordered_json::parse(kernel_times_json(session)), folder);
  write_file(folder + "/result.json", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace nacre::cli
