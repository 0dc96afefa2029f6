#include "feature_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nacre/base/log.h"
#include "nacre/base/names.h"
#include "nacre/tensor/dtype.h"
#include "nacre/tier/cached_batches.h"
#include "nacre/train/batch_session.h"
#include "nacre/train/feature_tiers.h"
#include "ranks.h"

namespace nacre::cli {
namespace {

using nlohmann::ordered_json;

double percent(int64_t part, int64_t all) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, all));
}

double in_mb(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Returns the bytes of the rows that came from the host. Rows of the disk tier count, because the
// host gathers them, too.
int64_t link_bytes(const FeatureTiers* tiers, const RowReads& rows) {
  return tiers == nullptr ? 0 : (rows.host + rows.disk) * tiers->format.bytes();
}

// Largest number of batches that are drawn to forecast what an epoch reads.
constexpr int64_t kForecastBatches = 256;

std::string forecast_text(const BatchSession& session, const CacheForecast* forecast) {
  std::string text = fmt::format("; up to {} are drawn ahead, and the rows that they read soonest stay",
                                 counted(session.cache()->window(), "batch", "batches"));
  if (forecast == nullptr || forecast->batches == 0) return text;
  const int64_t epoch = session.batches_per_epoch();
  const std::string drawn = forecast->batches == epoch
                                ? fmt::format("the {} of epoch 0", counted(epoch, "batch", "batches"))
                                : fmt::format("{} of the {} batches of epoch 0", forecast->batches, epoch);
  return text + fmt::format(
                    "; {} were drawn to count: of {} rows, they load {} from the host, and {} if the first "
                    "rows stayed",
                    drawn, forecast->rows, forecast->misses, forecast->static_misses);
}

ordered_json forecast_json(const BatchSession& session, const CacheForecast* forecast) {
  ordered_json j = {{"window_batches", session.cache()->window()}, {"seats", session.cache()->seats()}};
  if (forecast == nullptr) return j;
  j["drawn_batches"] = forecast->batches;
  j["drawn_rows"] = forecast->rows;
  j["drawn_host_rows"] = forecast->misses;
  j["drawn_host_rows_static"] = forecast->static_misses;
  const double epochs = forecast->batches == 0
                            ? 0
                            : static_cast<double>(session.batches_per_epoch()) / static_cast<double>(forecast->batches);
  j["expected_host_rows"] = epochs * static_cast<double>(forecast->misses);
  return j;
}

}  // namespace

std::unique_ptr<const CacheForecast> cache_forecast(const BatchSession* session) {
  if (session == nullptr || session->cache() == nullptr) return nullptr;
  return std::make_unique<const CacheForecast>(session->forecast_cache(kForecastBatches));
}

std::string features_line(VertexModel& session) {
  BatchSession* batches = batches_of(session);
  const FeatureTiers* tiers = batches == nullptr ? nullptr : batches->tiers();
  if (tiers == nullptr) return "";
  const RowReads rows = batches->rows_read();
  if (rows.batches == 0) return "";
  std::string text = fmt::format("features: {} a batch, {:.1f} % of them from device memory",
                                 counted(rows.total() / rows.batches, "row"), percent(rows.local, rows.total()));
  if (rows.peer > 0) text += fmt::format(", {:.1f} % from other devices", percent(rows.peer, rows.total()));
  if (rows.disk > 0) text += fmt::format(", {:.1f} % from disk", percent(rows.disk, rows.total()));
  if (rows.host + rows.disk == 0) return text;
  const auto bytes = static_cast<double>(link_bytes(tiers, rows));
  const double seconds = batches->loading_seconds();
  text += fmt::format(", {:.1f} % from the host ({} {}", percent(rows.host, rows.total()), human_bytes(bytes),
                      tiers->link ? "read over the link" : "gathered and copied");
  if (seconds > 0) text += fmt::format(", {}: {:.2f} GB/s", human_seconds(seconds), bytes / seconds / 1e9);
  return text + ")";
}

std::string planned_features_text(const BatchSession& session, const CacheForecast* forecast) {
  const FeatureTiers* tiers = session.tiers();
  if (tiers == nullptr) return "";
  const auto bytes = [](int64_t n) { return human_bytes(static_cast<double>(n)); };
  std::string text = fmt::format("{} in device memory ({})", counted(tiers->device_rows, "row"),
                                 bytes(tiers->device_bytes() + tiers->table_bytes()));
  if (!tiers->method.empty())
    text += fmt::format(", chosen by {} in {}", tiers->method, human_seconds(tiers->placing_seconds));
  if (tiers->host_rows() == 0) return text;
  text += fmt::format("; {} on the host, {} ({})", counted(tiers->locked_rows(), "row"),
                      tiers->link ? "read over the link from " + bytes(tiers->pinned_bytes()) + " of page-locked memory"
                                  : "gathered by threads and copied",
                      tiers->why);
  if (session.cache() != nullptr) return text + forecast_text(session, forecast);
  if (tiers->expected.total() <= 0) return text;
  return text +
         fmt::format("; an epoch is expected to load {:.0f} rows from device memory and {:.0f} from the host in {}",
                     tiers->expected.own, tiers->expected.host, human_seconds(tiers->expected.seconds(tiers->costs())));
}

ordered_json planned_features_json(const BatchSession& session, const CacheForecast* forecast) {
  const FeatureTiers& tiers = *session.tiers();
  const RowCosts costs = tiers.costs();
  ordered_json j = {{"type", dtype_name(tiers.format.type)},
                    {"device_rows", tiers.device_rows},
                    {"device_mb", in_mb(tiers.device_bytes())},
                    {"tables_mb", in_mb(tiers.table_bytes())},
                    {"pinned_mb", in_mb(tiers.pinned_bytes())},
                    {"placement", tiers.method.empty() ? ordered_json() : ordered_json(tiers.method)},
                    {"placing_s", tiers.placing_seconds},
                    {"host_rows", tiers.host_rows() == 0 ? ordered_json() : ordered_json(tiers.link ? "link" : "copy")},
                    {"device_row_s", costs.own},
                    {"host_row_s", costs.host},
                    {"rates_measured", tiers.rates.measured},
                    {"cache", session.cache() == nullptr ? "static" : "lookahead"}};
  if (session.cache() != nullptr) {
    j["lookahead"] = forecast_json(session, forecast);
    return j;
  }
  if (tiers.expected.total() <= 0) return j;
  j["expected_local_rows"] = tiers.expected.own;
  j["expected_host_rows"] = tiers.expected.host;
  j["expected_s"] = tiers.expected.seconds(costs);
  return j;
}

ordered_json placements_json(const std::vector<JudgedPlacement>& methods) {
  ordered_json list = ordered_json::array();
  for (const JudgedPlacement& each : methods) {
    const TierReads rows = each.all();
    list.push_back({{"placement", each.method},
                    {"expected_local_rows", rows.own},
                    {"expected_peer_rows", rows.peer},
                    {"expected_host_rows", rows.host},
                    {"expected_s", each.cost},
                    {"placing_s", each.seconds}});
  }
  return list;
}

ordered_json features_json(VertexModel& session) {
  BatchSession* batches = batches_of(session);
  if (batches == nullptr) return nullptr;
  const FeatureTiers* tiers = batches->tiers();
  const RowReads rows = batches->rows_read();
  ordered_json j = {{"type", session.config().features.type}, {"rows", ordered_json::parse(rows.json())}};
  if (tiers == nullptr) return j;
  j.update(planned_features_json(*batches, nullptr));
  j["link_mb"] = in_mb(link_bytes(tiers, rows));
  j["loading_s"] = batches->loading_seconds();
  j["gathering_s"] = tiers->link ? 0 : batches->loader_times().lookup;
  return j;
}

}  // namespace nacre::cli
