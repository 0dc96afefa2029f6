#include "account.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nacre/base/error.h"
#include "nacre/base/log.h"
#include "nacre/base/machine.h"
#include "nacre/train/device.h"
#include "nacre/train/disk_tier.h"
#include "nacre/train/estimate.h"
#include "nacre/train/feature_options.h"

namespace nacre::cli {
namespace {

std::string size_of(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Returns the sizes of the data without features that stay on disk.
std::optional<DataSizes> sizes_in_memory(const RunConfig& config) {
  std::optional<DataSizes> sizes = data_sizes(config.data, config.load);
  if (!sizes || config.mode != "minibatch" || sizes->mapped < sizes->feature_bytes) return sizes;
  const int64_t on_disk = bytes_on_disk(config, sizes->feature_bytes);
  sizes->mapped -= on_disk;
  sizes->reading -= on_disk;
  return sizes;
}

// Returns whether each kind of nodes will have features of its own.
bool has_tables_of_kinds(const RunConfig& config, const DataSizes& sizes) {
  const std::string& made = config.load.features_file;
  return sizes.heterogeneous && !sizes.users_and_items && sizes.features == 0 && (made.empty() || made == "learned");
}

}  // namespace

std::string items_json(const std::vector<MemoryItem>& items) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::object();
  // Parts of the same name are added up, because two parts may have one name.
  for (const MemoryItem& item : items) parts[item.what] = parts.value(item.what, int64_t{0}) + item.bytes;
  return parts.dump();
}

MemoryAccount::MemoryAccount(RunConfig& config, const RunPurpose& purpose) : purpose_(purpose) {
  config.program_bytes = program_bytes();
  config.embedded = purpose.embedded;
  config_ = config;
  if (purpose.data_in_memory) return;
  const std::optional<DataSizes> sizes = sizes_in_memory(config);
  if (!sizes) return;
  if (purpose.trains && config.mode == "minibatch" && has_tables_of_kinds(config, *sizes)) check_kind_options(config);
  mapped_ = sizes->mapped;
  // Leave the bytes of features that stay on disk unchecked, because a check would read all of
  // them.
  if (config.mode == "minibatch" && bytes_on_disk(config, sizes->feature_bytes) > 0) config.load.verify = false;
  bill_ = bill_before_reading(config, *sizes, purpose);
  require_fit(bill_, host_bound(config, choose_device(config.device, config.precision).gpu));
  require_device(config, *sizes, purpose.trains);
}

void MemoryAccount::reckon(HostMemory session) {
  session.trains = purpose_.trains;
  session.embedded = purpose_.embedded;
  if (purpose_.loaded > 0) session.loading.push_back({"weights of the checkpoint", purpose_.loaded});
  bill_ = bill_of(session, bill_, mapped_);
}

void MemoryAccount::present(const HostMemory& session) {
  reckon(session);
  std::string text = bill_.text();
  text.pop_back();
  const MemoryBound bound = host_bound(config_, session.gpu);
  log_info(fmt::format("memory{}, of {} ({}):\n{}", session.gpu ? " of the host" : "", size_of(bound.bytes), bound.by,
                       text));
  require_fit(bill_, bound);
}

std::string MemoryAccount::phases_json() const {
  nlohmann::ordered_json phases = nlohmann::ordered_json::object();
  for (const MemoryPhase& phase : bill_.phases) phases[phase.name] = static_cast<double>(phase.bytes()) / (1 << 20);
  return phases.dump();
}

std::string MemoryAccount::bill_json() const {
  nlohmann::ordered_json phases = nlohmann::ordered_json::array();
  for (const MemoryPhase& phase : bill_.phases)
    phases.push_back({{"phase", phase.name}, {"items", nlohmann::ordered_json::parse(items_json(phase.items))}});
  return phases.dump();
}

std::string MemoryAccount::closing_line() const {
  return fmt::format("memory: {} planned, {} at the peak of the process", size_of(planned()), size_of(peak_memory()));
}

void require_room_to_read(const RunConfig& config) {
  const std::optional<DataSizes> sizes = data_sizes(config.data, config.load);
  if (!sizes) return;
  Bill bill;
  bill.phases.push_back({"reading",
                         {{"the program", std::max(program_bytes(), held_memory())},
                          {"the data while they are read", sizes->reading - sizes->mapped}}});
  require_fit(bill, host_bound(config, false));
}

namespace {

std::string bill_json(const Bill& bill, const MemoryBound& bound) {
  nlohmann::ordered_json phases = nlohmann::ordered_json::object();
  for (const MemoryPhase& phase : bill.phases) phases[phase.name] = phase.bytes();
  return nlohmann::ordered_json{
      {"bytes", bill.bytes()}, {"limit", bound.bytes}, {"limited_by", bound.by}, {"phases", phases}}
      .dump(2);
}

}  // namespace

void show_estimate(const RunConfig& config, bool json) {
  const std::optional<DataSizes> sizes = sizes_in_memory(config);
  if (!sizes || !sizes->counted) {
    throw UserError("--bill", "the sizes of " + config.data + " are not known before it is read",
                    "leave --bill out, or convert the data to a .nacre file");
  }
  const MemoryBound bound = host_bound(config, false);
  if (json) {
    fmt::print("{}\n", bill_json(estimate_bill(config, *sizes), bound));
    return;
  }
  fmt::print("memory of a run, estimated without loading the data, of {} ({}):\n{}", size_of(bound.bytes), bound.by,
             estimate_bill(config, *sizes).text());
}

}  // namespace nacre::cli
