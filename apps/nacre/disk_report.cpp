#include "disk_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nacre/base/log.h"
#include "nacre/train/batch_session.h"
#include "ranks.h"

namespace nacre::cli {
namespace {

const BatchSession* on_disk(VertexModel& session) {
  const BatchSession* batches = batches_of(session);
  return batches != nullptr && batches->disk() != nullptr ? batches : nullptr;
}

}  // namespace

std::string disk_line(VertexModel& session) {
  const BatchSession* batches = on_disk(session);
  if (batches == nullptr) return "";
  const DiskCounters c = batches->disk()->training();
  const auto rows = static_cast<double>(std::max<int64_t>(1, c.from_memory + c.from_disk));
  const auto useful = static_cast<double>(std::max<int64_t>(1, c.from_disk * batches->disk()->row_bytes()));
  return fmt::format(
      "features on disk: {:.1f} % of the rows were in memory, {} were read ({} in {} pages, {:.2f} times the rows); "
      "steps waited {} for them",
      100 * static_cast<double>(c.from_memory) / rows, human_count(c.from_disk),
      human_bytes(static_cast<double>(c.read.bytes)), human_count(c.read.pages),
      static_cast<double>(c.read.bytes) / useful, human_seconds(batches->loader_times().waited_for_rows));
}

std::string disk_report_json(VertexModel& session) {
  const BatchSession* batches = on_disk(session);
  if (batches == nullptr) return "null";
  const DiskTier& disk = *batches->disk();
  const int64_t row_bytes = disk.row_bytes();
  nlohmann::ordered_json j =
      nlohmann::ordered_json::parse(disk_json(disk.training(), row_bytes, batches->loader_times().waited_for_rows));
  j["evaluation"] = nlohmann::ordered_json::parse(disk_json(disk.evaluation(), row_bytes, -1));
  return j.dump();
}

}  // namespace nacre::cli
